//===- Gemm.cpp -----------------------------------------------------------===//

#include "spmd/Runtime/Host/Gemm.h"
#include "GemmBF16.h"
#include "GemmF16.h"
#include "GemmF32.h"
#include "GemmF64.h"

#include <algorithm>

using namespace spmd::runtime;

namespace {
/// A gemm and how it is cut into pieces.
struct Work {
  const GemmCommand *gemm;
  const void *a, *b;
  void *c;
  Epilogue epilogue;
  enum { ByRow, ByColumn, ByBatch } cut;
  int64_t piece; ///< rows, columns or GEMMs per piece
};
} // namespace

/// Rows [row, row + rows) and columns [column, column + columns) of one C.
template <typename Element>
static GemmProblem<Element> getPart(const Work &work, int64_t number, int64_t row, int64_t rows, int64_t column,
                                    int64_t columns) {
  const GemmShape &g = work.gemm->shape;
  auto *a = static_cast<const Element *>(work.a) + number * g.strideA + (g.transA ? row : row * g.lda);
  auto *b = static_cast<const Element *>(work.b) + number * g.strideB + (g.transB ? column * g.ldb : column);
  auto *c = static_cast<Element *>(work.c) + number * g.strideC + row * g.ldc + column;
  return {rows, columns, g.k, a, b, c, g.lda, g.ldb, g.ldc, g.transA, g.transB, g.beta != 0};
}

/// The same, as one of the pieces of C.
template <typename Element>
static GemmWithEpilogue<Element> getPiece(const Work &work, int64_t number, int64_t row, int64_t rows, int64_t column,
                                          int64_t columns) {
  GemmWithEpilogue<Element> p{getPart<Element>(work, number, row, rows, column, columns)};
  if (work.cut == Work::ByColumn) {
    p.columnPiece = column / work.piece;
    p.columnPieces = (work.gemm->shape.n + work.piece - 1) / work.piece;
  }
  return p;
}

static void runPart(const Work &work, int64_t number, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  if (work.gemm->dtype == DType::BF16) {
    static const UnitBF16 unit = getUnitBF16();
    return runGemmBF16(getPart<uint16_t>(work, number, row, rows, column, columns), unit);
  }
  if (work.gemm->dtype == DType::F16)
    return runGemmF16(getPart<uint16_t>(work, number, row, rows, column, columns));
  static const VectorUnit unit = getVectorUnit();
  if (work.gemm->dtype == DType::F64)
    return runGemmF64(getPiece<double>(work, number, row, rows, column, columns), unit);
  GemmProblemF32 p = getPiece<float>(work, number, row, rows, column, columns);
  p.epilogue = work.epilogue;
  if (p.epilogue.bias)
    p.epilogue.bias += column;
  if (p.epilogue.residual)
    p.epilogue.residual += number * p.epilogue.strideR + row * p.epilogue.ldr + column;
  runGemmF32(p, unit);
}

static void runPieces(void *context, int64_t begin, int64_t end) {
  const Work &work = *static_cast<const Work *>(context);
  const GemmShape &g = work.gemm->shape;
  int64_t from = begin * work.piece, to = end * work.piece;
  if (work.cut == Work::ByBatch) {
    for (int64_t i = from; i < std::min(to, g.batch); ++i)
      runPart(work, i, 0, g.m, 0, g.n);
    return;
  }
  for (int64_t i = 0; i < g.batch; ++i)
    if (work.cut == Work::ByRow)
      runPart(work, i, from, std::min(to, g.m) - from, 0, g.n);
    else
      runPart(work, i, 0, g.m, from, std::min(to, g.n) - from);
}

void spmd::runtime::runGemm(const GemmCommand &gemm, const void *a, const void *b, void *c, const Epilogue &epilogue,
                            WorkerPool &pool) {
  const GemmShape &g = gemm.shape;
  if (g.m == 0 || g.n == 0 || g.batch == 0)
    return;
  Work work{&gemm, a, b, c, epilogue, Work::ByRow, g.m};
  // Below this many multiply-adds waking a helper costs more than it saves.
  constexpr double worthwhile = 1 << 16;
  double products = static_cast<double>(g.m * g.n) * static_cast<double>(g.k) * static_cast<double>(g.batch);
  int64_t threads = products < worthwhile ? 1 : pool.threads();
  int64_t extent = g.m;
  // Pieces by rows copy (or transpose) all of B each, pieces by columns only their part of it; but they write to the
  // same pages, side by side, which is not for small k.
  bool isByColumn = (gemm.dtype == DType::F32 || gemm.dtype == DType::F64) && !g.transA && g.k >= 256;
  // Kernels work on tiles; pieces are multiples of them.
  int64_t tile = 16;
  if (g.batch >= threads && g.batch > 1) {
    work.cut = Work::ByBatch;
    extent = g.batch;
    tile = 1;
  } else if (g.n > (isByColumn ? g.m / 3 : g.m)) {
    work.cut = Work::ByColumn;
    extent = g.n;
    tile = 32;
  }
  int64_t even = (extent + threads - 1) / threads;
  work.piece = std::min(extent, (even + tile - 1) / tile * tile);
  int64_t pieces = (extent + work.piece - 1) / work.piece;
  if (pieces == 1)
    return runPieces(&work, 0, 1);
  pool.parallelFor(pieces, 1, runPieces, &work);
}

void spmd::runtime::prepareGemmThread(DType dtype) {
  if (dtype == DType::BF16)
    prepareThreadBF16();
  else if (dtype == DType::F16)
    prepareThreadF16();
  else if (dtype == DType::F32)
    prepareThreadF32();
  else
    prepareThreadF64();
}

//===- PadLeadingDims.cpp - spmd-pad-leading-dims -------------------------===//
//
// [Note: padded rows] A library's fast GEMMs read and write vectors of 16 bytes, so a row of each matrix has to begin
// at a multiple of that: of 50,257 logits in bf16 every other row is aligned to 2 bytes only, and GEMMs of them take 5
// to 8 times as long (measured on an H200). A matrix that only GEMMs and clusters use may lie with any leading
// dimension: the GEMM has one, and a cluster's map is arithmetic on the row and the column. What others use (unit
// buffers, results of the step, rows by number, attention) stays as it is.
//
//===----------------------------------------------------------------------===//

#include "dialects/Kernel/AccessMap.h"
#include "dialects/Kernel/Body.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Kernel/PaddedRows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "spmd/Conversion/AtenToKernel/Passes.h"
#include "spmd/Conversion/AtenToKernel/RowAlignment.h"
#include "spmd/Transforms/FunctionPass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace spmd {
#define GEN_PASS_DEF_PADLEADINGDIMSPASS
#include "spmd/Conversion/AtenToKernel/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;
using kernel::AccessMap;
using kernel::ClusterOp;
using kernel::GemmOp;

namespace {

/// From rows of `width` elements to rows of `ld`.
struct Rows {
  int64_t width = 0, ld = 0;

  bool operator==(const Rows &other) const { return width == other.width && ld == other.ld; }
  /// Where an element is that was at `index`.
  int64_t move(int64_t index) const { return index / width * ld + index % width; }
};

/// A matrix of a GEMM as it lies in its tensor.
struct View {
  int64_t columns, offset, ld, stride;
};

class Padder {
public:
  Padder(func::FuncOp func, int64_t alignment) : func(func), alignment(alignment) {}

  void run();

private:
  void addCandidate(Value value, int64_t width);
  void collect();
  bool isPadded(Value value, const Rows &rows) const {
    auto it = padded.find(value);
    return it != padded.end() && it->second == rows;
  }
  bool mayPad(Value value, const Rows &rows) const;
  bool mayPadUse(OpOperand &use, const Rows &rows) const;
  bool mayPadResults(GemmOp gemm, const Rows &rows) const;
  bool maySplit(ClusterOp cluster, const Rows &rows) const;
  bool padAlike(Value value, AffineMap map, Value other, AffineMap otherMap);
  void padInPlace();
  void splitClusters();
  void pad(Value value, const Rows &rows);

  func::FuncOp func;
  int64_t alignment;
  /// In program order.
  llvm::MapVector<Value, Rows> padded;
};

} // namespace

/// `map` to the elements of a tensor whose rows have moved; nothing where one step along a dim would now be another one
/// here than there.
static std::optional<AffineMap> moveMap(AffineMap map, ArrayRef<int64_t> dims, const Rows &rows) {
  AccessMap from = AccessMap::get(map);
  if (!from.isLinear() || from.constant < 0)
    return std::nullopt;
  MLIRContext *context = map.getContext();
  AffineExpr to = getAffineConstantExpr(rows.move(from.constant), context);
  int64_t column = from.constant % rows.width;
  for (auto [dim, stride] : llvm::enumerate(from.strides)) {
    if (stride < 0)
      return std::nullopt;
    column += stride % rows.width * (dims[dim] - 1);
    to = to + getAffineDimExpr(dim, context) * rows.move(stride);
  }
  for (auto [symbol, stride] : llvm::enumerate(from.symbols)) {
    if (stride % rows.width != 0)
      return std::nullopt;
    to = to + getAffineSymbolExpr(symbol, context) * (stride / rows.width * rows.ld);
  }
  if (column >= rows.width)
    return std::nullopt;
  return AffineMap::get(map.getNumDims(), map.getNumSymbols(), to);
}

static View getView(GemmOp gemm, bool isA) {
  int64_t m = gemm.getM(), n = gemm.getN(), k = gemm.getK();
  if (isA)
    return {gemm.getTransA() ? m : k, static_cast<int64_t>(gemm.getAOffset()), static_cast<int64_t>(gemm.getLda()),
            static_cast<int64_t>(gemm.getAStride())};
  return {gemm.getTransB() ? k : n, static_cast<int64_t>(gemm.getBOffset()), static_cast<int64_t>(gemm.getLdb()),
          static_cast<int64_t>(gemm.getBStride())};
}

/// The results that are matrices.
static SmallVector<Value, 2> getMatrices(GemmOp gemm) {
  SmallVector<Value, 2> matrices{gemm.getResult()};
  if (gemm.getPreActivation())
    matrices.push_back(gemm.getPreActivation());
  return matrices;
}

/// Whether all that a cluster of one dim does is done to each element by itself, so that it may be one of rows.
static bool isElementwise(ClusterOp cluster) {
  return cluster.getDims().size() == 1 && cluster.getBodyBlock()->getOps<kernel::ReduceOp>().empty();
}

std::string spmd::findBadRowAlignment(int64_t alignment) {
  bool isGood = alignment >= 1 && alignment <= kernel::kMostRowAlignment && llvm::isPowerOf2_64(alignment);
  return isGood ? "" : "expected a power of two up to " + std::to_string(kernel::kMostRowAlignment);
}

void Padder::addCandidate(Value value, int64_t width) {
  int64_t elements = kernel::getNumElements(value.getType());
  int64_t bytes = kernel::getElementBytes(value.getType()), row = width * bytes;
  // A row that is shorter than a vector is no matter of vectors; a long one begins at a cache line for little.
  if (width <= 0 || row < alignment || row % alignment == 0 || elements % width != 0 || elements == width)
    return;
  int64_t unit = row >= 32 * kernel::kMostRowAlignment ? kernel::kMostRowAlignment : alignment;
  Rows rows{width, static_cast<int64_t>(llvm::alignTo(row, unit)) / bytes};
  auto [it, isNew] = padded.insert({value, rows});
  if (!isNew && !(it->second == rows))
    it->second = Rows(); // of two widths; never padded
}

void Padder::collect() {
  func.walk([&](GemmOp gemm) {
    for (bool isA : {true, false}) {
      Value matrix = isA ? gemm.getA() : gemm.getB();
      if (matrix.getDefiningOp<ClusterOp>())
        addCandidate(matrix, getView(gemm, isA).ld);
    }
    if (gemm.getLdc())
      return;
    for (Value result : getMatrices(gemm))
      addCandidate(result, gemm.getN());
  });
  padded.remove_if([](auto &entry) { return entry.second.width == 0; });
}

bool Padder::maySplit(ClusterOp cluster, const Rows &rows) const {
  if (!isElementwise(cluster) || cluster.getDims()[0] % rows.width != 0)
    return false;
  // Into one kind of rows.
  auto agrees = [&](Value value) {
    auto it = padded.find(value);
    return it == padded.end() || it->second.width == rows.width;
  };
  return llvm::all_of(cluster.getInputs(), agrees) && llvm::all_of(cluster.getOutputs(), agrees);
}

/// The map of an operand or result of a cluster, which may have to be split first.
static bool mayMove(AffineMap map, ClusterOp cluster, const Rows &rows, bool maySplit) {
  bool isWhole = map.isIdentity();
  return moveMap(map, cluster.getDims(), rows) || (isWhole && maySplit);
}

/// The results, the residual and what a gradient is taken at lie alike.
bool Padder::mayPadResults(GemmOp gemm, const Rows &rows) const {
  if (static_cast<int64_t>(gemm.getN()) != rows.width || gemm.getLdc())
    return false;
  return llvm::all_of(getMatrices(gemm), [&](Value result) { return isPadded(result, rows); }) &&
         llvm::all_of(ValueRange{gemm.getResidual(), gemm.getSavedPreActivation()},
                      [&](Value matrix) { return !matrix || isPadded(matrix, rows); });
}

bool Padder::mayPadUse(OpOperand &use, const Rows &rows) const {
  if (auto cluster = dyn_cast<ClusterOp>(use.getOwner())) {
    unsigned i = use.getOperandNumber();
    return !llvm::is_contained(cluster.getGuarded(), static_cast<int64_t>(i)) &&
           mayMove(cluster.getOperandMap(i), cluster, rows, maySplit(cluster, rows));
  }
  auto gemm = dyn_cast<GemmOp>(use.getOwner());
  if (!gemm)
    return false;
  bool isSaved = gemm.getSavedPreActivation() && use.getOperandNumber() + 1 == gemm->getNumOperands();
  if (isSaved || (gemm.getResidual() && use.getOperandNumber() == 2))
    return mayPadResults(gemm, rows);
  if (use.getOperandNumber() > 1) // the bias
    return false;
  View view = getView(gemm, use.getOperandNumber() == 0);
  return view.ld % rows.width == 0 && view.stride % rows.width == 0 &&
         view.offset % rows.width + view.columns <= rows.width;
}

bool Padder::mayPad(Value value, const Rows &rows) const {
  if (auto gemm = value.getDefiningOp<GemmOp>()) {
    if (!mayPadResults(gemm, rows))
      return false;
  } else {
    auto cluster = value.getDefiningOp<ClusterOp>();
    AffineMap map = cluster.getResultMap(cast<OpResult>(value).getResultNumber());
    if (!mayMove(map, cluster, rows, maySplit(cluster, rows)))
      return false;
  }
  return llvm::all_of(value.getUses(), [&](OpOperand &use) { return mayPadUse(use, rows); });
}

/// Makes `cluster` one of rows of `width` elements.
static void split(ClusterOp cluster, int64_t width) {
  OpBuilder builder(cluster.getBodyBlock(), cluster.getBodyBlock()->begin());
  AffineExpr element = builder.getAffineDimExpr(0) * width + builder.getAffineDimExpr(1);
  auto splitMaps = [&](ArrayAttr maps) {
    SmallVector<AffineMap> split;
    for (AffineMap map : maps.getAsValueRange<AffineMapAttr>()) {
      AffineExpr expr = map.getResult(0).replace(builder.getAffineDimExpr(0), element);
      split.push_back(AffineMap::get(2, map.getNumSymbols(), simplifyAffineExpr(expr, 2, map.getNumSymbols())));
    }
    return builder.getAffineMapArrayAttr(split);
  };
  cluster.setOperandMapsAttr(splitMaps(cluster.getOperandMaps()));
  cluster.setResultMapsAttr(splitMaps(cluster.getResultMaps()));
  cluster.setDims({cluster.getDims()[0] / width, width});
  for (auto index : llvm::make_early_inc_range(cluster.getBodyBlock()->getOps<kernel::IndexOp>())) {
    builder.setInsertionPoint(index);
    Location loc = index.getLoc();
    Value row = kernel::IndexOp::create(builder, loc, 0), column = kernel::IndexOp::create(builder, loc, 1);
    Value first = arith::MulIOp::create(builder, loc, row, arith::ConstantIndexOp::create(builder, loc, width));
    index.replaceAllUsesWith(arith::AddIOp::create(builder, loc, first, column).getResult());
    index.erase();
  }
}

/// Splits the clusters of one dim whose matrices are padded.
void Padder::splitClusters() {
  auto needsSplit = [&](Value value, AffineMap map, ClusterOp cluster) -> int64_t {
    auto it = padded.find(value);
    return it != padded.end() && !moveMap(map, cluster.getDims(), it->second) ? it->second.width : 0;
  };
  func.walk([&](ClusterOp cluster) {
    int64_t width = 0;
    for (auto [i, input] : llvm::enumerate(cluster.getInputs()))
      width = std::max(width, needsSplit(input, cluster.getOperandMap(i), cluster));
    for (auto [i, output] : llvm::enumerate(cluster.getOutputs()))
      width = std::max(width, needsSplit(output, cluster.getResultMap(i), cluster));
    if (width > 0)
      split(cluster, width);
  });
}

void Padder::pad(Value value, const Rows &rows) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  if (!shape.empty() && shape.back() == rows.width)
    shape.back() = rows.ld;
  else
    shape = {type.getNumElements() / rows.width, rows.ld};
  value.setType(type.clone(shape));
  Builder builder(func.getContext());
  auto moved = [&](ArrayAttr maps, unsigned i, ClusterOp cluster) {
    SmallVector<Attribute> all(maps.getValue());
    all[i] = AffineMapAttr::get(*moveMap(cast<AffineMapAttr>(maps[i]).getValue(), cluster.getDims(), rows));
    return builder.getArrayAttr(all);
  };
  if (auto gemm = value.getDefiningOp<GemmOp>())
    gemm.setLdc(rows.ld);
  else if (auto cluster = value.getDefiningOp<ClusterOp>())
    cluster.setResultMapsAttr(moved(cluster.getResultMaps(), cast<OpResult>(value).getResultNumber(), cluster));
  for (OpOperand &use : value.getUses()) {
    unsigned i = use.getOperandNumber();
    if (auto cluster = dyn_cast<ClusterOp>(use.getOwner())) {
      cluster.setOperandMapsAttr(moved(cluster.getOperandMaps(), i, cluster));
      continue;
    }
    auto gemm = cast<GemmOp>(use.getOwner());
    if (i == 0) {
      gemm.setLda(gemm.getLda() / rows.width * rows.ld);
      gemm.setAOffset(rows.move(gemm.getAOffset()));
      gemm.setAStride(gemm.getAStride() / rows.width * rows.ld);
    } else if (i == 1) {
      gemm.setLdb(gemm.getLdb() / rows.width * rows.ld);
      gemm.setBOffset(rows.move(gemm.getBOffset()));
      gemm.setBStride(gemm.getBStride() / rows.width * rows.ld);
    }
  }
}

/// Pads `value` where `other` is, and a cluster that has both may write one of them over the other.
bool Padder::padAlike(Value value, AffineMap map, Value other, AffineMap otherMap) {
  auto it = padded.find(other);
  Type type = value.getType(), otherType = other.getType();
  if (it == padded.end() || padded.contains(value) || map != otherMap || !value.getDefiningOp<ClusterOp>() ||
      kernel::getElementBytes(type) != kernel::getElementBytes(otherType) ||
      kernel::getNumElements(type) != kernel::getNumElements(otherType))
    return false;
  Rows rows = it->second;
  return mayPad(value, rows) && padded.insert({value, rows}).second;
}

/// Takes along what clusters compute in place on the way from or to a padded matrix.
void Padder::padInPlace() {
  bool isNew = true;
  auto visit = [&](ClusterOp cluster) {
    for (auto [i, input] : llvm::enumerate(cluster.getInputs()))
      for (auto [j, output] : llvm::enumerate(cluster.getOutputs())) {
        AffineMap from = cluster.getOperandMap(i), to = cluster.getResultMap(j);
        bool padsOutput = padAlike(output, to, input, from), padsInput = padAlike(input, from, output, to);
        isNew |= padsOutput || padsInput;
      }
  };
  while (isNew) {
    isNew = false;
    func.walk(visit);
  }
}

void Padder::run() {
  collect();
  // What may not be padded takes along what would have to lie as it does.
  for (size_t before = padded.size() + 1; padded.size() != before;) {
    before = padded.size();
    padded.remove_if([&](auto &entry) { return !mayPad(entry.first, entry.second); });
  }
  padInPlace();
  splitClusters();
  for (auto &[value, rows] : padded)
    pad(value, rows);
}

namespace {
struct PadLeadingDimsPass : FunctionPass<spmd::impl::PadLeadingDimsPassBase<PadLeadingDimsPass>> {
  using FunctionPass::FunctionPass;

  LogicalResult initialize(MLIRContext *context) override {
    std::string bad = findBadRowAlignment(alignment);
    if (bad.empty())
      return success();
    return emitError(UnknownLoc::get(context), "spmd-pad-leading-dims: alignment=")
           << alignment.getValue() << ": " << bad;
  }

  LogicalResult runOnFunction(func::FuncOp func, IRRewriter &, SegmentListener &) override {
    if (alignment > 1)
      Padder(func, alignment).run();
    return success();
  }
};
} // namespace

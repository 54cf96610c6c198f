//===- Pieces.h - Rows cut apart or put side by side ------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_PIECES_H
#define SPMD_DIALECTS_ATEN_PIECES_H

#include <cstdint>

namespace spmd::aten {

/// What an op does that cuts dimension `dim` of its operand into pieces, or puts its operands side by side along it.
/// One that makes or reads a single piece has every `step`-th row from `start` on; if it makes the whole, zeros
/// elsewhere.
struct Pieces {
  int64_t dim, start, step;
};

/// For `rowPieces` of an op in the .td files.
inline Pieces piecesAlong(int64_t dim, int64_t start = 0, int64_t step = 1) { return {dim, start, step}; }

} // namespace spmd::aten

#endif // SPMD_DIALECTS_ATEN_PIECES_H

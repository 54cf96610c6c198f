//===- GemmBF16Squares.h - Operands of AMX in memory -------------*- C++ -*-===//
//
// AMX multiplies a tile of 16 rows by 32 of k with one of 32 of k by 16 columns, whose rows hold pairs of
// neighbours along k. Operands are packed two tiles at a time, as squares: 32 rows of A or 32 columns of B by
// 32 of k, 2,048 bytes.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_HOST_GEMMBF16SQUARES_H
#define SPMD_RUNTIME_HOST_GEMMBF16SQUARES_H

#include <cstdint>

namespace spmd::runtime {

constexpr int64_t kSquareSide = 32, kSquareElements = kSquareSide * kSquareSide;

/// Packs a part, one of kSquareParts, of 32 x 32 elements in rows `ld` apart to `to`, which begins at a line of the
/// cache. Parts are short, so that the processor hides them behind the products that come before.
using PackPart = void (*)(const uint16_t *from, int64_t ld, uint16_t *to, int64_t part);
constexpr int64_t kSquareParts = 4;

/// Rows as they lie: of A, if consecutive k lie side by side.
void copyPart(const uint16_t *from, int64_t ld, uint16_t *to, int64_t part);
/// Rows become columns: of A, if its rows lie side by side.
void transposePart(const uint16_t *from, int64_t ld, uint16_t *to, int64_t part);
/// Two tiles of 16 columns each, in pairs of rows: of B, if its columns lie side by side.
void pairRowsPart(const uint16_t *from, int64_t ld, uint16_t *to, int64_t part);
/// The same of the transpose: of B, if consecutive k lie side by side.
void pairColumnsPart(const uint16_t *from, int64_t ld, uint16_t *to, int64_t part);

/// `rows` x `columns` elements, at most 32 x 32, from and to rows that lie apart. What loads do not find is zero.
void loadPart(const uint16_t *from, int64_t ld, int64_t rows, int64_t columns, uint16_t *to);
void storePart(const uint16_t *from, uint16_t *to, int64_t ld, int64_t rows, int64_t columns);

/// Sums of 32 x 32 elements as AMX stores them, four tiles of 16 x 16: (0, 0), (0, 1), (1, 0), (1, 1).
void widenToTiles(const uint16_t *from, float *tiles);
/// A part: eight rows.
void roundPart(const float *tiles, uint16_t *to, int64_t ld, int64_t part);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_GEMMBF16SQUARES_H

//===- Layout.h - linear maps from a flat index to elements -----*- C++ -*-===//
//
// A view moves no bytes: it says where the elements of a logical tensor lie in another one. Every view that this
// compiler folds is a *mixed-radix linear* map: the row-major flat index of the logical tensor is written in digits
// ("modes"), each digit is multiplied by a stride, and an offset is added:
//
//     permute of tensor<2x3x4> by (2, 0, 1):   digits of sizes 4, 2, 3 with strides 1, 12, 4, offset 0
//     expand of tensor<3> to 2x3:              digits of sizes 2, 3 with strides 0, 1
//     rank r's rows of tensor<8x3>, 4 ranks:   one digit of size 6 with stride 1, offset 6 * coordinate
//
// Reshapes need no work at all because digits are digits of the *flat* index. A view that is not such a map (merging
// dims whose elements are not equally spaced and then cutting through the middle of them) has no layout, and is copied.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_GRAPH_LAYOUT_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_GRAPH_LAYOUT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <optional>

namespace spmd {

/// One digit of a flat index: `size` values, `stride` elements apart.
struct Mode {
  int64_t size;
  int64_t stride;
  bool operator==(const Mode &other) const { return size == other.size && stride == other.stride; }
};

/// Product of the sizes; 1 for rank 0.
int64_t numElements(llvm::ArrayRef<int64_t> shape);

/// A linear map from the flat index of a logical tensor to element numbers. Always in canonical form (no digits of size
/// one, neighbours merged wherever they can be), so that two equal maps compare equal.
class Layout {
public:
  /// The identity on `count` elements.
  static Layout contiguous(int64_t count);
  /// The map given by `modes`, outermost digit first.
  static Layout get(llvm::ArrayRef<Mode> modes, int64_t offset = 0, llvm::ArrayRef<int64_t> coordStrides = {});
  /// All `count` indices go to element 0.
  static Layout broadcastScalar(int64_t count);

  llvm::ArrayRef<Mode> getModes() const { return modes; }
  int64_t getOffset() const { return offset; }
  /// Elements added per unit of each mesh coordinate; shorter than the mesh when the rest are zero.
  llvm::ArrayRef<int64_t> getCoordStrides() const { return coordStrides; }
  int64_t getNumElements() const { return count; }
  /// True for the identity map: element i is index i.
  bool isIdentity() const;
  /// True if the map is the same for all indices.
  bool isConstant() const;
  /// True if the map takes every element once: dims turned or flipped.
  bool isPermutation() const;
  /// Smallest and one past the largest element reached at coordinate zero.
  std::pair<int64_t, int64_t> getRange() const;

  /// The modes of each dim of `shape` (whose product is the element count), outermost first, with the digits cut at
  /// the borders of the dims; nothing if a digit cannot be cut there.
  std::optional<llvm::SmallVector<llvm::SmallVector<Mode, 2>>> splitByShape(llvm::ArrayRef<int64_t> shape) const;

  /// The layout of this view, of shape `shape`, after a permutation of its dims.
  std::optional<Layout> permute(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> permutation) const;
  /// ... after right-aligned broadcasting to `newShape`.
  std::optional<Layout> expand(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> newShape) const;
  /// ... after keeping `length` positions of `dim`: start, start + step, ...
  std::optional<Layout> slice(llvm::ArrayRef<int64_t> shape, int64_t dim, int64_t start, int64_t step,
                              int64_t length) const;
  /// ... after repeating `dim` `times` times, each time `elements` further on.
  std::optional<Layout> repeat(llvm::ArrayRef<int64_t> shape, int64_t dim, int64_t times, int64_t elements) const;
  /// ... after keeping the rows of this rank in a dim seen as [pre][rows]: `length` rows, the first of which is row
  /// `length * Σ group[i] * coordinate i`.
  std::optional<Layout> sliceRank(llvm::ArrayRef<int64_t> shape, int64_t dim, int64_t pre,
                                  llvm::ArrayRef<int64_t> group, int64_t length) const;
  /// ... after adding `elements` to every element number.
  Layout shift(int64_t elements) const;

  /// The map `index -> this(inner(index))`, where every digit of `inner` runs over a digit of this map's index,
  /// forwards or backwards (which is so for positions in an iteration space, permutations and flips). Nothing if some
  /// digit of `inner` cuts a digit of this map unevenly, or if the smallest index that `inner` gives is not zero.
  std::optional<Layout> compose(const Layout &inner) const;

  /// Stride along each of `dims` (sizes with the element count as product); nothing if a dim spans several digits.
  std::optional<llvm::SmallVector<int64_t>> getStrides(llvm::ArrayRef<int64_t> dims) const;
  /// Products of the sizes inside each digit border: the places where an iteration space must be cut so that this map
  /// has one stride per dim. Ascending, without 1 and the element count.
  llvm::SmallVector<int64_t> getBorders() const;

  bool operator==(const Layout &other) const;
  bool operator!=(const Layout &other) const { return !(*this == other); }

private:
  Layout() = default;
  /// Appends to `digits` what the map does along indices that are `stride` apart, `size` of them.
  bool appendDigits(int64_t size, int64_t stride, llvm::SmallVectorImpl<Mode> &digits) const;

  llvm::SmallVector<Mode, 4> modes;
  llvm::SmallVector<int64_t, 1> coordStrides;
  int64_t offset = 0;
  int64_t count = 1;
};

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_GRAPH_LAYOUT_H

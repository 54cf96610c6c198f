//===- LayoutTest.cpp - views as linear maps ------------------------------===//
//
// Layouts are compared, element by element, with what the views do to a table of element numbers.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AtenToKernel/Graph/Layout.h"
#include "gtest/gtest.h"
#include <numeric>

using namespace spmd;
using Shape = llvm::SmallVector<int64_t>;

namespace {

/// A tensor of element numbers, row-major.
struct Table {
  Shape shape;
  std::vector<int64_t> elements;

  static Table iota(Shape shape) {
    Table table{shape, std::vector<int64_t>(numElements(shape))};
    std::iota(table.elements.begin(), table.elements.end(), 0);
    return table;
  }

  int64_t at(llvm::ArrayRef<int64_t> index) const {
    int64_t flat = 0;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      flat = flat * shape[dim] + index[dim];
    return elements[flat];
  }
};

/// Calls `visit` with all indices of `shape` in row-major order.
template <typename Fn>
void forEachIndex(llvm::ArrayRef<int64_t> shape, Fn visit) {
  Shape index(shape.size(), 0);
  for (int64_t flat = 0; flat < numElements(shape); ++flat) {
    int64_t rest = flat;
    for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
      index[dim] = rest % shape[dim];
      rest /= shape[dim];
    }
    visit(index);
  }
}

std::vector<int64_t> evaluate(const Layout &layout, llvm::ArrayRef<int64_t> coords = {}) {
  std::vector<int64_t> elements;
  for (int64_t flat = 0; flat < layout.getNumElements(); ++flat) {
    int64_t rest = flat, element = layout.getOffset();
    for (auto mode = layout.getModes().rbegin(); mode != layout.getModes().rend(); ++mode) {
      element += rest % mode->size * mode->stride;
      rest /= mode->size;
    }
    for (size_t i = 0; i < layout.getCoordStrides().size(); ++i)
      element += layout.getCoordStrides()[i] * coords[i];
    elements.push_back(element);
  }
  return elements;
}

Table permuted(const Table &table, llvm::ArrayRef<int64_t> permutation) {
  Table result;
  for (int64_t dim : permutation)
    result.shape.push_back(table.shape[dim]);
  forEachIndex(result.shape, [&](llvm::ArrayRef<int64_t> index) {
    Shape source(index.size());
    for (size_t dim = 0; dim < index.size(); ++dim)
      source[permutation[dim]] = index[dim];
    result.elements.push_back(table.at(source));
  });
  return result;
}

Table sliced(const Table &table, int64_t dim, int64_t start, int64_t step, int64_t length) {
  Table result;
  result.shape = table.shape;
  result.shape[dim] = length;
  forEachIndex(result.shape, [&](llvm::ArrayRef<int64_t> index) {
    Shape source(index.begin(), index.end());
    source[dim] = start + step * index[dim];
    result.elements.push_back(table.at(source));
  });
  return result;
}

TEST(Layout, PermuteReshapePermute) {
  // The way of the heads: [B, T, H, d] to [B, H, T, d] and back to [B, T, H * d].
  Table table = Table::iota({2, 5, 3, 4});
  Table heads = permuted(table, {0, 2, 1, 3});
  Layout layout = *Layout::contiguous(120).permute({2, 5, 3, 4}, {0, 2, 1, 3});
  EXPECT_EQ(evaluate(layout), heads.elements);
  Layout back = *layout.permute({2, 3, 5, 4}, {0, 2, 1, 3});
  EXPECT_TRUE(back.isIdentity());
}

TEST(Layout, SliceOfMergedDims) {
  Table table = Table::iota({4, 6, 10});
  Layout layout = *Layout::contiguous(240).slice({4, 6, 10}, 2, 3, 2, 3);
  EXPECT_EQ(evaluate(layout), sliced(table, 2, 3, 2, 3).elements);
  // [4, 6, 3] as [24, 3] is still linear; a cut through merged unequal strides is not.
  EXPECT_TRUE(layout.permute({24, 3}, {1, 0}));
  EXPECT_FALSE(layout.permute({18, 4}, {1, 0}));
  EXPECT_FALSE(layout.slice({72}, 0, 1, 1, 9));
}

TEST(Layout, ExpandIsRightAligned) {
  Layout layout = *Layout::contiguous(3).expand({3, 1}, {2, 3, 4});
  std::vector<int64_t> expected;
  forEachIndex(Shape{2, 3, 4}, [&](llvm::ArrayRef<int64_t> index) { expected.push_back(index[1]); });
  EXPECT_EQ(evaluate(layout), expected);
  EXPECT_TRUE(Layout::contiguous(1).expand({}, {2, 3})->isConstant());
}

TEST(Layout, RowsOfARank) {
  // Dim 1 of [3, 8, 2] as [2][4] rows, two ranks with 2 rows each.
  Table table = Table::iota({3, 2, 4, 2});
  Layout layout = *Layout::contiguous(48).sliceRank({3, 8, 2}, 1, 2, {1}, 2);
  for (int64_t rank : {0, 1})
    EXPECT_EQ(evaluate(layout, {rank}), sliced(table, 2, 2 * rank, 1, 2).elements);
}

TEST(Layout, EqualMapsCompareEqual) {
  Layout twice = *Layout::contiguous(24).permute({4, 6}, {1, 0});
  EXPECT_EQ(*twice.permute({6, 4}, {1, 0}), Layout::contiguous(24));
  EXPECT_EQ(Layout::get({{2, 12}, {3, 4}, {4, 1}}), Layout::contiguous(24));
  EXPECT_EQ(Layout::get({{1, 7}, {5, 1}}), Layout::contiguous(5));
  EXPECT_NE(Layout::contiguous(24).shift(1), Layout::contiguous(24));
}

TEST(Layout, ComposeWithPosition) {
  // Rows of [6, 4] as they are read through a position that is constant along 5 columns.
  Layout rows = Layout::get({{6, 1}, {5, 0}});
  Layout expanded = *Layout::contiguous(6).expand({6, 1}, {6, 5});
  EXPECT_EQ(expanded, rows);
  Layout transposed = *Layout::contiguous(30).permute({6, 5}, {1, 0});
  EXPECT_EQ(*transposed.compose(Layout::contiguous(30)), transposed);
  Layout composed = *transposed.compose(*Layout::contiguous(30).permute({5, 6}, {1, 0}));
  EXPECT_TRUE(composed.isIdentity());
  EXPECT_FALSE(transposed.compose(Layout::get({{2, 15}, {3, 5}, {5, 1}}).shift(1)));
}

TEST(Layout, FlippedHalves) {
  // cat(b, a) of x = [a, b] of 3 each, in rows of 6: the second half, repeated 3 elements further back.
  Table table = Table::iota({4, 2, 3});
  Layout second = *Layout::contiguous(24).slice({4, 6}, 1, 3, 1, 3);
  Layout turned = *second.repeat({4, 3}, 1, 2, -3);
  EXPECT_EQ(evaluate(turned), sliced(table, 1, 1, -1, 2).elements);
  EXPECT_TRUE(turned.isPermutation());
  EXPECT_TRUE(turned.compose(turned)->isIdentity());
  // Read through it, a permutation of other dims stays what it was.
  Layout heads = *Layout::contiguous(24).permute({2, 2, 6}, {1, 0, 2});
  Table expected = sliced(Table{{2, 2, 2, 3}, evaluate(heads)}, 2, 1, -1, 2);
  EXPECT_EQ(evaluate(*heads.compose(turned)), expected.elements);
}

TEST(Layout, Permutations) {
  EXPECT_TRUE(Layout::contiguous(24).permute({2, 3, 4}, {2, 0, 1})->isPermutation());
  EXPECT_FALSE(Layout::contiguous(24).slice({4, 6}, 1, 3, 1, 3)->isPermutation());
  EXPECT_FALSE(Layout::contiguous(6).expand({6, 1}, {6, 5})->isPermutation());
  EXPECT_FALSE(Layout::contiguous(24).shift(1).isPermutation());
  EXPECT_FALSE(Layout::contiguous(24).slice({24}, 0, 0, 2, 12)->isPermutation());
}

TEST(Layout, StridesAndBorders) {
  Layout layout = *Layout::contiguous(24).permute({2, 3, 4}, {1, 0, 2});
  EXPECT_EQ(layout.getBorders(), (llvm::SmallVector<int64_t>{4, 8}));
  EXPECT_EQ(*layout.getStrides({3, 2, 4}), (llvm::SmallVector<int64_t>{4, 12, 1}));
  EXPECT_EQ(*layout.getStrides({3, 2, 2, 2}), (llvm::SmallVector<int64_t>{4, 12, 2, 1}));
  EXPECT_FALSE(layout.getStrides({6, 4}));
}

} // namespace

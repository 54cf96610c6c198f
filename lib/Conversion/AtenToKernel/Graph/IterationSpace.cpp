//===- IterationSpace.cpp - where values lie in a cluster -----------------===//

#include "IterationSpace.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace spmd::fusion {

/// Reductions of columns with fewer blocks than this run in a space of their own.
constexpr int64_t kFewBlocks = 16;
/// Columns per block of such a reduction, at most.
constexpr int64_t kColumnBlock = 64;

static int64_t getSpaceSize(const Node *node) {
  return node->kind == NodeKind::Reduce ? node->outer * node->extent * node->inner : node->getNumElements();
}

bool canCut(int64_t count, SmallVector<int64_t> &borders, Digit row, Digit column) {
  for (Digit digit : {row, column}) {
    if (digit.isEmpty())
      continue;
    borders.push_back(digit.inner);
    borders.push_back(digit.outer);
  }
  llvm::sort(borders);
  borders.erase(llvm::unique(borders), borders.end());
  llvm::erase_if(borders, [&](int64_t border) { return border == 1 || border == count; });
  int64_t inner = 1;
  for (int64_t border : borders) {
    if (border % inner != 0)
      return false;
    inner = border;
    for (Digit digit : {row, column})
      if (digit.inner < border && border < digit.outer)
        return false;
  }
  return count % inner == 0;
}

bool hasOwnSpace(const Node *node) { return node->isColumnReduce() && node->outer < kFewBlocks; }

// [outer, column block, extent, columns of a block] for a reduction with its own space.
Layout getFirstPosition(const Node *node) {
  if (!hasOwnSpace(node))
    return Layout::contiguous(getSpaceSize(node));
  int64_t columns = std::min(node->inner, kColumnBlock);
  while (node->inner % columns != 0)
    --columns;
  return Layout::get({{node->outer, node->extent * node->inner},
                      {node->inner / columns, columns},
                      {node->extent, node->inner},
                      {columns, 1}});
}

std::optional<Digit> getReducedDigit(const Node *node, const Layout &inputPosition) {
  int64_t low = node->inner, high = node->inner * node->extent, distance = 1;
  for (const Mode &mode : llvm::reverse(inputPosition.getModes())) {
    int64_t outermost = mode.stride * mode.size;
    if (mode.stride != 0 && mode.stride <= low && outermost >= high) {
      if (low % mode.stride != 0 || outermost % high != 0)
        return std::nullopt;
      int64_t inner = distance * (low / mode.stride);
      return Digit{inner, inner * node->extent};
    }
    distance *= mode.size;
  }
  return std::nullopt;
}

SmallVector<int64_t> cutSpace(int64_t count, ArrayRef<int64_t> borders) {
  SmallVector<int64_t> dims;
  for (int64_t border : llvm::reverse(borders)) {
    dims.push_back(count / border);
    count = border;
  }
  dims.push_back(count);
  return dims;
}

std::optional<Layout> getReadLayout(const Ref &ref, const Layout &position) {
  if (position.isIdentity())
    return ref.layout;
  return ref.layout.compose(position);
}

Layout getReducePosition(const Node *node, const Layout &inputPosition) {
  int64_t low = node->inner, high = node->inner * node->extent;
  SmallVector<Mode> modes;
  auto append = [&](int64_t size, int64_t stride) {
    if (stride == 0 || stride < low)
      modes.push_back({size, stride});
    else if (stride >= high)
      modes.push_back({size, stride / node->extent});
    else
      modes.push_back({size, 0});
  };
  for (const Mode &mode : inputPosition.getModes()) {
    // Cut the digit at both ends of the reduced range, outermost part first.
    SmallVector<Mode, 3> parts = {mode};
    for (int64_t cut : {high, low}) {
      Mode last = parts.back();
      if (last.stride == 0 || cut <= last.stride || cut >= last.stride * last.size || cut % last.stride != 0)
        continue;
      int64_t inner = cut / last.stride;
      parts.back() = {last.size / inner, cut};
      parts.push_back({inner, last.stride});
    }
    for (const Mode &part : parts)
      append(part.size, part.stride);
  }
  return Layout::get(modes);
}

bool isChunkRead(const Node &node, const Layout &layout) {
  switch (node.kind) {
  case NodeKind::Constant:
    return !isa<ElementsAttr>(node.constant);
  case NodeKind::Iota:
    return false;
  default:
    return layout.isIdentity() || (node.getNumElements() == 1 && layout.isConstant());
  }
}

bool isReadableAlone(const Node *node, ArrayRef<Ref> refs) {
  Layout position = getFirstPosition(node);
  Digit row, column;
  if (node->kind == NodeKind::Reduce) {
    std::optional<Digit> digit = getReducedDigit(node, position);
    if (!digit)
      return false;
    (node->isColumnReduce() ? column : row) = *digit;
  }
  SmallVector<int64_t> borders;
  for (const Ref &ref : refs) {
    if (node->unit && (ref.guarded || !isChunkRead(*ref.node, ref.layout)))
      return false;
    // Only a chunk knows the segments of its elements.
    if (ref.node->kind == NodeKind::SegmentBroadcast && !node->unit)
      return false;
    std::optional<Layout> layout = getReadLayout(ref, position);
    if (!layout)
      return false;
    llvm::append_range(borders, layout->getBorders());
  }
  return canCut(position.getNumElements(), borders, row, column);
}

} // namespace spmd::fusion

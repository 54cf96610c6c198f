//===- Layout.cpp - linear maps from a flat index to elements -------------===//

#include "Layout.h"

#include "llvm/ADT/STLExtras.h"

using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::SmallVectorImpl;

namespace spmd {

int64_t numElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

Layout Layout::get(ArrayRef<Mode> modes, int64_t offset, ArrayRef<int64_t> coordStrides) {
  Layout result;
  result.offset = offset;
  result.coordStrides.assign(coordStrides.begin(), coordStrides.end());
  while (!result.coordStrides.empty() && result.coordStrides.back() == 0)
    result.coordStrides.pop_back();
  for (Mode mode : modes) {
    result.count *= mode.size;
    if (mode.size == 1)
      continue;
    if (!result.modes.empty()) {
      Mode &outer = result.modes.back();
      if (outer.stride == mode.stride * mode.size) {
        outer = {outer.size * mode.size, mode.stride};
        continue;
      }
    }
    result.modes.push_back(mode);
  }
  return result;
}

Layout Layout::contiguous(int64_t count) { return get({{count, 1}}); }

Layout Layout::broadcastScalar(int64_t count) { return get({{count, 0}}); }

bool Layout::isConstant() const {
  return llvm::all_of(modes, [](const Mode &mode) { return mode.stride == 0; });
}

bool Layout::isIdentity() const {
  if (offset != 0 || !coordStrides.empty())
    return false;
  return modes.empty() || (modes.size() == 1 && modes.front().stride == 1);
}

bool Layout::isPermutation() const {
  if (getRange().first != 0 || !coordStrides.empty())
    return false;
  SmallVector<Mode> sorted(modes.begin(), modes.end());
  llvm::sort(sorted, [](const Mode &a, const Mode &b) { return std::abs(a.stride) < std::abs(b.stride); });
  int64_t distance = 1;
  for (const Mode &mode : sorted) {
    if (std::abs(mode.stride) != distance)
      return false;
    distance *= mode.size;
  }
  return true;
}

std::pair<int64_t, int64_t> Layout::getRange() const {
  int64_t low = offset, high = offset;
  for (const Mode &mode : modes)
    (mode.stride < 0 ? low : high) += mode.stride * (mode.size - 1);
  return {low, high + 1};
}

bool Layout::appendDigits(int64_t size, int64_t stride, SmallVectorImpl<Mode> &digits) const {
  if (size == 1)
    return true;
  if (stride == 0) {
    digits.push_back({size, 0});
    return true;
  }
  // Walk the digits from the innermost one; `inner` is the index distance of the current digit. The wanted indices are
  // those between `stride` and `stride * size`.
  SmallVector<Mode, 4> reversed;
  int64_t inner = 1;
  for (const Mode &mode : llvm::reverse(modes)) {
    int64_t outer = inner * mode.size;
    int64_t low = std::max(inner, stride), high = std::min(outer, stride * size);
    if (low < high) {
      if (low % inner != 0 || high % low != 0 || outer % high != 0)
        return false;
      reversed.push_back({high / low, mode.stride * (low / inner)});
    }
    inner = outer;
  }
  int64_t covered = 1;
  for (const Mode &mode : reversed)
    covered *= mode.size;
  if (covered != size)
    return false;
  digits.append(reversed.rbegin(), reversed.rend());
  return true;
}

std::optional<SmallVector<SmallVector<Mode, 2>>> Layout::splitByShape(ArrayRef<int64_t> shape) const {
  SmallVector<SmallVector<Mode, 2>> dims(shape.size());
  int64_t stride = 1;
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 1; dim >= 0; --dim) {
    if (!appendDigits(shape[dim], stride, dims[dim]))
      return std::nullopt;
    stride *= shape[dim];
  }
  return dims;
}

/// The concatenation of the digits of all dims.
static SmallVector<Mode> flatten(ArrayRef<SmallVector<Mode, 2>> dims) {
  SmallVector<Mode> modes;
  for (const SmallVector<Mode, 2> &dim : dims)
    modes.append(dim.begin(), dim.end());
  return modes;
}

std::optional<Layout> Layout::permute(ArrayRef<int64_t> shape, ArrayRef<int64_t> permutation) const {
  auto dims = splitByShape(shape);
  if (!dims)
    return std::nullopt;
  SmallVector<SmallVector<Mode, 2>> permuted;
  for (int64_t dim : permutation)
    permuted.push_back((*dims)[dim]);
  return get(flatten(permuted), offset, coordStrides);
}

std::optional<Layout> Layout::expand(ArrayRef<int64_t> shape, ArrayRef<int64_t> newShape) const {
  auto dims = splitByShape(shape);
  if (!dims)
    return std::nullopt;
  size_t added = newShape.size() - shape.size();
  SmallVector<SmallVector<Mode, 2>> expanded(newShape.size());
  for (size_t dim = 0; dim < newShape.size(); ++dim) {
    if (dim < added || (shape[dim - added] == 1 && newShape[dim] != 1))
      expanded[dim].push_back({newShape[dim], 0});
    else
      expanded[dim] = (*dims)[dim - added];
  }
  return get(flatten(expanded), offset, coordStrides);
}

/// The digits of `dim` merged into one; nothing if they are not equally spaced.
static std::optional<Mode> asOneMode(ArrayRef<Mode> dim, int64_t size) {
  Layout merged = Layout::get(dim);
  if (merged.getModes().empty())
    return Mode{size, 0};
  if (merged.getModes().size() != 1)
    return std::nullopt;
  return merged.getModes().front();
}

std::optional<Layout> Layout::slice(ArrayRef<int64_t> shape, int64_t dim, int64_t start, int64_t step,
                                    int64_t length) const {
  if (start == 0 && step == 1 && length == shape[dim])
    return *this;
  auto dims = splitByShape(shape);
  if (!dims)
    return std::nullopt;
  std::optional<Mode> mode = asOneMode((*dims)[dim], shape[dim]);
  if (!mode)
    return std::nullopt;
  int64_t newOffset = offset + start * mode->stride;
  (*dims)[dim] = {{length, mode->stride * step}};
  return get(flatten(*dims), newOffset, coordStrides);
}

std::optional<Layout> Layout::repeat(ArrayRef<int64_t> shape, int64_t dim, int64_t times, int64_t elements) const {
  auto dims = splitByShape(shape);
  if (!dims)
    return std::nullopt;
  (*dims)[dim].insert((*dims)[dim].begin(), {times, elements});
  return get(flatten(*dims), offset, coordStrides);
}

std::optional<Layout> Layout::sliceRank(ArrayRef<int64_t> shape, int64_t dim, int64_t pre, ArrayRef<int64_t> group,
                                        int64_t length) const {
  SmallVector<int64_t> split(shape.begin(), shape.begin() + dim);
  split.push_back(pre);
  split.push_back(shape[dim] / pre);
  split.append(shape.begin() + dim + 1, shape.end());
  auto dims = splitByShape(split);
  if (!dims)
    return std::nullopt;
  std::optional<Mode> mode = asOneMode((*dims)[dim + 1], split[dim + 1]);
  if (!mode)
    return std::nullopt;
  SmallVector<int64_t> coords(coordStrides.begin(), coordStrides.end());
  coords.resize(std::max(coords.size(), group.size()), 0);
  for (auto [axis, weight] : llvm::enumerate(group))
    coords[axis] += mode->stride * length * weight;
  (*dims)[dim + 1] = {{length, mode->stride}};
  return get(flatten(*dims), offset, coords);
}

Layout Layout::shift(int64_t elements) const {
  Layout result = *this;
  result.offset += elements;
  return result;
}

std::optional<Layout> Layout::compose(const Layout &inner) const {
  if (inner.getRange().first != 0 || !inner.coordStrides.empty())
    return std::nullopt;
  SmallVector<Mode> digits;
  int64_t first = offset;
  for (const Mode &mode : inner.modes) {
    size_t begin = digits.size();
    if (!appendDigits(mode.size, std::abs(mode.stride), digits))
      return std::nullopt;
    if (mode.stride >= 0)
      continue;
    for (Mode &digit : llvm::MutableArrayRef(digits).drop_front(begin)) {
      first += digit.stride * (digit.size - 1);
      digit.stride = -digit.stride;
    }
  }
  Layout result = get(digits, first, coordStrides);
  result.count = inner.count;
  return result;
}

SmallVector<int64_t> Layout::getBorders() const {
  SmallVector<int64_t> borders;
  int64_t inner = 1;
  for (const Mode &mode : llvm::reverse(modes)) {
    inner *= mode.size;
    if (inner != count)
      borders.push_back(inner);
  }
  return borders;
}

std::optional<SmallVector<int64_t>> Layout::getStrides(ArrayRef<int64_t> dims) const {
  auto split = splitByShape(dims);
  if (!split)
    return std::nullopt;
  SmallVector<int64_t> strides;
  for (size_t dim = 0; dim < dims.size(); ++dim) {
    std::optional<Mode> mode = asOneMode((*split)[dim], dims[dim]);
    if (!mode)
      return std::nullopt;
    strides.push_back(mode->stride);
  }
  return strides;
}

bool Layout::operator==(const Layout &other) const {
  return count == other.count && offset == other.offset && modes == other.modes && coordStrides == other.coordStrides;
}

} // namespace spmd

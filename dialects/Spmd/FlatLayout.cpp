//===- FlatLayout.cpp - arithmetic of a unit's flat buffer ----------------===//

#include "dialects/Spmd/FlatLayout.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace spmd {

FlatAttr buildFlatLayout(Type dtype, ArrayRef<FlatParameter> parameters, int64_t ranks) {
  MLIRContext *ctx = dtype.getContext();
  SmallVector<const FlatParameter *> order;
  for (const FlatParameter &parameter : parameters)
    order.push_back(&parameter);
  llvm::sort(order, [](const FlatParameter *a, const FlatParameter *b) {
    return std::tie(a->group, a) < std::tie(b->group, b);
  });
  SmallVector<SegmentAttr> segments;
  int64_t offset = 0;
  for (const FlatParameter *parameter : order) {
    int64_t numel = ShapedType::getNumElements(parameter->shape);
    segments.push_back(SegmentAttr::get(ctx, parameter->name, parameter->shape, parameter->group, offset, numel,
                                        parameter->trainable));
    offset += llvm::alignTo(numel, kSegmentAlignment);
  }
  int64_t padded = llvm::alignTo(offset, ranks * kSegmentAlignment);
  return FlatAttr::get(ctx, dtype, padded, segments);
}

int64_t getSegmentIndex(FlatAttr layout, StringRef name) {
  for (auto [index, segment] : llvm::enumerate(layout.getSegments()))
    if (segment.getName() == name)
      return index;
  return -1;
}

SegmentAttr findSegment(FlatAttr layout, StringRef name) {
  int64_t index = getSegmentIndex(layout, name);
  return index < 0 ? SegmentAttr() : layout.getSegments()[index];
}

} // namespace spmd

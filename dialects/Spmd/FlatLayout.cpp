//===- FlatLayout.cpp - arithmetic of a unit's flat buffer ----------------===//

#include "dialects/Spmd/FlatLayout.h"

using namespace mlir;

namespace spmd {

FlatAttr buildFlatLayout(Type dtype, ArrayRef<FlatParameter> parameters, int64_t ranks) {
  MLIRContext *ctx = dtype.getContext();
  std::vector<int64_t> numels, groups;
  for (const FlatParameter &parameter : parameters) {
    numels.push_back(ShapedType::getNumElements(parameter.shape));
    groups.push_back(parameter.group);
  }
  units::FlatLayout layout = units::layOut(numels, groups, ranks);
  SmallVector<SegmentAttr> segments;
  for (size_t i : layout.order)
    segments.push_back(SegmentAttr::get(ctx, parameters[i].name, parameters[i].shape, parameters[i].group,
                                        layout.offsets[i], numels[i], parameters[i].trainable, parameters[i].tensor));
  return FlatAttr::get(ctx, dtype, layout.padded, segments);
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

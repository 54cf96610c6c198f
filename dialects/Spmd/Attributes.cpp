//===- Attributes.cpp - attributes and their verifiers --------------------===//

#include "dialects/Spmd/AsmFormat.h"
#include "dialects/Spmd/FlatLayout.h"
#include "dialects/Spmd/Spmd.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spmd;

#include "dialects/Spmd/SpmdEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Spmd/SpmdAttrs.cpp.inc"

void SpmdDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Spmd/SpmdAttrs.cpp.inc"
      >();
}

std::string AxisState::str() const {
  if (outer != Outer::same)
    return (outer == Outer::partial ? "partial<sum>, " : "replicated, ") + within(Outer::same).str();
  switch (tag) {
  case Tag::replicated:
    return "replicated";
  case Tag::owned:
    return "owned";
  case Tag::varying:
    return "varying";
  case Tag::partial:
    return ("partial<" + stringifyReduceKind(kind) + ">").str();
  case Tag::shard:
    return "shard<" + std::to_string(dim) + ", " + std::to_string(pre) + ", " + std::to_string(chunk) + ">";
  }
  llvm_unreachable("all tags are handled");
}

LogicalResult SegmentAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef name, ArrayRef<int64_t> shape,
                                  int64_t, int64_t offset, int64_t numel, bool, ShardingAttr tensor) {
  // C1
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  if (count != numel)
    return emitError() << "segment '" << name << "' has numel " << numel << ", but its shape holds " << count
                       << " elements";
  // C2
  if (offset < 0 || offset % kSegmentAlignment != 0)
    return emitError() << "segment '" << name << "' has offset " << offset << ", which is not a multiple of "
                       << kSegmentAlignment;
  // C3
  if (!tensor)
    return success();
  if (tensor.getStates().size() != 1 || !tensor.getStates().front().isShard())
    return emitError() << "segment '" << name << "' is cut over the tensor axis, and says no dimension of it";
  AxisState cut = tensor.getStates().front();
  SmallVector<int64_t> part(tensor.getGlobalShape());
  if (cut.dim >= 0 && cut.dim < static_cast<int64_t>(part.size()))
    part[cut.dim] = cut.pre * cut.chunk;
  if (ArrayRef<int64_t>(part) != shape)
    return emitError() << "segment '" << name << "' has another shape than " << cut.str() << " of its parameter";
  return success();
}

LogicalResult FlatAttr::verify(function_ref<InFlightDiagnostic()> emitError, Type dtype, int64_t padded,
                               ArrayRef<SegmentAttr> segments) {
  // C1
  if (padded % kSegmentAlignment != 0)
    return emitError() << "padded size " << padded << " is not a multiple of " << kSegmentAlignment;
  int64_t end = 0;
  llvm::StringSet<> names;
  for (SegmentAttr segment : segments) {
    // C2
    if (!names.insert(segment.getName()).second)
      return emitError() << "segment '" << segment.getName() << "' is there twice";
    // C3
    if (segment.getOffset() < end)
      return emitError() << "segment '" << segment.getName() << "' at offset " << segment.getOffset()
                         << " overlaps the one before it, which ends at " << end;
    end = segment.getOffset() + segment.getNumel();
  }
  // C4
  if (end > padded)
    return emitError() << "segments end at " << end << ", past the padded size " << padded;
  return success();
}

LogicalResult ShardingAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                           function_ref<InFlightDiagnostic()> emitError) const {
  ArrayRef<int64_t> global = getGlobalShape();
  // C1
  if (global.size() != shape.size())
    return emitError() << "sharding has global rank " << global.size() << ", the tensor has rank " << shape.size();
  SmallVector<int64_t> local(global);
  BitVector sharded(global.size());
  bool owned = false;
  for (const AxisState &state : getStates()) {
    if (state.isOwned()) {
      // C2
      if (global.size() != 1 || global[0] % std::max<int64_t>(shape[0], 1) != 0)
        return emitError() << "an owned chunk is a 1-dim tensor whose size "
                              "divides the flat buffer's";
      owned = true;
    }
    if (!state.isShard())
      continue;
    // C3
    if (state.dim < 0 || state.dim >= static_cast<int64_t>(global.size()))
      return emitError() << "sharded dimension " << state.dim << " is not a dimension of a rank-" << global.size()
                         << " tensor";
    // C4
    if (sharded.test(state.dim))
      return emitError() << "dimension " << state.dim << " is sharded on two mesh axes";
    // C5
    if (state.pre < 1 || global[state.dim] % state.pre != 0)
      return emitError() << "dimension " << state.dim << " of size " << global[state.dim] << " has no " << state.pre
                         << " equal parts";
    sharded.set(state.dim);
    local[state.dim] = state.pre * state.chunk;
  }
  // C6
  if (!owned && llvm::ArrayRef(local) != shape) {
    InFlightDiagnostic diag = emitError() << "local shape must be [";
    llvm::interleaveComma(local, diag);
    diag << "] for this sharding, got [";
    llvm::interleaveComma(shape, diag);
    return diag << "]";
  }
  return success();
}

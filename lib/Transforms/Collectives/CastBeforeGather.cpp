//===- CastBeforeGather.cpp - spmd-cast-before-gather ---------------------===//
//
// [Note: casts of parameters]
// A cast works element by element and a gather only moves elements, so casting a rank's chunk and gathering the result
// gives the bits that gathering and casting gives, with the bytes of the narrower type on the wire and in the gathered
// buffer. It pays only if the whole buffer is cast: one parameter that is read as it is needs the wide buffer anyway.
// Each gather has a cast of its own, so that no cast chunk lives from forward to backward.
//
//===----------------------------------------------------------------------===//

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Roles.h"
#include "mlir/IR/Builders.h"
#include "spmd/Transforms/Collectives/Passes.h"
#include "spmd/Transforms/StepPass.h"

namespace spmd {
#define GEN_PASS_DEF_CASTBEFOREGATHER
#include "spmd/Transforms/Collectives/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

static Type getElementType(Value value) { return typeOf(value).getElementType(); }

/// The type that all uses of the gathered parameters cast them to, if it is one, and narrower than theirs.
static FloatType getWireType(AllGatherOp gather) {
  FloatType common;
  for (Operation *user : gather->getUsers()) {
    auto unpack = dyn_cast<UnpackOp>(user);
    if (!unpack)
      return {};
    for (Operation *reader : unpack->getUsers()) {
      auto to = isa<aten::ToCopyOp>(reader) ? dyn_cast<FloatType>(getElementType(reader->getResult(0))) : FloatType();
      if (!to || (common && common != to))
        return {};
      common = to;
    }
  }
  auto own = dyn_cast<FloatType>(getElementType(gather.getInput()));
  return common && own && common.getWidth() < own.getWidth() ? common : FloatType();
}

static void castBefore(AllGatherOp gather, FloatType wire) {
  OpBuilder builder(gather);
  auto withWire = [&](Value value) { return typeOf(value).clone(wire); };
  Value input = gather.getInput();
  auto narrow = aten::ToCopyOp::create(builder, gather.getLoc(), withWire(input), input, wire);
  if (Attribute segment = gather->getAttr(kSegmentAttr))
    narrow->setAttr(kSegmentAttr, segment);
  gather.getInputMutable().assign(narrow);
  gather.getResult().setType(withWire(gather.getResult()));
  for (Operation *user : gather->getUsers())
    for (OpResult value : user->getResults()) {
      value.setType(withWire(value));
      for (Operation *reader : llvm::make_early_inc_range(value.getUsers())) {
        reader->getResult(0).replaceAllUsesWith(value);
        reader->erase();
      }
    }
}

namespace {
struct CastBeforeGatherPass : StepPass<spmd::impl::CastBeforeGatherBase<CastBeforeGatherPass>> {
  LogicalResult runOnStep(func::FuncOp step) override {
    for (auto gather : step.getBody().front().getOps<AllGatherOp>())
      if (FloatType wire = gather.getUnit() ? getWireType(gather) : FloatType())
        castBefore(gather, wire);
    return success();
  }
};
} // namespace

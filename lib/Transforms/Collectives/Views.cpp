//===- Views.cpp - what may read a gathered buffer ------------------------===//

#include "Views.h"

#include "dialects/Aten/Views.h"
#include "dialects/Spmd/Spmd.h"

using namespace mlir;

namespace spmd {

bool isViewOp(Operation *op) {
  return isa<UnpackOp>(op) || aten::isView(op);
}

Operation *getLastReader(Value value) {
  return getLastReader(value, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
}

Operation *getLastReader(Value value, llvm::function_ref<bool(Operation *, Operation *)> isBefore) {
  Operation *last = nullptr;
  SmallVector<Value> open{value};
  while (!open.empty())
    for (Operation *user : open.pop_back_val().getUsers()) {
      if (isa<ReleaseOp>(user))
        continue;
      if (!last || isBefore(last, user))
        last = user;
      if (isViewOp(user))
        llvm::append_range(open, user->getResults());
    }
  return last;
}

} // namespace spmd

//===- FunctionPass.h - A pass over the functions of a module ---*- C++ -*-===//
#ifndef SPMD_TRANSFORMS_FUNCTIONPASS_H
#define SPMD_TRANSFORMS_FUNCTIONPASS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "spmd/Transforms/SegmentListener.h"

namespace spmd {

/// A pass over modules that rewrites each function with a body by itself, whatever it is called. `Base` is what TableGen
/// makes of the pass.
template <typename Base>
class FunctionPass : public Base {
public:
  using Base::Base;

  void runOnOperation() final {
    SegmentListener listener;
    mlir::IRRewriter rewriter(&this->getContext(), &listener);
    for (auto func : this->getOperation().template getOps<mlir::func::FuncOp>())
      if (!func.isExternal() && failed(runOnFunction(func, rewriter, listener)))
        return this->signalPassFailure();
  }

protected:
  /// Fails after an error has been emitted. Ops made by `rewriter` get the segment of the op that `listener` was told.
  virtual llvm::LogicalResult runOnFunction(mlir::func::FuncOp func, mlir::IRRewriter &rewriter,
                                            SegmentListener &listener) = 0;
};

} // namespace spmd

#endif // SPMD_TRANSFORMS_FUNCTIONPASS_H

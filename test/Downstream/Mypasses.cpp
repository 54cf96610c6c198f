//===- Mypasses.cpp - Passes as a plug-in ---------------------------------===//
//
// What a project outside of this one has to write for a pass of its own: no header of ours.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

namespace {
/// Multiplies what SGD takes for gradients by a number.
struct ScaleGradients : PassWrapper<ScaleGradients, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ScaleGradients)

  ScaleGradients() = default;
  ScaleGradients(const ScaleGradients &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "mylib-scale-gradients"; }
  StringRef getDescription() const final { return "multiplies what SGD takes for gradients by a number"; }

  void runOnOperation() override {
    bool isFound = false;
    getOperation().walk([&](Operation *op) {
      if (op->getName().getStringRef() != "aten._fused_sgd")
        return;
      isFound = true;
      OpBuilder builder(op);
      // Parameters, gradients, what momentum has, the learning rate.
      auto sizes = op->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes").asArrayRef();
      for (int32_t i = sizes[0]; i < sizes[0] + sizes[1]; ++i) {
        Value gradient = op->getOperand(i);
        OperationState state(op->getLoc(), "aten.mul.Scalar", gradient, gradient.getType(),
                             builder.getNamedAttr("other", builder.getF64FloatAttr(factor)));
        if (Attribute segment = op->getAttr("spmd.segment"))
          state.addAttribute("spmd.segment", segment);
        op->setOperand(i, builder.create(state)->getResult(0));
      }
    });
    if (!isFound) {
      getOperation().emitError("has no update of SGD whose gradients could be scaled");
      signalPassFailure();
    }
  }

  Option<double> factor{*this, "factor", llvm::cl::desc("the number"), llvm::cl::init(1.0)};
};

/// Trains each shard unit by the gradients of the first.
struct MistakeUnits : PassWrapper<MistakeUnits, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MistakeUnits)

  StringRef getArgument() const final { return "mylib-mistake-units"; }
  StringRef getDescription() const final { return "a mistake"; }

  void runOnOperation() override {
    Value first;
    getOperation().walk([&](Operation *op) {
      if (op->getName().getStringRef() != "aten._fused_sgd")
        return;
      first = first ? first : op->getOperand(1);
      op->setOperand(1, first);
    });
  }
};
} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "mylib-passes", LLVM_VERSION_STRING, [] {
            PassRegistration<ScaleGradients>();
            PassRegistration<MistakeUnits>();
          }};
}

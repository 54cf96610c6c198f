//===- EmitterTable.h - the code that kernel ops have on a target -*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_EMITTERTABLE_H
#define SPMD_LIB_KERNELS_EMITTERTABLE_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include <functional>

namespace spmd::kernel {

/// What emits each kernel op on one target, by the op's type. A file that emits an op adds it, and nothing else knows
/// which ops there are. `Builder` has started the function that is to be filled.
template <typename Builder, typename... Context>
class EmitterTable {
public:
  template <typename Op>
  void add(mlir::LogicalResult (*emit)(Builder &, Op, Context...)) {
    emitters[mlir::TypeID::get<Op>()] = [emit](Builder &b, mlir::Operation *op, Context... context) {
      return emit(b, llvm::cast<Op>(op), context...);
    };
  }

  /// Fills the function; an error at an op that has no code for `target`.
  mlir::LogicalResult emit(Builder &b, mlir::Operation *op, llvm::StringRef target, Context... context) const {
    auto found = emitters.find(op->getName().getTypeID());
    if (found == emitters.end())
      return op->emitOpError("has no code generation for ") << target;
    return found->second(b, op, context...);
  }

private:
  llvm::DenseMap<mlir::TypeID, std::function<mlir::LogicalResult(Builder &, mlir::Operation *, Context...)>> emitters;
};

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_EMITTERTABLE_H

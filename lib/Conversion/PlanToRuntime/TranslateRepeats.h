//===- TranslateRepeats.h - Iterations that are left out --------*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_PLANTORUNTIME_TRANSLATEREPEATS_H
#define SPMD_LIB_CONVERSION_PLANTORUNTIME_TRANSLATEREPEATS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "spmd/Runtime/Core/Repeats.h"
#include "llvm/ADT/StringMap.h"

#include <optional>

namespace spmd {

/// What `iteration` of `op`, a plan.program or plan.dataflow, stands for; nothing if it is null. `inputs` has the
/// number of each batch input. Fails, with an error at `op`, where the module does not say which iterations are
/// missing.
mlir::FailureOr<std::optional<runtime::Repeats>>
translateRepeats(mlir::Operation *op, mlir::DenseI64ArrayAttr iteration, const llvm::StringMap<int32_t> &inputs);

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_PLANTORUNTIME_TRANSLATEREPEATS_H

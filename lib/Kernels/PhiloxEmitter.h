//===- PhiloxEmitter.h - code that draws random numbers ---------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_PHILOXEMITTER_H
#define SPMD_LIB_KERNELS_PHILOXEMITTER_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace spmd::kernel {

/// Code for a uniform f32 in [0, 1): word `word` (0 to 3) of [Note: random numbers] in Runtime/Core/Philox.h. `index`
/// is i64 or a vector of i64, and so is the result f32 or a vector; `seed` and `step` are scalars of type i64.
mlir::Value emitUniform(mlir::ImplicitLocOpBuilder &b, mlir::Value seed, mlir::Value step, mlir::Value index,
                        int64_t stream, unsigned word);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_PHILOXEMITTER_H

//===- Reduce.h - Elementwise reduction over ranks ---------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_REDUCE_H
#define SPMD_RUNTIME_CORE_REDUCE_H

#include "spmd/Runtime/Core/DType.h"
#include "spmd/Runtime/Core/Plan.h"

namespace spmd::runtime {

/// out[i] = inputs[0][i] ∘ inputs[1][i] ∘ ... for `count` elements, from left
/// to right; norm2 is the square root of the sum of squares, and one input
/// alone is passed on unchanged. `out` may be one of the inputs. f16 and bf16
/// accumulate in f32 and are rounded once.
void reduceInOrder(DType dtype, ReductionKind kind, const void *const *inputs, int64_t numInputs, void *out,
                   int64_t count);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_REDUCE_H

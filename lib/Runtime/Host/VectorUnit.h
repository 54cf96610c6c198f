//===- VectorUnit.h - The vectors that GEMMs are computed in ----*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_HOST_VECTORUNIT_H
#define SPMD_LIB_RUNTIME_HOST_VECTORUNIT_H

namespace spmd::runtime {

/// What a processor multiplies f32 and f64 with.
enum class VectorUnit {
  AVX512,
  AVX2, ///< with FMA
  None  ///< one element at a time by the C library's fma; the compiler's kernels need AVX2 anyway
};

/// The fastest unit that this processor has.
VectorUnit getVectorUnit();

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_HOST_VECTORUNIT_H

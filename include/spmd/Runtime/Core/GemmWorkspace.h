//===- GemmWorkspace.h - Memory of GEMMs outside the arena ------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_GEMMWORKSPACE_H
#define SPMD_RUNTIME_CORE_GEMMWORKSPACE_H

#include <cstdint>

namespace spmd::runtime {

/// Bytes that each thread of a rank holds for GEMMs of f32 ([Note: GEMMs of f32]), of f64 ([Note: GEMMs of
/// f64]), of bf16 ([Note: GEMMs of bf16]) and of f16 ([Note: GEMMs of f16]), from before the first step.
constexpr int64_t kF32WorkspaceBytes = 2'179'072;
constexpr int64_t kF64WorkspaceBytes = 2'179'072;
constexpr int64_t kBF16WorkspaceBytes = 3'571'712;
constexpr int64_t kF16WorkspaceBytes = 2'031'616;

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_GEMMWORKSPACE_H

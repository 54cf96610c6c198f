//===- Targets.h - the targets that there are -------------------*- C++ -*-===//
#ifndef SPMD_LIB_PIPELINES_TARGETS_TARGETS_H
#define SPMD_LIB_PIPELINES_TARGETS_TARGETS_H

#include "spmd/Pipelines/Target.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>

namespace spmd {

std::shared_ptr<const Target> makeHostTarget();
/// Chips in the order of the devices, at least one.
std::shared_ptr<const Target> makeCudaTarget(std::vector<std::string> chips);
std::shared_ptr<const Target> makeEmulateTarget(std::string chip);

/// Begins an error at a kernel of the user's with what it is: "the function 'f' of 'libx.so' ".
mlir::InFlightDiagnostic emitUserKernelError(kernel::CustomCallOp op);
/// An error where nobody said in which folder the user's files are.
mlir::LogicalResult checkHasLibraries(kernel::CustomCallOp op, const CodeOptions &options);

/// Writes "kernels.CPU.so" for each CPU that was asked for. `emit(cpu, file)` makes it; `chip` is the GPU that it
/// emulates, if any.
mlir::LogicalResult
writeSharedObjects(ArtifactFolder &folder, ArtifactKernels &kernels, const CodeOptions &options, llvm::StringRef chip,
                   llvm::function_ref<mlir::LogicalResult(llvm::StringRef cpu, llvm::StringRef file)> emit);

/// Whether `plan` has a GEMM, of `dtype` when it is given.
bool hasGemms(const runtime::Plan &plan, std::optional<runtime::DType> dtype = std::nullopt);

/// The blocks of the grid of each kernel for a GPU.
llvm::StringMap<int64_t> getBlocks(const ArtifactKernels &kernels);
/// Most blocks that one long reduction is cut into: two for each multiprocessor of the largest chip.
int64_t getReductionBlocks(llvm::ArrayRef<std::string> chips);
/// Bytes of the workspace of a product on these chips: what NVIDIA recommends, 32 MiB from Hopper on, 4 MiB before.
int64_t getGemmWorkspace(llvm::ArrayRef<std::string> chips);
/// Most blocks of a collective: no more of a device than leaves room for those that can be in flight with it (rule 11
/// of the certificate), on the smallest of the chips.
int64_t getCollectiveBlocks(llvm::ArrayRef<std::string> chips);

} // namespace spmd

#endif // SPMD_LIB_PIPELINES_TARGETS_TARGETS_H

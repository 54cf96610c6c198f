//===- AtenLaunch.h - Launch of a kernel of the user's ------------*- C++ -*-===//
//
// How a kernel for GPUs, in a cubin, is launched, as a line of text that CUDA's programmers know:
//
//     gained<<<(row * column + 255) / 256, 256>>>(x, gain, float power, result, int row, int column)
//     tiled<<<dim3((n + 31) / 32, heads), dim3(32, 8), 4 * 32 * 33>>>(q, result, int n)
//
// Function, grid, block and bytes of shared memory; then its parameters: a tensor by name (a pointer; arguments as in
// the operator's schema, "result", or "result0", "result1", …, for what it returns), or a C type and a number. Numbers
// are of + - * / % and parentheses, min and max, over constants, the operator's numbers, the names of dimensions in the
// sharding, size(tensor, dim) and numel(tensor): of the tensors that a rank has.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_ATEN_ATENLAUNCH_H
#define SPMD_DIALECTS_ATEN_ATENLAUNCH_H

#include "dialects/Aten/AtenHeavy.h"
#include <array>

namespace spmd::aten {

/// A launch, for tensors of certain shapes.
struct LaunchSpec {
  llvm::StringRef function;
  std::array<int64_t, 3> grid, block;
  int64_t sharedBytes = 0;
  /// A tensor by its number, results after inputs, as index; or a number of its type: i1, i32, i64, f32, f64.
  llvm::SmallVector<mlir::Attribute> parameters;
};

/// What a launch may name.
struct LaunchScope {
  mlir::ArrayAttr arguments; ///< of the operator: unit for the next input, or numbers
  llvm::ArrayRef<llvm::StringRef> names;
  llvm::ArrayRef<llvm::ArrayRef<int64_t>> inputs, results;
  llvm::StringRef sharding;
};

/// What `text` says, or in `error` why it says nothing.
std::optional<LaunchSpec> readLaunch(llvm::StringRef text, const LaunchScope &scope, std::string &error);
/// Of a call with a launch, for the shapes that its tensors have.
std::optional<LaunchSpec> readLaunch(CustomCallOp call, std::string &error);

/// An entry of a call's `cubins`: "CHIP HASH FILE".
struct UserCubin {
  llvm::StringRef chip, hash, file;
  static std::optional<UserCubin> parse(llvm::StringRef text);
};

} // namespace spmd::aten

#endif // SPMD_DIALECTS_ATEN_ATENLAUNCH_H

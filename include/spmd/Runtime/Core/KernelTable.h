//===- KernelTable.h - What the kernels in a file take ------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_KERNELTABLE_H
#define SPMD_RUNTIME_CORE_KERNELTABLE_H

#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Core/Plan.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace spmd::runtime {

/// The text in a shared object of kernels that says what each takes; docs/artifact-format.md has its form.
constexpr char kKernelTableSymbol[] = "spmd_kernel_table";

/// What a kernel takes: iterations, and of each argument access ("r", "w", "rw"), dtype and bytes; and of the rows that
/// it writes, where they are padded, how many elements of each `ld` are there.
struct KernelEntry {
  struct Argument {
    std::string access, dtype;
    int64_t bytes = 0;
    /// 0: all of them are.
    int64_t columns = 0, ld = 0;
  };
  int64_t parallel = 0;
  std::vector<Argument> arguments;
};

/// The kernels of a file by their symbols.
using KernelTable = std::unordered_map<std::string, KernelEntry>;

KernelTable parseKernelTable(std::string_view table);

/// Rule 9 of the certificate: every kernel of the plan is in the table, and is launched with the iterations, and as
/// many arguments of the access and bytes, that it was compiled for. So none touches a byte outside of its references.
Status checkKernelTable(const Plan &plan, std::string_view table);

// [Note: tables of GPU code] The archive of cubins for a chip ends with a member that is the table, and PTX with the table
// as comments. Beside the kernels' lines it has one for each launch, so that no other grid, shared memory or piece of the
// file is launched than was compiled.

/// The line of a launch.
std::string formatLaunch(const KernelLaunch &launch);

/// What an archive of cubins, or PTX, ends with.
std::string formatArchiveTable(std::string_view table);
std::string formatPtxTable(std::string_view table);

/// The table of an archive, or of PTX; empty when it has none.
std::string findArchiveTable(std::string_view archive);
std::string findPtxTable(std::string_view ptx);

/// Rule 9 for the launches for `chip`: they are those of the table.
Status checkLaunchTable(const std::vector<KernelLaunch> &launches, std::string_view chip, std::string_view table);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_KERNELTABLE_H

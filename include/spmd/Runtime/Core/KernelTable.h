//===- KernelTable.h - What the kernels in a file take ------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_KERNELTABLE_H
#define SPMD_RUNTIME_CORE_KERNELTABLE_H

#include "spmd/Runtime/Core/Plan.h"

#include <string_view>

namespace spmd::runtime {

/// The text in a shared object of kernels that says what each takes; docs/artifact-format.md has its form.
constexpr char kKernelTableSymbol[] = "spmd_kernel_table";

/// Rule 9 of the certificate: every kernel of the plan is in the table, and is launched with the iterations, and as
/// many arguments of the access and bytes, that it was compiled for. So none touches a byte outside of its references.
Status checkKernelTable(const Plan &plan, std::string_view table);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_KERNELTABLE_H

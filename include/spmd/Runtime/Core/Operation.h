//===- Operation.h - What a command computes ----------------------*- C++ -*-===//
//
// A command with all its constants, but not where operands lie, in which order it
// runs and how often and in what pieces (a kernel file says that, KernelTable.h).
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_OPERATION_H
#define SPMD_RUNTIME_CORE_OPERATION_H

#include "spmd/Runtime/Core/Plan.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace spmd::runtime {

/// A kernel and how it uses each of its arguments.
struct KernelOperation {
  std::string symbol;
  std::vector<Access> arguments;
};

/// A kernel that computes an attention.
struct AttentionOperation : KernelOperation {
  AttentionShape shape;
};

/// A GEMM and what its epilogue takes and gives.
struct GemmOperation {
  GemmSizes sizes;
  DType dtype = DType::F32;
  bool hasBias = false;
  bool hasResidual = false; ///< elsewhere, or where the result goes
  bool hasPreActivation = false;

  GemmOperation() = default;
  /// Strides of one matrix are of no account.
  GemmOperation(const GemmSizes &sizes, DType dtype) : sizes(sizes), dtype(dtype) {
    if (sizes.batch == 1)
      this->sizes.strideA = this->sizes.strideB = this->sizes.strideC = 0;
  }
};

/// An exchange, and along which axes of the mesh; none: among all ranks.
struct CollectiveOperation : Exchange {
  std::vector<std::string> axes;
};

using Operation =
    std::variant<KernelOperation, AttentionOperation, GemmOperation, CollectiveOperation, CheckIndexCommand>;

// So that maps may have operations as keys.
bool operator<(const KernelOperation &a, const KernelOperation &b);
bool operator<(const AttentionOperation &a, const AttentionOperation &b);
bool operator<(const GemmOperation &a, const GemmOperation &b);
bool operator<(const CollectiveOperation &a, const CollectiveOperation &b);
bool operator<(const CheckIndexCommand &a, const CheckIndexCommand &b);

/// For people: "kernel k12 rrw", "all_gather f32 128 of unit0".
std::string toText(const Operation &operation);

/// The operation of a command of the plan; nothing for one that computes nothing: wait, copy, fill.
std::optional<Operation> operationOf(const Plan &plan, const Command &command);

/// The references that are operands of the operation, in order.
std::vector<const Ref *> operandsOf(const Command &command);
/// The references that hold its results, in order.
std::vector<const Ref *> resultsOf(const Command &command);
/// The reference to bytes that are neither, which hold nothing afterwards; null where there is none.
const Ref *workspaceOf(const Command &command);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_OPERATION_H

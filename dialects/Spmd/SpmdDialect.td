//===- SpmdDialect.td - the spmd dialect and its enums -------*- tablegen -*-===//
//
// What is the same on every rank: meshes, shard units, sharding states and the
// collectives between ranks. README.md has the rationale.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECT_TD
#define SPMD_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"

def Spmd_Dialect : Dialect {
  let name = "spmd";
  let cppNamespace = "::spmd";
  let summary = "roles, shard units, sharding states and collectives";
  let description = [{
    The vocabulary of a training step that runs on several ranks: a role on every
    argument and result, shard units (parameters that are gathered and reduced
    together), the state of a value on each mesh axis, and collectives, first
    synchronous, then as start and wait.

    Discardable attributes of the dialect, verified on any op:

    * `spmd.arg` on arguments and `spmd.result` on results of a function: the role;
    * `spmd.layout` on arguments and results, once encodings are stripped: the
      `#spmd.sharding` that the value had;
    * `spmd.index_bound` and `spmd.ignore_index` on batch arguments: the values are
      row numbers below the bound, apart from the ignored one;
    * `spmd.whole_gradient` on a partitioned step's units: every rank computes the
      unit's gradients in full, so no collective reduces them;
    * `spmd.segment` on operations: number of the maximal run of one phase
      (forward, backward, optimizer) the operation belongs to.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
}

def Spmd_ReduceKind : I32Enum<"ReduceKind",
    "how the values of several ranks are combined",
    [I32EnumCase<"sum", 0>, I32EnumCase<"max", 1>, I32EnumCase<"min", 2>,
     I32EnumCase<"norm2", 3>]> {
  let cppNamespace = "::spmd";
}

/// What a collective runs on, beside computation; it has a communicator for each.
def Spmd_Stream : I32Enum<"Stream", "stream",
    [I32EnumCase<"gather", 0>, I32EnumCase<"reduce", 1>, I32EnumCase<"scalar", 2>]> {
  let cppNamespace = "::spmd";
}

def Spmd_UnitMode : I32Enum<"UnitMode",
    "whether a unit's flat buffers are cut into one chunk per rank",
    [I32EnumCase<"fully_shard", 0>, I32EnumCase<"replicate", 1>, I32EnumCase<"shard_optimizer", 2>]> {
  let cppNamespace = "::spmd";
}

#endif // SPMD_DIALECT_TD

//===- Passes.td - from the global step to one rank's program *- tablegen -*-===//

#ifndef SPMD_TRANSFORMS_PARTITION_PASSES_TD
#define SPMD_TRANSFORMS_PARTITION_PASSES_TD

include "mlir/Pass/PassBase.td"

def SplitMeans : Pass<"spmd-split-means", "::mlir::ModuleOp"> {
  let summary = "splits means into a sum and a division by the global count";
  let description = [{
    A mean over sharded rows is not the mean of the ranks' means when ranks have
    different numbers of rows. As a sum and a division it partitions exactly: the
    sum is a partial one, and the count is a constant of the global shape, or, for
    `nll_loss`, the total weight, which is itself a sum.

    Input: `@step` on global shapes. Output: the same without mean.dim, and without
    losses that reduce by mean. `nll_loss_backward` stays: it divides by its operand
    `total_weight`, which is the global one.

    ```mlir
    %l = aten.mse_loss %x, %t {reduction = 1 : i64} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<f32>
    // becomes
    %s = aten.mse_loss %x, %t {reduction = 2 : i64} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<f32>
    %l = aten.div.Scalar %s {other = 32 : i64} : (tensor<f32>) -> tensor<f32>
    ```
  }];
}

def Partition : Pass<"spmd-partition", "::mlir::ModuleOp"> {
  let summary = "turns the global step into the program of one rank";
  let description = [{
    Every value gets a *state* on the mesh: replicated, sharded in one dimension,
    partial (to be combined over the ranks), or owned (a chunk of a unit's flat
    buffer). States follow from roles alone: batch inputs are sharded, parameters
    and optimizer state are owned, everything else starts replicated. The sharding
    rule of each op says in which states it can run; where the operands are in other
    states a collective converts them. Whatever the roles say, the result is right:
    a batch dimension that is none costs communication only.

    Input: `@step` without means (`spmd-split-means`), with shard units
    (`spmd-assign-shard-units`) and list-form optimizer ops.

    Output: `@step` with one flat argument per unit and state, local shapes, a
    `#spmd.sharding` on every tensor, and explicit collectives: an all_gather at
    every use of a parameter, one reduce_scatter per unit, all_reduces at the first
    use of a partial value that must be whole. `spmd-dedup-collectives` comes next.

    Warns when an activation is gathered, and when matrix products run replicated.

    ```mlir
    func.func @step(%w: tensor<4x16xf32> {spmd.arg = #spmd.param<"w", trainable>}, ...)
    // becomes
    func.func @step(%shard: tensor<128xf32, #spmd.sharding<global = [256], [owned]>> {spmd.arg = #spmd.shard<@unit0, "param">}, ...) {
      %flat = spmd.all_gather %shard on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 ...
      %w = spmd.unpack %flat unit @unit0 ["w"] ...
    ```
  }];
  let options = [
    Option<"view", "view", "std::string", "\"global\"",
           "what the captured batch is: global (all ranks' rows together)">,
  ];
  let dependentDialects = ["::spmd::SpmdDialect", "::spmd::aten::AtenDialect"];
}

def VerifyPartition : Pass<"spmd-verify-partition", "::mlir::ModuleOp"> {
  let summary = "checks what must hold of a partitioned step";
  let description = [{
    Checks, on the program between spmd-partition and spmd-strip-sharding:

    1. every tensor has a `#spmd.sharding` for the mesh;
    2. no partial value reaches an op that is not linear in it, partial operands of
       one op have one kind, and a multilinear op has at most one;
    3. collectives start from the state they need and give the one they make, and
       the reduce kind is the partial kind;
    4. a dimension of a result is sharded only where an operand's dimension of the
       same factor is;
    5. a contraction over padded rows has the neutral element in them;
    6. chunk operands of one list op are of its unit and have one size;
    7. each parameter of an updated unit is packed into at most one gradient
       reduction, of its own unit;
    8. results of `@step` that are not chunks are replicated.

    Output: the input, unchanged; an error names the op, its module and its line.
  }];
}

def StripSharding : Pass<"spmd-strip-sharding", "::mlir::ModuleOp"> {
  let summary = "removes #spmd.sharding from all tensor types";
  let description = [{
    After this pass the program is plain local computation and collectives; nothing
    knows global shapes any more, but for `spmd.layout` on batch arguments and on
    results, by which the runtime cuts batches and joins outputs. The only pass that
    may drop an encoding.

    ```mlir
    tensor<4x16xf32, #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>>
    // becomes
    tensor<4x16xf32>
    ```
  }];
}

#endif // SPMD_TRANSFORMS_PARTITION_PASSES_TD

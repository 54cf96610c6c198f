//===- Passes.td - what only the captured ops still say -------------------===//

#ifndef SPMD_IMPORT_PASSES_TD
#define SPMD_IMPORT_PASSES_TD

include "mlir/Pass/PassBase.td"

def InferIndexBoundsPass : Pass<"spmd-infer-index-bounds", "::mlir::ModuleOp"> {
  let summary = "says where row numbers need no check at run time";
  let description = [{
    **Definition.** Import puts an `aten.check_index` before every use of row numbers: of an embedding, a gather, a scatter,
    the labels of a loss. Where these are elements of batch inputs, the inputs get `spmd.index_bound`, the number of rows, and, if
    only losses use them so, `spmd.ignore_index`, the one other value that is allowed; of several bounds the least is taken.
    Where the ops that compute the numbers say enough (an arange, a clamp, an argmax, sums and products of such), nothing can go
    wrong. In both cases the check goes; the others stay, and are commands of the step.

    **Input IR.** `@step` as imported. **Output IR.** The same with these attributes on arguments, and fewer checks.

    **Why.** The runtime checks inputs before a step: a token id out of range is an error with the input's name, and never
    a read outside a table. What the step computes is checked where it is used, and costs a pass over it.

    ```mlir
    // spmd-opt --spmd-infer-index-bounds
    func.func @step(%table: tensor<65x16xf32> {spmd.arg = #spmd.param<"wte.weight", trainable>},
                    %x: tensor<8x4xi64> {spmd.arg = #spmd.batch<"x", dim = 0>}) -> tensor<8x4x16xf32> {
      %c = aten.check_index %x {low = 0 : i64, high = 65 : i64, use = "embedding"} : (tensor<8x4xi64>) -> tensor<8x4xi64>
      %y = aten.embedding %table, %c : (tensor<65x16xf32>, tensor<8x4xi64>) -> tensor<8x4x16xf32>
      return %y : tensor<8x4x16xf32>
    }
    // becomes
    func.func @step(%table: tensor<65x16xf32> {spmd.arg = #spmd.param<"wte.weight", trainable>},
                    %x: tensor<8x4xi64> {spmd.arg = #spmd.batch<"x", dim = 0>, spmd.index_bound = 65})
        -> tensor<8x4x16xf32> {
      %y = aten.embedding %table, %x : (tensor<65x16xf32>, tensor<8x4xi64>) -> tensor<8x4x16xf32>
      return %y : tensor<8x4x16xf32>
    }
    ```
  }];
}

#endif // SPMD_IMPORT_PASSES_TD

//===- Passes.td - what only the captured ops still say -------------------===//

#ifndef SPMD_IMPORT_PASSES_TD
#define SPMD_IMPORT_PASSES_TD

include "mlir/Pass/PassBase.td"

def InferIndexBoundsPass : Pass<"spmd-infer-index-bounds", "::mlir::ModuleOp"> {
  let summary = "says of batch inputs which row numbers they may hold";
  let description = [{
    **Definition.** A batch input that numbers the rows of an embedding, or the classes of a loss, gets `spmd.index_bound`,
    the number of rows; and, if only losses use it so, `spmd.ignore_index`, the one other value that is allowed. The input is
    followed through views; of several bounds the least is taken.

    **Input IR.** `@step` as imported. **Output IR.** The same, with these attributes on arguments.

    **Why.** The runtime checks the values before a step: a token id out of range is an error with the input's name, and never
    a read outside a table. Once embeddings and losses are kernels nobody can tell any more.

    ```mlir
    // spmd-opt --spmd-infer-index-bounds
    func.func @step(%table: tensor<65x16xf32> {spmd.arg = #spmd.param<"wte.weight", trainable>},
                    %x: tensor<8x4xi64> {spmd.arg = #spmd.batch<"x", dim = 0>}) -> tensor<8x4x16xf32> {
      %y = aten.embedding %table, %x : (tensor<65x16xf32>, tensor<8x4xi64>) -> tensor<8x4x16xf32>
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

//===- Passes.td - what only the captured ops still say -------------------===//

#ifndef SPMD_IMPORT_PASSES_TD
#define SPMD_IMPORT_PASSES_TD

include "mlir/Pass/PassBase.td"

def FoldEmptyTensorsPass : Pass<"spmd-fold-empty-tensors", "::mlir::ModuleOp"> {
  let summary = "removes ops on tensors without elements";
  let description = [{
    **Definition.** An op whose results have no elements becomes an `aten.full` of that shape. An op with such
    an operand and a result with elements is replaced by its value: sums, products of matrices and gradients are
    zero, a mean is NaN, a concatenation keeps its other parts, and a write changes nothing. A split loses its
    empty parts.

    **Input IR.** `@step` as imported. **Output IR.** The same without tensors without elements. Two remain:
    unused arguments, and an `aten.full` for a result of the step, which has no kernel. Captured steps have no
    such results, because their `result_tree` describes them.

    **Why.** Caches start empty, heads may rotate nothing, groups may have no members: models written for all
    sizes compute on empty tensors. A kernel has nothing to launch for them, and they have no address of their
    own.

    ```mlir
    // spmd-opt --spmd-fold-empty-tensors
    func.func @step(%x: tensor<4x3xf32>, %y: tensor<0x3xf32>) -> tensor<4x3xf32> {
      %0 = aten.exp %y : (tensor<0x3xf32>) -> tensor<0x3xf32>
      %1 = aten.sum.dim_IntList %0 {dim = array<i64: 0>, keepdim = false} : (tensor<0x3xf32>) -> tensor<3xf32>
      %2 = aten.add.Tensor %x, %1 : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
      return %2 : tensor<4x3xf32>
    }
    // becomes
    func.func @step(%x: tensor<4x3xf32>, %y: tensor<0x3xf32>) -> tensor<4x3xf32> {
      %1 = aten.full {fill_value = 0.0 : f64, size = array<i64: 3>} : () -> tensor<3xf32>
      %2 = aten.add.Tensor %x, %1 : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
      return %2 : tensor<4x3xf32>
    }
    ```
  }];
}

def WidenStepCountersPass : Pass<"spmd-widen-step-counters", "::mlir::ModuleOp"> {
  let summary = "computes bias corrections in f64, as eager does in Python";
  let description = [{
    **Definition.** In param groups with `capturable = false`, values that an optimizer computes only from
    numbers and from its 0-dim f32 state (the step counter, NAdam's product of momenta) are computed in f64. The
    state itself stays f32, and so do tensors with dims.

    **Input IR.** `@step` as imported. **Output IR.** The same with f64 for these 0-dim values. An
    `aten._to_copy` (`aten._foreach_map` of a list) converts a counter that is read, and another one converts
    back to f32 before other 0-dim values.

    **Why.** If `capturable` is false, PyTorch reads the counter and continues in Python: `1 - beta2 ** step` is
    a double. A capture has tensors there. In f32, 1 - 0.999 is off by 1.3e-5, and the rectification of RAdam, a
    difference of two numbers near 2,000, by 1e-4.

    ```mlir
    // spmd-opt --spmd-widen-step-counters
    module attributes {spmd.param_groups = [{capturable = false, parameters = ["w"]} ]} {
      func.func @step(%w: tensor<4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                      %step: tensor<f32> {spmd.arg = #spmd.state<"step", of = "w", init = 0.0>})
          -> (tensor<4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>},
              tensor<f32> {spmd.result = #spmd.update<#spmd.state<"step", of = "w", init = 0.0>>}) {
        %0 = aten.add.Scalar %step {other = 1 : i64} : (tensor<f32>) -> tensor<f32>
        %1 = aten.pow.Scalar %0 {self = 0.999 : f64} : (tensor<f32>) -> tensor<f32>
        %2 = aten.div.Tensor %w, %1 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
        return %2, %0 : tensor<4xf32>, tensor<f32>
      }
    }
    // becomes
    module attributes {spmd.param_groups = [{capturable = false, parameters = ["w"]} ]} {
      func.func @step(%w: tensor<4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                      %step: tensor<f32> {spmd.arg = #spmd.state<"step", of = "w", init = 0.0>})
          -> (tensor<4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>},
              tensor<f32> {spmd.result = #spmd.update<#spmd.state<"step", of = "w", init = 0.0>>}) {
        %0 = aten.add.Scalar %step {other = 1 : i64} : (tensor<f32>) -> tensor<f32>
        %1 = aten._to_copy %0 {dtype = f64} : (tensor<f32>) -> tensor<f64>
        %2 = aten.pow.Scalar %1 {self = 0.999 : f64} : (tensor<f64>) -> tensor<f64>
        %3 = aten.div.Tensor %w, %2 : (tensor<4xf32>, tensor<f64>) -> tensor<4xf32>
        return %3, %0 : tensor<4xf32>, tensor<f32>
      }
    }
    ```
  }];
}

def InferIndexBoundsPass : Pass<"spmd-infer-index-bounds", "::mlir::ModuleOp"> {
  let summary = "removes checks of row numbers that need none at run time";
  let description = [{
    **Definition.** Import inserts an `aten.check_index` before every use of row numbers: by an embedding, a
    gather, a scatter, or the labels of a loss. The pass removes a check in two cases:

    - The numbers are elements of batch inputs. The inputs get `spmd.index_bound`, the number of rows (the
      smallest of several bounds). If only losses use them, they also get `spmd.ignore_index`, the one other
      value that is allowed.
    - The ops that compute the numbers imply the bound: an arange, a clamp, an argmax, and sums and products of
      such.

    The other checks stay, and become commands of the step.

    **Input IR.** `@step` as imported. **Output IR.** The same with these attributes on arguments, and fewer
    checks.

    **Why.** The runtime checks inputs before a step. A token id out of range is an error with the input's name,
    never a read outside a table. Computed numbers are checked at their use, which costs a pass over them.

    ```mlir
    // spmd-opt --spmd-infer-index-bounds
    func.func @step(%table: tensor<65x16xf32> {spmd.arg = #spmd.param<"wte.weight", trainable>},
                    %x: tensor<8x4xi64> {spmd.arg = #spmd.batch<"x", dim = 0>}) -> tensor<8x4x16xf32> {
      %c = aten.check_index %x {low = 0 : i64, high = 65 : i64, use = "embedding"}
          : (tensor<8x4xi64>) -> tensor<8x4xi64>
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

def GuardUpdatesPass : Pass<"spmd-guard-updates", "::mlir::ModuleOp"> {
  let summary = "keeps the old state if a row number is bad";
  let description = [{
    **Definition.** If any remaining `aten.check_index` finds a number that is not allowed, each result that is
    the new value of an argument (`spmd.update`) is the old value instead. With `view=local` a bad number on any
    of `ranks` counts for all.

    **Input IR.** `@step` as imported, after unneeded checks are removed. **Output IR.** The same with a select
    before each such result.

    **Why.** On a CPU a bad number ends the step. A GPU continues with the nearest row, and the error is found
    after the step, when the optimizer has already run.

    ```mlir
    // spmd-opt --spmd-guard-updates
    func.func @step(%table: tensor<9x4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                    %x: tensor<8xi64> {spmd.arg = #spmd.batch<"x", dim = 0>})
        -> (tensor<9x4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>}) {
      %c = aten.check_index %x {low = 0 : i64, high = 9 : i64, use = "embedding"} : (tensor<8xi64>) -> tensor<8xi64>
      %y = aten.embedding %table, %c : (tensor<9x4xf32>, tensor<8xi64>) -> tensor<8x4xf32>
      %s = aten.sum.dim_IntList %y {dim = array<i64: 0, 1>} : (tensor<8x4xf32>) -> tensor<f32>
      %n = aten.sub.Tensor %table, %s : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32>
      return %n : tensor<9x4xf32>
    }
    // becomes
    func.func @step(%table: tensor<9x4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                    %x: tensor<8xi64> {spmd.arg = #spmd.batch<"x", dim = 0>})
        -> (tensor<9x4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>}) {
      %i = aten._to_copy %x {dtype = i64} : (tensor<8xi64>) -> tensor<8xi64>
      %l = aten.lt.Scalar %i {other = 0 : i64} : (tensor<8xi64>) -> tensor<8xi1>
      %h = aten.ge.Scalar %i {other = 9 : i64} : (tensor<8xi64>) -> tensor<8xi1>
      %o = aten.logical_or %l, %h : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
      %f = aten._to_copy %o {dtype = f32} : (tensor<8xi1>) -> tensor<8xf32>
      %m = aten.amax %f {dim = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
      %bad = aten.gt.Scalar %m {other = 0 : i64} : (tensor<f32>) -> tensor<i1>
      %c = aten.check_index %x {low = 0 : i64, high = 9 : i64, use = "embedding"} : (tensor<8xi64>) -> tensor<8xi64>
      %y = aten.embedding %table, %c : (tensor<9x4xf32>, tensor<8xi64>) -> tensor<8x4xf32>
      %s = aten.sum.dim_IntList %y {dim = array<i64: 0, 1>} : (tensor<8x4xf32>) -> tensor<f32>
      %n = aten.sub.Tensor %table, %s : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32>
      %k = aten.where.self %bad, %table, %n : (tensor<i1>, tensor<9x4xf32>, tensor<9x4xf32>) -> tensor<9x4xf32>
      return %k : tensor<9x4xf32>
    }
    ```
  }];
  let options = [
    Option<"enable", "enable", "::spmd::BooleanOption", "true", "false: nothing is done, as on targets that end the step">,
    Option<"view", "view", "std::string", "\"global\"", "what spmd-partition will be told">,
    Option<"ranks", "ranks", "int64_t", "1", "how many there will be">
  ];
}

def UnsortRowsPass : Pass<"spmd-unsort-rows", "::mlir::ModuleOp"> {
  let summary = "computes rows in place that are sorted by group and put back afterwards";
  let description = [{
    **Definition.** The pass matches rows that are gathered in the order of an `aten.sort.stable` of integers,
    go through ops that treat every row separately (whose sharding rule has a factor for the rows), and are put
    back by the inverse permutation or summed. It computes the same on the rows in their own order, without a
    sort. Group ends that are prefix sums of group sizes are replaced by the sorted numbers. If floating-point
    work would be done twice, because another op reads the sorted rows, nothing changes.

    **Input IR.** `@step` after `spmd-infer-index-bounds`. **Output IR.** The same without such sorts, and
    without ops that count groups.

    **Why.** A mixture of experts sorts its tokens by expert, so that a library multiplies each group by one
    matrix. Across ranks, the sort would gather all tokens on every rank. But the result of a token depends only
    on the token and its expert.

    ```mlir
    // spmd-opt --spmd-unsort-rows
    func.func @step(%x: tensor<6x4xf32>, %w: tensor<3x4x5xf32>, %e: tensor<6xi64>) -> tensor<6x5xf32> {
      %v, %p = aten.sort.stable %e {dim = 0 : i64} : (tensor<6xi64>) -> (tensor<6xi64>, tensor<6xi64>)
      %s = aten.gather_rows %x, %p : (tensor<6x4xf32>, tensor<6xi64>) -> tensor<6x4xf32>
      %y = aten.grouped_mm %s, %w, %v : (tensor<6x4xf32>, tensor<3x4x5xf32>, tensor<6xi64>) -> tensor<6x5xf32>
      %n = aten.arange.start_step {start = 0 : i64, end = 6 : i64, step = 1 : i64} : () -> tensor<6xi64>
      %i = aten.scatter_rows %p, %n {rows = 6 : i64, reduce = "set"} : (tensor<6xi64>, tensor<6xi64>) -> tensor<6xi64>
      %r = aten.gather_rows %y, %i : (tensor<6x5xf32>, tensor<6xi64>) -> tensor<6x5xf32>
      return %r : tensor<6x5xf32>
    }
    // becomes
    func.func @step(%x: tensor<6x4xf32>, %w: tensor<3x4x5xf32>, %e: tensor<6xi64>) -> tensor<6x5xf32> {
      %r = aten.grouped_mm %x, %w, %e : (tensor<6x4xf32>, tensor<3x4x5xf32>, tensor<6xi64>) -> tensor<6x5xf32>
      return %r : tensor<6x5xf32>
    }
    ```
  }];
}

#endif // SPMD_IMPORT_PASSES_TD

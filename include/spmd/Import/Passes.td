//===- Passes.td - what only the captured ops still say -------------------===//

#ifndef SPMD_IMPORT_PASSES_TD
#define SPMD_IMPORT_PASSES_TD

include "mlir/Pass/PassBase.td"

def FoldEmptyTensorsPass : Pass<"spmd-fold-empty-tensors", "::mlir::ModuleOp"> {
  let summary = "leaves no op on tensors without elements";
  let description = [{
    **Definition.** An op whose results have no elements becomes an `aten.full` of that shape. One that has such an
    operand, and a result with elements, becomes what that is: a sum, a product of matrices and a gradient of nothing
    are zero, a mean is no number, a concatenation is that of its other parts, a write of nothing leaves what was there.
    A split loses its empty parts.

    **Input IR.** `@step` as imported. **Output IR.** The same, with no tensor without elements but arguments that are
    not used, and an `aten.full` for a result of the step, which has no kernel: captured steps have no such results,
    their `result_tree` says what they are.

    **Why.** Caches that start empty, heads of which nothing is rotated, groups without members: PyTorch computes on
    nothing where a model is written for all sizes. There is nothing to launch, and no address that is its own.

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
    **Definition.** In param groups with `capturable = false`, what an optimizer computes of its 0-dim f32 state (the
    counter of steps, NAdam's product of momenta) and of numbers alone is computed in f64. The state stays f32, and so
    does what has dims.

    **Input IR.** `@step` as imported. **Output IR.** The same with f64 for these 0-dim values, an `aten._to_copy`
    (`aten._foreach_map` of a list) where a counter is read, and one back to f32 where such a value meets other 0-dim
    values.

    **Why.** Where `capturable` is false, PyTorch reads the counter and goes on in Python: `1 - beta2 ** step` is a
    double. A capture has tensors there, and 1 - 0.999 in f32 is off by 1.3e-5, the rectification of RAdam, a difference
    of two numbers near 2,000, by 1e-4.

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
  let summary = "says where row numbers need no check at run time";
  let description = [{
    **Definition.** Import puts an `aten.check_index` before every use of row numbers: of an embedding, a gather, a
    scatter, the labels of a loss. Where these are elements of batch inputs, the inputs get `spmd.index_bound`, the
    number of rows, and, if only losses use them so, `spmd.ignore_index`, the one other value that is allowed; of
    several bounds the least is taken. Where the ops that compute the numbers say enough (an arange, a clamp, an argmax,
    sums and products of such), nothing can go wrong. In both cases the check goes; the others stay, and are commands of
    the step.

    **Input IR.** `@step` as imported. **Output IR.** The same with these attributes on arguments, and fewer checks.

    **Why.** The runtime checks inputs before a step: a token id out of range is an error with the input's name, and
    never a read outside a table. What the step computes is checked where it is used, and costs a pass over it.

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
  let summary = "keeps the state as it was where a row number is bad";
  let description = [{
    **Definition.** Where any `aten.check_index` that is left looks at a number that it does not allow, each result that
    is the new value of an argument (`spmd.update`) is the old one instead. With `view=local` what any of `ranks` finds
    counts for all.

    **Input IR.** `@step` as imported, once the checks that are not needed are gone. **Output IR.** The same with a
    select before each such result.

    **Why.** On a CPU a bad number ends the step. A GPU goes on, with the nearest row, and the error is found when the
    step is over: by then the optimizer has run.

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
  let summary = "leaves rows where they are that are sorted by group and put back afterwards";
  let description = [{
    **Definition.** Where rows are gathered in the order that an `aten.sort.stable` of whole numbers gives, go through
    ops that treat every row alone (whose sharding rule has a factor for the rows), and are put back by the inverse
    permutation or summed up, the same is computed of the rows in their own order, and nothing is sorted. Groups that are
    said by where each of them ends, the ends being prefix sums of how many rows each has, are the sorted numbers
    themselves. Where floating-point work would be done twice, because something else reads the sorted rows, all stays.

    **Input IR.** `@step` after `spmd-infer-index-bounds`. **Output IR.** The same without such sorts, and without
    what counts groups.

    **Why.** A mixture of experts sorts its tokens by expert, so that a library multiplies each group by one matrix.
    That says of one device where tokens lie; of tokens that are distributed over ranks it would make every rank need
    all of them. Each token's result depends on the token and its expert alone.

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

//===- Passes.td - optimizers -------------------------------*- tablegen -*-===//

#ifndef SPMD_TRANSFORMS_OPTIMIZER_PASSES_TD
#define SPMD_TRANSFORMS_OPTIMIZER_PASSES_TD

include "mlir/Pass/PassBase.td"

def MergeOptimizerLists : Pass<"spmd-merge-optimizer-lists", "::mlir::ModuleOp"> {
  let summary = "makes one list op of the same op on several parameters or param groups";
  let description = [{
    An optimizer with several *param groups* runs the same list ops once per group.
    The pass concatenates them: two fused ops of one kind become one, whose
    hyper-parameters have an entry per group; two `_foreach` ops become one, whose
    scalar, where it differs, becomes a list of scalars (or, if it is a tensor, a
    list of tensors).

    A single-tensor optimizer runs one chain of pointwise ops per parameter. Where
    the chains of several parameters are equal, op by op, the k-th ops of all become
    one `aten._foreach_map`, whose positions apply that op.

    A group may lack an op that others have (no weight decay: no multiplication).
    If a merged op then takes some entries of a list from an op and others from
    elsewhere, that op is extended over the others with its identity (times 1,
    plus 0).

    Input: list form or single tensors, before partition. Output: list form; every entry is computed
    from the same values as before. Ops are merged only within a segment, and never
    if one needs the other's result.

    Why: a shard unit holds parameters of several groups in one flat buffer, and
    partition turns a list op into one op on that buffer. It can do so only if the
    op covers all of them.

    ```mlir
    // spmd-opt --spmd-merge-optimizer-lists
    func.func @step(%p0: tensor<4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                    %p1: tensor<6xf32> {spmd.arg = #spmd.param<"b", trainable>}) -> (tensor<4xf32>, tensor<6xf32>) {
      %0 = aten._foreach_mul.Scalar %p0 {scalar = 0.9 : f64, spmd.segment = 2} : (tensor<4xf32>) -> tensor<4xf32>
      %1 = aten._foreach_mul.Scalar %p1 {scalar = 0.5 : f64, spmd.segment = 2} : (tensor<6xf32>) -> tensor<6xf32>
      return %0, %1 : tensor<4xf32>, tensor<6xf32>
    }
    // becomes
    func.func @step(%p0: tensor<4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                    %p1: tensor<6xf32> {spmd.arg = #spmd.param<"b", trainable>}) -> (tensor<4xf32>, tensor<6xf32>) {
      %0:2 = aten._foreach_mul.ScalarList %p0, %p1 {scalars = [0.9, 0.5], spmd.segment = 2}
          : (tensor<4xf32>, tensor<6xf32>) -> (tensor<4xf32>, tensor<6xf32>)
      return %0#0, %0#1 : tensor<4xf32>, tensor<6xf32>
    }
    ```
  }];
}

def DecomposeOptimizer : Pass<"spmd-decompose-optimizer", "::mlir::ModuleOp"> {
  let summary = "writes list ops as elementwise arithmetic";
  let description = [{
    Replaces every `aten._foreach_*` and `aten._fused_*` op. In list form each
    position becomes a chain of pointwise ops. In chunk form (`unit`) there is one
    chain on the rank's chunk of the flat buffer; what differs between segments is
    computed on tables with one entry per segment and spread over the chunk by
    `spmd.segment_broadcast`; `_foreach_norm` becomes `spmd.segment_norm`.

    The arithmetic of the fused optimizers is that of PyTorch's fused CPU kernels:
    learning rates, powers of beta and bias corrections in f64 (on scalars or
    tables), converted to the parameter's element type once, and then elementwise
    in that type. The conversion is an `aten._to_copy`. A step counter is what
    PyTorch's op gets: already incremented, by a list op of its own.

    Padding of a flat buffer is 0 and stays 0: a table is 0 there, so the pass
    multiplies by reciprocals; where it must divide by a table, the divisor is 1 in
    the padding. A new value of a parameter or a state that is not known to be 0
    there (it was clamped to at least 1e-6, or added to 1) is set to 0.

    `ops` also decomposes the named aten ops (`native_layer_norm_backward`,
    `_softmax_backward_data`, `_log_softmax_backward_data`, `tanh_backward`,
    `sigmoid_backward`), for back ends that lack them.

    Input: list ops in either form. Output: none of them.

    Why after partition: a rank's piece of one parameter has another size on each
    rank, its chunk of the flat buffer has one.

    ```mlir
    // spmd-opt --spmd-decompose-optimizer
    spmd.mesh @mesh ["data" = 2]
    spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
      #spmd.segment<"w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>,
      #spmd.segment<"b", shape = [6], group = 1, offset = 128, numel = 6, trainable = true>]>
    // One learning rate per segment, one chunk of parameters.
    func.func @step(%p: tensor<128xf32>, %g: tensor<128xf32>, %lr: tensor<2xf32>) -> tensor<128xf32> {
      %0 = aten._foreach_mul.List %g, %lr {unit = @unit0} : (tensor<128xf32>, tensor<2xf32>) -> tensor<128xf32>
      %1 = aten._foreach_sub.List %p, %0 {alpha = 1.0, unit = @unit0}
          : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
      return %1 : tensor<128xf32>
    }
    // becomes
    spmd.mesh @mesh ["data" = 2]
    spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
      #spmd.segment<"w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>,
      #spmd.segment<"b", shape = [6], group = 1, offset = 128, numel = 6, trainable = true>]>
    func.func @step(%p: tensor<128xf32>, %g: tensor<128xf32>, %lr: tensor<2xf32>) -> tensor<128xf32> {
      %rates = spmd.segment_broadcast %lr unit @unit0 : tensor<2xf32> -> tensor<128xf32>
      %0 = aten.mul.Tensor %g, %rates : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
      %1 = aten.sub.Tensor %p, %0 : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
      return %1 : tensor<128xf32>
    }
    ```
  }];
  let options = [
    ListOption<"ops", "ops", "std::string", "aten ops to decompose besides the list ops">,
  ];
  let dependentDialects = ["::spmd::aten::AtenDialect", "::spmd::SpmdDialect"];
}

#endif // SPMD_TRANSFORMS_OPTIMIZER_PASSES_TD

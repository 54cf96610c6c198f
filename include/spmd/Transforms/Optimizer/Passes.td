//===- Passes.td - optimizers -------------------------------*- tablegen -*-===//

#ifndef SPMD_TRANSFORMS_OPTIMIZER_PASSES_TD
#define SPMD_TRANSFORMS_OPTIMIZER_PASSES_TD

include "mlir/Pass/PassBase.td"

def MergeOptimizerLists : Pass<"spmd-merge-optimizer-lists", "::mlir::ModuleOp"> {
  let summary = "makes one list op of the same op on several param groups";
  let description = [{
    An optimizer with several *param groups* runs the same list ops once per group.
    The pass concatenates them: two fused ops of one kind become one, whose
    hyper-parameters have an entry per group; two `_foreach` ops become one, whose
    scalar, where it differs, becomes a list of scalars (or, if it is a tensor, a
    list of tensors).

    A group may lack an op that others have (no weight decay: no multiplication).
    If a merged op then takes some entries of a list from an op and others from
    elsewhere, that op is extended over the others with its identity (times 1,
    plus 0).

    Input: list form, before partition. Output: list form; every entry is computed
    from the same values as before. Ops are merged only within a segment, and never
    if one needs the other's result.

    Why: a shard unit holds parameters of several groups in one flat buffer, and
    partition turns a list op into one op on that buffer. It can do so only if the
    op covers all of them.

    ```mlir
    %a = aten._foreach_mul.Scalar %p0 {scalar = 0.9 : f64} : ...
    %b = aten._foreach_mul.Scalar %p1 {scalar = 0.5 : f64} : ...
    // becomes
    %ab:2 = aten._foreach_mul.ScalarList %p0, %p1 {scalars = [0.9, 0.5]} : ...
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
    the padding.

    `ops` also decomposes the named aten ops (`native_layer_norm_backward`,
    `_softmax_backward_data`, `_log_softmax_backward_data`, `tanh_backward`,
    `sigmoid_backward`), for back ends that lack them.

    Input: list ops in either form. Output: none of them.

    Why after partition: a rank's piece of one parameter has another size on each
    rank, its chunk of the flat buffer has one.

    ```mlir
    %w1 = aten._foreach_add.List %w, %g {alpha = -0.1 : f64, unit = @unit0} : ...
    // becomes
    %w1 = aten.add.Tensor %w, %g {alpha = -0.1 : f64} : ...
    ```
  }];
  let options = [
    ListOption<"ops", "ops", "std::string", "aten ops to decompose besides the list ops">,
  ];
  let dependentDialects = ["::spmd::aten::AtenDialect", "::spmd::SpmdDialect"];
}

#endif // SPMD_TRANSFORMS_OPTIMIZER_PASSES_TD

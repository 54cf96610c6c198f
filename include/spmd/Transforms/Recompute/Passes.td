//===- Passes.td - what backward computes again -------------*- tablegen -*-===//

#ifndef SPMD_TRANSFORMS_RECOMPUTE_PASSES_TD
#define SPMD_TRANSFORMS_RECOMPUTE_PASSES_TD

include "mlir/Pass/PassBase.td"

def ChooseRecomputed : Pass<"spmd-choose-recomputed", "::mlir::ModuleOp"> {
  let summary = "marks saved values that backward computes again";
  let description = [{
    Marks the `count` saved values that are cheapest to compute again, by modelled
    seconds per byte, with the attribute `spmd.recompute` on the op that computes the
    value in forward. The attribute can be printed, edited and tested.

    Input: the program of one rank, collectives not yet started. Output: the same
    program with attributes. Saved values are the results of forward that backward
    reads from memory; what readers compute inside their own kernels is not saved.
    A value is not chosen if its chain has a collective of activations, if nothing
    gathers a parameter of the chain in backward, or if no heavy op runs between its
    last use in forward and its first use in backward.

    ```mlir
    // spmd-opt --spmd-choose-recomputed=count=1
    module attributes {spmd.phases = ["forward", "backward"]} {
    func.func @step(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
      %g = aten.mm %x, %w {spmd.segment = 0} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %h = aten.silu %g {spmd.segment = 0} : (tensor<64x64xf32>) -> tensor<64x64xf32>
      %y = aten.mm %h, %w {spmd.segment = 0} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %z = aten.mm %y, %w {spmd.segment = 0} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %dw = aten.mm %h, %z {spmd.segment = 1} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %dg = aten.silu_backward %dw, %g {spmd.segment = 1} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      return %dg : tensor<64x64xf32>
    }
    }
    // becomes
    module attributes {spmd.phases = ["forward", "backward"]} {
    func.func @step(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
      %g = aten.mm %x, %w {spmd.segment = 0} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %h = aten.silu %g {spmd.recompute, spmd.segment = 0} : (tensor<64x64xf32>) -> tensor<64x64xf32>
      %y = aten.mm %h, %w {spmd.segment = 0} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %z = aten.mm %y, %w {spmd.segment = 0} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %dw = aten.mm %h, %z {spmd.segment = 1} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %dg = aten.silu_backward %dw, %g {spmd.segment = 1} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      return %dg : tensor<64x64xf32>
    }
    }
    ```
  }];
  let options = [Option<"count", "count", "int64_t", "0", "saved values to compute again">];
}

def RecomputeValues : Pass<"spmd-recompute-values", "::mlir::ModuleOp"> {
  let summary = "computes marked values again where backward reads them";
  let description = [{
    Gives backward its own copy of each op marked `spmd.recompute`, and of the ops
    between it and the values that stay saved, before the first reader. Copies read
    the parameters that backward gathers. A gradient of a weight that reads a light
    copy moves behind the product after which other kernels read the same inputs, so
    that the copy becomes one more output of such a kernel. The attribute is removed.

    Input: the program of one rank, collectives not yet started. Output: the same
    values, bit for bit: a copy has the arithmetic of its original.

    ```mlir
    // spmd-opt --spmd-recompute-values
    module attributes {spmd.phases = ["forward", "backward"]} {
    func.func @step(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
      %g = aten.mm %x, %w {spmd.segment = 0} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %h = aten.silu %g {spmd.recompute, spmd.segment = 0} : (tensor<64x64xf32>) -> tensor<64x64xf32>
      %y = aten.mm %h, %w {spmd.segment = 0} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %dw = aten.mm %h, %y {spmd.segment = 1} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      return %dw : tensor<64x64xf32>
    }
    }
    // becomes
    module attributes {spmd.phases = ["forward", "backward"]} {
    func.func @step(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
      %g = aten.mm %x, %w {spmd.segment = 0} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %h = aten.silu %g {spmd.segment = 0} : (tensor<64x64xf32>) -> tensor<64x64xf32>
      %y = aten.mm %h, %w {spmd.segment = 0} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %g_again = aten.mm %x, %w {spmd.recomputed, spmd.segment = 1} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %h_again = aten.silu %g_again {spmd.recomputed, spmd.segment = 1} : (tensor<64x64xf32>) -> tensor<64x64xf32>
      %dw = aten.mm %h_again, %y {spmd.segment = 1} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      return %dw : tensor<64x64xf32>
    }
    }
    ```
  }];
  let dependentDialects = ["::spmd::SpmdDialect"];
}

#endif // SPMD_TRANSFORMS_RECOMPUTE_PASSES_TD

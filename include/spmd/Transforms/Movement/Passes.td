//===- Passes.td - copies that a model spells out -----------*- tablegen -*-===//

#ifndef SPMD_TRANSFORMS_MOVEMENT_PASSES_TD
#define SPMD_TRANSFORMS_MOVEMENT_PASSES_TD

include "mlir/Pass/PassBase.td"

def DropAnchors : Pass<"spmd-drop-anchors", "::mlir::ModuleOp"> {
  let summary = "removes the anchors that spmd.anchor() made";
  let description = [{
    Definition: every `aten.anchor` is replaced by its operand.

    Input: functions in aten ops, partitioned or not. Output: the same without `aten.anchor`.

    Why: an anchor is there for passes over the partitioned program, which find it by its name; it computes nothing.

    ```mlir
    // spmd-opt --spmd-drop-anchors
    func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = aten.anchor %x {name = "router"} : (tensor<4xf32>) -> tensor<4xf32>
      %1 = aten.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    // becomes
    func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = aten.relu %x : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["::spmd::aten::AtenDialect"];
}

def ShareKeyValueHeads : Pass<"spmd-share-key-value-heads", "::mlir::ModuleOp"> {
  let summary = "lets attention share key and value heads that the model repeats for its query heads";
  let description = [{
    Definition: if key and value of an attention are heads repeated for a group of query heads (`expand` and a
    view, as `repeat_interleave` and most models write it), the attention reads the heads themselves, with
    `enable_gqa`. So does its backward, if the gradients of the repeated heads are only summed over the group:
    it then returns the sums.

    Input: functions of one block in aten ops on plain tensors (after spmd-strip-sharding). Output: the same.
    The attention sums over a group in f32; in bf16 the gradients of single heads are no longer rounded before.

    Why: repeated heads, and the gradient of each, would be larger tensors in memory.

    ```mlir
    // spmd-opt --spmd-share-key-value-heads
    func.func @step(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x8x16xf32>, %v: tensor<2x2x8x16xf32>)
        -> tensor<2x4x8x16xf32> {
      %0 = aten.view %k {size = array<i64: 2, 2, 1, 8, 16>} : (tensor<2x2x8x16xf32>) -> tensor<2x2x1x8x16xf32>
      %1 = aten.expand %0 {size = array<i64: 2, 2, 2, 8, 16>} : (tensor<2x2x1x8x16xf32>) -> tensor<2x2x2x8x16xf32>
      %2 = aten.view %1 {size = array<i64: 2, 4, 8, 16>} : (tensor<2x2x2x8x16xf32>) -> tensor<2x4x8x16xf32>
      %3 = aten.view %v {size = array<i64: 2, 2, 1, 8, 16>} : (tensor<2x2x8x16xf32>) -> tensor<2x2x1x8x16xf32>
      %4 = aten.expand %3 {size = array<i64: 2, 2, 2, 8, 16>} : (tensor<2x2x1x8x16xf32>) -> tensor<2x2x2x8x16xf32>
      %5 = aten.view %4 {size = array<i64: 2, 4, 8, 16>} : (tensor<2x2x2x8x16xf32>) -> tensor<2x4x8x16xf32>
      %out, %lse = aten.sdpa %q, %2, %5 {dropout_p = 0.0, is_causal = true}
          : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>)
          -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
      return %out : tensor<2x4x8x16xf32>
    }
    // becomes
    func.func @step(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x8x16xf32>, %v: tensor<2x2x8x16xf32>)
        -> tensor<2x4x8x16xf32> {
      %out, %lse = aten.sdpa %q, %k, %v {dropout_p = 0.0, enable_gqa = true, is_causal = true}
          : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>)
          -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
      return %out : tensor<2x4x8x16xf32>
    }
    ```
  }];
}

def JoinSliceGradients : Pass<"spmd-join-slice-gradients", "::mlir::ModuleOp"> {
  let summary = "makes one cat of the gradients of adjacent slices";
  let description = [{
    Definition: a sum of `slice_backward` ops becomes an `aten.cat` of the gradients of the slices, if the
    slices are adjacent, cover the tensor, and are adjacent terms of the sum. The gradients must be views of one
    value (or of its negation), or results of one op.

    Input: functions of one block in aten ops on plain tensors (after spmd-strip-sharding). Output: the same
    values, except that zeros keep their sign (a sum of -0 and 0 is 0).

    Why: `x[:n]` and `x[n:]` equal `x.split(n)`, whose gradient is a cat. A cat of parts of one tensor is a
    view, and a cat of an attention's gradients is the place where the attention writes. A sum of tensors padded
    with zeros is neither. For other gradients a cat would be a copy; the sum is fused with later ops and is no
    copy.

    ```mlir
    // spmd-opt --spmd-join-slice-gradients
    func.func @step(%a: tensor<4x4xf32>) -> tensor<4x8xf32> {
      %0 = aten.neg %a : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %1 = aten.slice_backward %0 {dim = 1, end = 8, input_sizes = array<i64: 4, 8>, start = 4, step = 1}
          : (tensor<4x4xf32>) -> tensor<4x8xf32>
      %2 = aten.slice_backward %a {dim = 1, end = 4, input_sizes = array<i64: 4, 8>, start = 0, step = 1}
          : (tensor<4x4xf32>) -> tensor<4x8xf32>
      %3 = aten.add.Tensor %1, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      return %3 : tensor<4x8xf32>
    }
    // becomes
    func.func @step(%a: tensor<4x4xf32>) -> tensor<4x8xf32> {
      %0 = aten.neg %a : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %1 = aten.cat %a, %0 {dim = 1 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
      return %1 : tensor<4x8xf32>
    }
    ```
  }];
}

#endif // SPMD_TRANSFORMS_MOVEMENT_PASSES_TD

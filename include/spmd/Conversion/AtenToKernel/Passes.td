//===- Passes.td - from aten to kernels -------------------*- tablegen -*-===//

#ifndef SPMD_CONVERSION_ATENTOKERNEL_PASSES_TD
#define SPMD_CONVERSION_ATENTOKERNEL_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertAtenToKernelPass
    : Pass<"spmd-convert-aten-to-kernel", "::mlir::ModuleOp"> {
  let summary = "turns one rank's program into fused kernels";
  let description = [{
    Definition: aten ops become kernel ops. Views become layouts through which
    others read; pointwise ops, softmax, norms, losses and reductions become
    scalar functions, which are fused into clusters; matrix products, attention
    and embeddings become kernels of their own, which read and write views
    without copies. Collectives, `spmd.pack` and `spmd.unpack` stay.

    Input: functions of one block in aten and spmd ops on plain tensors (after
    `spmd-strip-sharding`), optimizers decomposed. Output: the same functions in
    kernel ops and spmd collectives only.

    Why: a light op costs what it reads and writes, so it should not be an op. A
    light op runs right after the last heavy op it depends on, those of one such
    place that agree on an iteration space are one kernel, and values that are
    cheaper to compute again than to keep are computed where they are used.

    With `fuse=false` every light op is a kernel; results are the same bits.

    ```mlir
    // spmd-opt --spmd-convert-aten-to-kernel
    func.func @step(%a: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
      %y = aten.mul.Tensor %a, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
      %z = aten.neg %y : (tensor<4x8xf32>) -> tensor<4x8xf32>
      return %z : tensor<4x8xf32>
    }
    // becomes
    func.func @step(%a: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
      %z = kernel.cluster dims [4, 8] parallel 1
          ins(%p = %a at (d0, d1) -> (d0 * 8 + d1) : tensor<4x8xf32>, %q = %b at (d0, d1) -> (d1) : tensor<8xf32>)
          outs(at (d0, d1) -> (d0 * 8 + d1) : tensor<4x8xf32>) {
        %0 = arith.mulf %p, %q : f32
        %1 = arith.negf %0 : f32
        kernel.yield %1 : f32
      }
      return %z : tensor<4x8xf32>
    }
    ```
  }];
  let options = [
    Option<"fuse", "fuse", "bool", /*default=*/"true",
           "fuse light ops into clusters and compute light values again">
  ];
  let dependentDialects = ["::spmd::kernel::KernelDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

#endif // SPMD_CONVERSION_ATENTOKERNEL_PASSES_TD

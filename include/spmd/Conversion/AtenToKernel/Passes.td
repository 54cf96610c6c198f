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
    scalar functions, which are fused into clusters; GEMMs, attention
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
    Option<"fuse", "fuse", "::spmd::BooleanOption", /*default=*/"true",
           "fuse light ops into clusters and compute light values again">,
    Option<"reductionBlocks", "reduction-blocks", "int64_t", /*default=*/"64",
           "most blocks that rows are cut into where their sum alone would leave processors idle">,
    Option<"fewerLaunches", "fewer-launches", "::spmd::BooleanOption", /*default=*/"false",
           "small kernels are avoided, even where others then compute more: for targets where a launch takes time">,
    Option<"clampIndices", "clamp-indices", "::spmd::BooleanOption", /*default=*/"false",
           "row numbers that are checked are clamped, for targets that find bad ones when the step is over">
  ];
  let dependentDialects = ["::spmd::kernel::KernelDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def FuseGemmEpiloguesPass : Pass<"spmd-fuse-gemm-epilogues", "::mlir::ModuleOp"> {
  let summary = "folds biases, sums, activations and gradients of biases and gelu into GEMMs";
  let description = [{
    Definition: if all readers of a GEMM add the same bias, then the same tensor of the GEMM's size, then apply
    the same activation, `kernel.gemm` does this instead. Readers take the result, or `pre_activation`, the
    input of the activation, if a gradient needs it. Clusters without remaining work disappear.

    Input: kernel ops in blocks (after spmd-convert-aten-to-kernel). Output: the same, with epilogues.

    `epilogues` lists what the target's library supports: `bias`; `residual`, which adds a tensor of the GEMM's
    size, in place if nothing reads it afterwards; `relu`, `gelu`, `gelu_tanh`. `dtypes` lists the types of
    their GEMMs. Two more epilogues exist for all GEMMs except those of f64:

    - `bias_gradient`: clusters sum the columns of the operand that a GEMM contracts by its rows, in one step or
      in several, and all readers of the sums can come later. The GEMM then computes the sums. They are added in
      f32 as in the clusters, in the library's order. For a GEMM of a narrower type they are rounded once, and
      only if their readers round them so.
    - `gelu_tanh_backward`: only clusters read a GEMM, and they multiply it by the derivative of gelu (by tanh)
      at one matrix with rows of a multiple of 8 elements. The GEMM then reads the matrix and multiplies. If the
      matrix comes from a GEMM whose readers all add the same bias, and the sum is not in memory, that GEMM adds
      the bias (if `bias` and `dtypes` allow it). A parameter that the backward gathers again is the same
      parameter. `bias_gradient` is then first applied to that GEMM's result.

    Errors: an unknown name (lists the known ones).

    An epilogue is used only if it pays: clusters then move at least one matrix less, and all together, with the
    operands of the GEMM, no more bytes than before. So a cluster that reads the GEMM anyway keeps a single
    bias. Only tensors that exist before the GEMM runs are added. Additions keep their order; the library
    decides whether each is rounded as before. Ours gives the same bits.

    Why: memory bounds clusters and mostly not GEMMs, so an epilogue costs next to nothing. A sum of GEMMs needs
    one tensor, not one per GEMM.

    ```mlir
    // spmd-opt --spmd-fuse-gemm-epilogues="epilogues=bias"
    func.func @linear(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>, %b: tensor<6xf32>) -> tensor<4x6xf32> {
      %p = kernel.gemm m 4 n 6 k 8 a(%x ld 8 : tensor<4x8xf32>) b(%w ld 8 trans : tensor<6x8xf32>) -> tensor<4x6xf32>
      %y = kernel.cluster dims [4, 6] parallel 1
          ins(%e = %p at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>, %f = %b at (d0, d1) -> (d1) : tensor<6xf32>)
          outs(at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>) {
        %0 = arith.addf %e, %f : f32
        kernel.yield %0 : f32
      }
      return %y : tensor<4x6xf32>
    }
    // becomes
    func.func @linear(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>, %b: tensor<6xf32>) -> tensor<4x6xf32> {
      %y = kernel.gemm m 4 n 6 k 8 a(%x ld 8 : tensor<4x8xf32>) b(%w ld 8 trans : tensor<6x8xf32>)
          bias(%b : tensor<6xf32>) -> tensor<4x6xf32>
      return %y : tensor<4x6xf32>
    }
    ```
  }];
  let options = [
    Option<"epilogues", "epilogues", "std::string", "\"bias,residual\"",
           "what the library has, of bias, residual, relu, gelu, gelu_tanh, gelu_tanh_backward and bias_gradient; or none">,
    Option<"dtypes", "dtypes", "std::string", "\"f32,bf16\"",
           "element types of the GEMMs that it has this for, gelu_tanh_backward and bias_gradient aside, of f32, f64 and bf16">,
  ];
  let dependentDialects = ["::spmd::kernel::KernelDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def PadLeadingDimsPass : Pass<"spmd-pad-leading-dims", "::mlir::ModuleOp"> {
  let summary = "aligns rows of matrices for a library's fast GEMMs";
  let description = [{
    Definition: a matrix that only GEMMs and clusters write and read, and whose rows are no multiple of
    `alignment` bytes, gets a padded leading dimension. For rows of 4 KiB or more it is a multiple of 128 bytes.
    Leading dimensions of GEMMs and maps of clusters change with it; an elementwise cluster over all elements
    becomes one over rows. Padding between rows is neither written nor read.

    Input: kernel ops in blocks (after spmd-fuse-gemm-epilogues). Output: the same, with `ldc` where it is not
    the row's length. Errors: an alignment that is no power of two up to 128.

    Not padded: rows shorter than `alignment`; parts of unit buffers; results of the step; matrices with other
    users than GEMMs and clusters with linear maps. A GEMM's results and residual have one layout, or none is
    padded.

    Why: a library's fast GEMMs move vectors of 16 bytes. Those of GPT-2's 50,257 logits take 5 to 8 times as
    long without padding (measured on an H200, bf16), and clusters read rows in vectors too. It costs less than
    `alignment` bytes a row, or 3 % of memory.

    ```mlir
    // spmd-opt --spmd-pad-leading-dims
    func.func @logits(%x: tensor<8x16xf32>, %w: tensor<7x16xf32>, %v: tensor<7x4xf32>) -> tensor<8x4xf32> {
      %p = kernel.gemm m 8 n 7 k 16 a(%x ld 16 : tensor<8x16xf32>) b(%w ld 16 trans : tensor<7x16xf32>)
          -> tensor<8x7xf32>
      %y = kernel.gemm m 8 n 4 k 7 a(%p ld 7 : tensor<8x7xf32>) b(%v ld 4 : tensor<7x4xf32>) -> tensor<8x4xf32>
      return %y : tensor<8x4xf32>
    }
    // becomes
    func.func @logits(%x: tensor<8x16xf32>, %w: tensor<7x16xf32>, %v: tensor<7x4xf32>) -> tensor<8x4xf32> {
      %p = kernel.gemm m 8 n 7 k 16 a(%x ld 16 : tensor<8x16xf32>) b(%w ld 16 trans : tensor<7x16xf32>)
          ldc 8 -> tensor<8x8xf32>
      %y = kernel.gemm m 8 n 4 k 7 a(%p ld 8 : tensor<8x8xf32>) b(%v ld 4 : tensor<7x4xf32>) -> tensor<8x4xf32>
      return %y : tensor<8x4xf32>
    }
    ```
  }];
  let options = [
    Option<"alignment", "alignment", "int64_t", /*default=*/"16",
           "bytes to whose multiple rows are padded; 1: none are">,
  ];
  let dependentDialects = ["::spmd::kernel::KernelDialect", "::mlir::arith::ArithDialect"];
}

#endif // SPMD_CONVERSION_ATENTOKERNEL_PASSES_TD

// RUN: spmd-opt %s -spmd-convert-kernel-to-plan -spmd-verify-plan -o %t.mlir
// RUN: spmd-translate --plan-to-manifest=%t.mlir | FileCheck %s

// A manifest says the FLOPs and the dtype of kernels of matrix products, which their commands do not; of no other kernel.

// CHECK: "kernel_table": [
// CHECK-NEXT: {"kernel":"k0","kind":"grouped_gemm","required_bytes":{{[0-9]+}},"product_flops":384,"product_dtype":"bf16"},
// CHECK-NEXT: {"kernel":"k1","kind":"grouped_outer","required_bytes":{{[0-9]+}},"product_flops":384,"product_dtype":"bf16"}
// CHECK-NEXT: ]

module attributes {spmd.step = {name = "experts"}} {
  spmd.mesh @mesh ["data" = 1]
  func.func @step(%a: tensor<8x4xbf16> {spmd.arg = #spmd.batch<"a", dim = 0>},
                  %b: tensor<3x6x4xbf16> {spmd.arg = #spmd.batch<"b", dim = 0>},
                  %g: tensor<8xi64> {spmd.arg = #spmd.batch<"g", dim = 0>})
      -> (tensor<8x6xbf16> {spmd.result = #spmd.output<"y">}, tensor<3x4x6xbf16> {spmd.result = #spmd.output<"db">}) {
    %y = kernel.grouped_gemm m 8 n 6 k 4 groups 3(%g : tensor<8xi64>) a(%a : tensor<8x4xbf16>)
        b(%b ld 4 stride 24 trans : tensor<3x6x4xbf16>) {symbol = "k0"} -> tensor<8x6xbf16>
    %db = kernel.grouped_outer rows 8 m 4 n 6 groups 3(%g : tensor<8xi64>) a(%a : tensor<8x4xbf16>)
        b(%y : tensor<8x6xbf16>) {symbol = "k1"} -> tensor<3x4x6xbf16>
    return %y, %db : tensor<8x6xbf16>, tensor<3x4x6xbf16>
  }
}

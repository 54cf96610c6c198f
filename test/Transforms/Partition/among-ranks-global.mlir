// RUN: spmd-opt %s --spmd-partition -verify-diagnostics

spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<8x4xf32> {spmd.result = #spmd.output<"mean">}) {
  // expected-error @+1 {{this collective combines values of ranks, but with view=global the step is that of one device with the whole batch}}
  %mean = aten.c10d_all_reduce %x {kind = "avg", ranks = 2 : i64, spmd.segment = 0 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %mean : tensor<8x4xf32>
}

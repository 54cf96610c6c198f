// Every state of an argument and of a result, on a mesh of two axes: what each rank holds makes up the global value again.
// RUN: split-file %s %t
// RUN: spmd-interpret %t/ranks.mlir --compare=%t/base.mlir --ranks=6 | FileCheck %s
// CHECK: collectives: all_gather 1 (40 bytes per rank)
// CHECK-NEXT: collectives: reduce_scatter 1 (20 bytes per rank)
// CHECK: outputs 8 {{.*}}e-{{(16|17)}} output/{{sum|norm|scattered}} of step 0

// A value whose type says replicated, and is not, is named where it is made.
// RUN: sed 's/-> tensor<5xf32, #max>/-> tensor<5xf32, #whole>/; s/tensor<5xf32, #max>/tensor<5xf32, #whole>/' %t/ranks.mlir > %t/liar.mlir
// RUN: not spmd-interpret %t/liar.mlir 2>&1 | FileCheck %s --check-prefix=LIAR
// LIAR: error: a replicated value differs on ranks 0 and 1: a result of aten.amax

//--- base.mlir
func.func @step(%x: tensor<6x5xf32> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<6x5xf32> {spmd.result = #spmd.output<"cut">}, tensor<6x5xf32> {spmd.result = #spmd.output<"inner">},
        tensor<5xf32> {spmd.result = #spmd.output<"sum">}, tensor<5xf32> {spmd.result = #spmd.output<"max">},
        tensor<5xf32> {spmd.result = #spmd.output<"min">}, tensor<5xf32> {spmd.result = #spmd.output<"norm">},
        tensor<6x5xf32> {spmd.result = #spmd.output<"gathered">}, tensor<5xf32> {spmd.result = #spmd.output<"scattered">}) {
  %sum = aten.sum.dim_IntList %x {dim = array<i64: 0>} : (tensor<6x5xf32>) -> tensor<5xf32>
  %max = aten.amax %x {dim = array<i64: 0>} : (tensor<6x5xf32>) -> tensor<5xf32>
  %negative = aten.neg %x : (tensor<6x5xf32>) -> tensor<6x5xf32>
  %largest = aten.amax %negative {dim = array<i64: 0>} : (tensor<6x5xf32>) -> tensor<5xf32>
  %min = aten.neg %largest : (tensor<5xf32>) -> tensor<5xf32>
  %norm = aten.linalg_vector_norm %x {dim = array<i64: 0>, ord = 2 : i64} : (tensor<6x5xf32>) -> tensor<5xf32>
  return %x, %x, %sum, %max, %min, %norm, %x, %sum
      : tensor<6x5xf32>, tensor<6x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<6x5xf32>, tensor<5xf32>
}

//--- ranks.mlir
#rows = #spmd.sharding<global = [6, 5], [replicated, shard<0, 1, 2>]>
#inner = #spmd.sharding<global = [6, 5], [replicated, shard<0, 2, 1>]>
#all = #spmd.sharding<global = [6, 5], [replicated, replicated]>
#sum = #spmd.sharding<global = [5], [replicated, partial<sum>]>
#max = #spmd.sharding<global = [5], [replicated, partial<max>]>
#min = #spmd.sharding<global = [5], [replicated, partial<min>]>
#norm = #spmd.sharding<global = [5], [replicated, partial<norm2>]>
#whole = #spmd.sharding<global = [5], [replicated, replicated]>
#chunk = #spmd.sharding<global = [5], [replicated, shard<0, 1, 2>]>
spmd.mesh @mesh ["replica" = 2, "data" = 3]
func.func @step(%x: tensor<2x5xf32, #rows> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<2x5xf32, #rows> {spmd.result = #spmd.output<"cut">}, tensor<2x5xf32, #inner> {spmd.result = #spmd.output<"inner">},
        tensor<5xf32, #sum> {spmd.result = #spmd.output<"sum">}, tensor<5xf32, #max> {spmd.result = #spmd.output<"max">},
        tensor<5xf32, #min> {spmd.result = #spmd.output<"min">}, tensor<5xf32, #norm> {spmd.result = #spmd.output<"norm">},
        tensor<6x5xf32, #all> {spmd.result = #spmd.output<"gathered">}, tensor<2xf32, #chunk> {spmd.result = #spmd.output<"scattered">}) {
  %sum = aten.sum.dim_IntList %x {dim = array<i64: 0>} : (tensor<2x5xf32, #rows>) -> tensor<5xf32, #sum>
  %max = aten.amax %x {dim = array<i64: 0>} : (tensor<2x5xf32, #rows>) -> tensor<5xf32, #max>
  %negative = aten.neg %x : (tensor<2x5xf32, #rows>) -> tensor<2x5xf32, #rows>
  %largest = aten.amax %negative {dim = array<i64: 0>} : (tensor<2x5xf32, #rows>) -> tensor<5xf32, #min>
  %min = aten.neg %largest : (tensor<5xf32, #min>) -> tensor<5xf32, #min>
  %norm = aten.linalg_vector_norm %x {dim = array<i64: 0>, ord = 2 : i64} : (tensor<2x5xf32, #rows>) -> tensor<5xf32, #norm>
  %all = spmd.all_gather %x on @mesh ["data"] dim 0 pre 1 total 6 : tensor<2x5xf32, #rows> -> tensor<6x5xf32, #all>
  %inner = spmd.slice %all on @mesh ["data"] dim 0 pre 2 chunk 1 : tensor<6x5xf32, #all> -> tensor<2x5xf32, #inner>
  %scattered = spmd.reduce_scatter sum %sum on @mesh ["data"] dim 0 pre 1 chunk 2 : tensor<5xf32, #sum> -> tensor<2xf32, #chunk>
  return %x, %inner, %sum, %max, %min, %norm, %all, %scattered
      : tensor<2x5xf32, #rows>, tensor<2x5xf32, #inner>, tensor<5xf32, #sum>, tensor<5xf32, #max>, tensor<5xf32, #min>, tensor<5xf32, #norm>, tensor<6x5xf32, #all>, tensor<2xf32, #chunk>
}

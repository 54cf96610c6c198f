// RUN: spmd-opt %s --spmd-list-replicated-values --split-input-file | FileCheck %s

#whole = #spmd.sharding<global = [64, 32], [replicated]>
#turned = #spmd.sharding<global = [32, 64], [replicated]>
#small = #spmd.sharding<global = [4], [replicated]>
#rows = #spmd.sharding<global = [64, 32], [shard<0, 1, 32>]>

// The cosine is listed, with its place; the transpose is a view, the small vector is not worth a line, and rows are
// what they should be.
// CHECK: module attributes {spmd.replicated = [{bytes = 8192 : i64, op = "cos", source = "rope, model.py:7"}]}
spmd.mesh @mesh ["data" = 2]
func.func @step(%table: tensor<64x32xf32, #whole>, %s: tensor<4xf32, #small>, %x: tensor<32x32xf32, #rows>) {
  %cos = aten.cos %table : (tensor<64x32xf32, #whole>) -> tensor<64x32xf32, #whole> loc(fused<#spmd.src<"rope">>["model.py":7:0])
  %t = aten.permute %cos {dims = array<i64: 1, 0>} : (tensor<64x32xf32, #whole>) -> tensor<32x64xf32, #turned>
  %z = aten.cos %s : (tensor<4xf32, #small>) -> tensor<4xf32, #small>
  %y = aten.cos %x : (tensor<32x32xf32, #rows>) -> tensor<32x32xf32, #rows>
  return
}

// -----

// On one rank everything is whole, and nothing is listed.
// CHECK-NOT: spmd.replicated
#alone = #spmd.sharding<global = [64, 32], [replicated]>
spmd.mesh @mesh ["data" = 1]
func.func @step(%table: tensor<64x32xf32, #alone>) {
  %cos = aten.cos %table : (tensor<64x32xf32, #alone>) -> tensor<64x32xf32, #alone>
  return
}

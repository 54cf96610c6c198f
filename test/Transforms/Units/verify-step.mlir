// Each phase's promises, numbered as in the pass, and a step that keeps them.
// RUN: split-file %s %t
// RUN: spmd-opt %t/good.mlir --spmd-verify-step="phase=import" | FileCheck %s --check-prefix=GOOD
// RUN: not spmd-opt %t/role.mlir --spmd-verify-step="phase=import" 2>&1 | FileCheck %s --check-prefix=ROLE
// RUN: not spmd-opt %t/update.mlir --spmd-verify-step="phase=import" 2>&1 | FileCheck %s --check-prefix=UPDATE
// RUN: not spmd-opt %t/good.mlir --spmd-verify-step="phase=units" 2>&1 | FileCheck %s --check-prefix=UNIT
// RUN: not spmd-opt %t/outside.mlir --spmd-verify-step="phase=units" 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// RUN: not spmd-opt %t/twice.mlir --spmd-verify-step="phase=units" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not spmd-opt %t/list.mlir --spmd-verify-step="phase=decompose" 2>&1 | FileCheck %s --check-prefix=LIST
// RUN: not spmd-opt %t/good.mlir --spmd-verify-step="phase=kernels" 2>&1 | FileCheck %s --check-prefix=KERNEL
// RUN: not spmd-opt %t/good.mlir --spmd-verify-step="phase=plan" 2>&1 | FileCheck %s --check-prefix=PHASE

// GOOD: aten.relu
// ROLE: argument 0 of @step has no role
// UPDATE: result 0 of @step updates argument 0 but has type 'tensor<4xf32>' instead of 'tensor<8xf32>'
// UNIT: parameter 'w' is in no shard unit
// OUTSIDE: parameter 'h.0.w' of module 'h.0' (train.Block) is in no shard unit
// TWICE: parameter 'h.0.w' of module 'h.0' (train.Block) is in two shard units, @unit0 and @unit1
// LIST: 'aten._foreach_neg' op is an optimizer op that should have been decomposed
// KERNEL: should have become a kernel
// PHASE: unknown phase 'plan'; allowed: import, units, decompose, kernels

//--- good.mlir
func.func @step(%w: tensor<8xf32> {spmd.arg = #spmd.param<"w", trainable>}) -> (tensor<8xf32> {spmd.result = #spmd.output<"">}) {
  %0 = aten.relu %w {spmd.segment = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
//--- outside.mlir
spmd.module_tree @tree {
  spmd.module "" class "train.GPT" bases [] params [] buffers [] children ["h.0"]
  spmd.module "h.0" class "train.Block" bases [] params ["h.0.w"] buffers [] children []
}
func.func @step(%w: tensor<8xf32> {spmd.arg = #spmd.param<"h.0.w", trainable>}) -> (tensor<8xf32> {spmd.result = #spmd.output<"">}) {
  %0 = aten.relu %w {spmd.segment = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
//--- twice.mlir
spmd.module_tree @tree {
  spmd.module "" class "train.GPT" bases [] params [] buffers [] children ["h.0"]
  spmd.module "h.0" class "train.Block" bases [] params ["h.0.w"] buffers [] children []
}
spmd.mesh @mesh ["data" = 1]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 128, [
  #spmd.segment<"h.0.w", shape = [8], group = 0, offset = 0, numel = 8, trainable = true>]>
spmd.shard_unit @unit1 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 128, [
  #spmd.segment<"h.0.w", shape = [8], group = 0, offset = 0, numel = 8, trainable = true>]>
func.func @step(%w: tensor<8xf32> {spmd.arg = #spmd.param<"h.0.w", trainable>}) -> (tensor<8xf32> {spmd.result = #spmd.output<"">}) {
  %0 = aten.relu %w {spmd.segment = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
//--- role.mlir
func.func @step(%w: tensor<8xf32>) {
  return
}
//--- update.mlir
func.func @step(%w: tensor<8xf32> {spmd.arg = #spmd.param<"w", trainable>}) -> (tensor<4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>}) {
  %0 = aten.full {fill_value = 1.0 : f64, size = array<i64: 4>, spmd.segment = 0 : i64} : () -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
//--- list.mlir
func.func @step(%w: tensor<8xf32> {spmd.arg = #spmd.param<"w", trainable>}) -> (tensor<8xf32> {spmd.result = #spmd.output<"">}) {
  %0 = aten._foreach_neg %w {spmd.segment = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

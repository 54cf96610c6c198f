// Each phase's promises, numbered as in the pass, and a step that keeps them.
// RUN: split-file %s %t
// RUN: spmd-opt %t/good.mlir --spmd-verify-step="phase=import" | FileCheck %s --check-prefix=GOOD
// RUN: not spmd-opt %t/role.mlir --spmd-verify-step="phase=import" 2>&1 | FileCheck %s --check-prefix=ROLE
// RUN: not spmd-opt %t/update.mlir --spmd-verify-step="phase=import" 2>&1 | FileCheck %s --check-prefix=UPDATE
// RUN: not spmd-opt %t/good.mlir --spmd-verify-step="phase=units" 2>&1 | FileCheck %s --check-prefix=UNIT
// RUN: not spmd-opt %t/list.mlir --spmd-verify-step="phase=decompose" 2>&1 | FileCheck %s --check-prefix=LIST
// RUN: not spmd-opt %t/good.mlir --spmd-verify-step="phase=kernels" 2>&1 | FileCheck %s --check-prefix=KERNEL
// RUN: not spmd-opt %t/good.mlir --spmd-verify-step="phase=plan" 2>&1 | FileCheck %s --check-prefix=PHASE

// GOOD: aten.relu
// ROLE: argument 0 of @step has no role
// UPDATE: result 0 of @step updates argument 0 but has type 'tensor<4xf32>' instead of 'tensor<8xf32>'
// UNIT: parameter 'w' is in no shard unit
// LIST: 'aten._foreach_neg' op is an optimizer op that should have been decomposed
// KERNEL: should have become a kernel
// PHASE: unknown phase 'plan'; allowed: import, units, decompose, kernels

//--- good.mlir
func.func @step(%w: tensor<8xf32> {spmd.arg = #spmd.param<"w", trainable>}) -> (tensor<8xf32> {spmd.result = #spmd.output<"">}) {
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

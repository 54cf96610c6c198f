// Bad input is named and ends in exit code 2, a wrong result in 1, a failure while running in 3.
// RUN: split-file %s %t

// RUN: not spmd-interpret %t/no-such-file.mlir 2>&1 | FileCheck %s --check-prefix=FILE
// FILE: spmd-interpret: cannot open input file '{{.*}}no-such-file.mlir'
// RUN: not spmd-interpret 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: spmd-interpret: no program given
// RUN: not spmd-interpret %t/unknown.mlir --dtype=f16 2>&1 | FileCheck %s --check-prefix=DTYPE
// DTYPE: Cannot find option named 'f16'
// RUN: not spmd-interpret %t/unknown.mlir --reference 2>&1 | FileCheck %s --check-prefix=REFERENCE
// REFERENCE: spmd-interpret: --reference needs --weights
// RUN: not spmd-interpret %t/unknown.mlir --weights=%t/nowhere 2>&1 | FileCheck %s --check-prefix=WEIGHTS
// WEIGHTS: error: {{.*}}nowhere{{.*}}weights.safetensors

// RUN: bash -c 'spmd-interpret %t/unknown.mlir; test $? = 2' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: the interpreter has no evaluator of 'math.exp' (h.0.attn, train.py:10)

// RUN: not spmd-interpret %t/no-step.mlir 2>&1 | FileCheck %s --check-prefix=NOSTEP
// NOSTEP: error: there is no function @step
// RUN: not spmd-interpret %t/no-role.mlir 2>&1 | FileCheck %s --check-prefix=NOROLE
// NOROLE: error: argument 0 has no role (spmd.arg)
// RUN: not spmd-interpret %t/update.mlir 2>&1 | FileCheck %s --check-prefix=UPDATE
// UPDATE: error: result 0 updates #spmd.param<"b", trainable>, which no argument is

// RUN: bash -c 'spmd-interpret %t/step.mlir --compare=%t/other.mlir; test $? = 1' 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: only one of the programs gives 'output/0'

// RUN: bash -c 'spmd-interpret %t/rows.mlir; test $? = 3' 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: error: cannot be evaluated: row number 9 is not in [0, 4)

//--- unknown.mlir
func.func @step(%x: tensor<2xf32> {spmd.arg = #spmd.param<"x", trainable>}) -> (tensor<2xf32> {spmd.result = #spmd.output<"0">}) {
  %y = math.exp %x : tensor<2xf32> loc(fused<#spmd.src<"h.0.attn">>["train.py":10:3])
  return %y : tensor<2xf32>
}

//--- no-step.mlir
func.func @other() { return }

//--- no-role.mlir
func.func @step(%x: tensor<2xf32>) -> (tensor<2xf32> {spmd.result = #spmd.output<"0">}) {
  return %x : tensor<2xf32>
}

//--- update.mlir
func.func @step(%x: tensor<2xf32> {spmd.arg = #spmd.param<"a", trainable>})
    -> (tensor<2xf32> {spmd.result = #spmd.update<#spmd.param<"b", trainable>>}) {
  return %x : tensor<2xf32>
}

//--- step.mlir
func.func @step(%x: tensor<2xf32> {spmd.arg = #spmd.batch<"x", dim = 0>}) -> (tensor<2xf32> {spmd.result = #spmd.output<"1">}) {
  return %x : tensor<2xf32>
}

//--- other.mlir
func.func @step(%x: tensor<2xf32> {spmd.arg = #spmd.batch<"x", dim = 0>}) -> (tensor<2xf32> {spmd.result = #spmd.output<"0">}) {
  return %x : tensor<2xf32>
}

//--- rows.mlir
func.func @step(%w: tensor<4x2xf32> {spmd.arg = #spmd.param<"w", trainable>}) -> (tensor<2x2xf32> {spmd.result = #spmd.output<"0">}) {
  %rows = aten.constant dense<[1, 9]> : tensor<2xi64> : tensor<2xi64>
  %y = aten.embedding %w, %rows : (tensor<4x2xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

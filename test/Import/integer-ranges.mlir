// Between which bounds the integers are that ops compute: a check of just these goes, one of a number less at either end
// stays.

// RUN: spmd-opt %s --spmd-infer-index-bounds -o %t.mlir
// RUN: FileCheck %s --check-prefix=IN --allow-empty < %t.mlir
// RUN: FileCheck %s < %t.mlir

// IN-NOT: use = "in
// CHECK: use = "high clamp"
// CHECK: use = "low clamp"
// CHECK: use = "high sub"
// CHECK: use = "low sub"
// CHECK: use = "high arange"
// CHECK: use = "low arange"
// CHECK: use = "high full"
// CHECK: use = "low full"
// CHECK: use = "high scalar_tensor"
// CHECK: use = "low scalar_tensor"
// CHECK: use = "high constant"
// CHECK: use = "low constant"
// CHECK: use = "high add"
// CHECK: use = "low add"
// CHECK: use = "high sub of tensors"
// CHECK: use = "low sub of tensors"
// CHECK: use = "high rsub"
// CHECK: use = "low rsub"
// CHECK: use = "high mul"
// CHECK: use = "low mul"
// CHECK: use = "high remainder"
// CHECK: use = "low remainder"
// CHECK: use = "high remainder of tensors"
// CHECK: use = "low remainder of tensors"
// CHECK: use = "high floor_divide"
// CHECK: use = "low floor_divide"
// CHECK: use = "high div"
// CHECK: use = "low div"
// CHECK: use = "high neg"
// CHECK: use = "low neg"
// CHECK: use = "high abs"
// CHECK: use = "low abs"
// CHECK: use = "high minimum"
// CHECK: use = "low minimum"
// CHECK: use = "high maximum"
// CHECK: use = "low maximum"
// CHECK: use = "high where, never"
// CHECK: use = "low where, never"
// CHECK: use = "high where"
// CHECK: use = "low where"
// CHECK: use = "high masked_fill"
// CHECK: use = "low masked_fill"
// CHECK: use = "high gather_rows"
// CHECK: use = "low gather_rows"
// CHECK: use = "high scatter_rows"
// CHECK: use = "low scatter_rows"
// CHECK: use = "high amax"
// CHECK: use = "low amax"
// CHECK: use = "high sum"
// CHECK: use = "low sum"
// CHECK: use = "high sum of flags"
// CHECK: use = "low sum of flags"
// CHECK: use = "high cumsum"
// CHECK: use = "low cumsum"
// CHECK: use = "high max"
// CHECK: use = "low max"
// CHECK: use = "high sort"
// CHECK: use = "low sort"
// CHECK: use = "high order"
// CHECK: use = "low order"
// CHECK: use = "high to and from i8"
// CHECK: use = "low to and from i8"
// CHECK: use = "high cat"
// CHECK: use = "low cat"
// CHECK: use = "high check_index"
// CHECK: use = "low check_index"
// A product of bytes that wraps, and what is computed of any number.
// CHECK: use = "wrapped"
// CHECK: use = "unknown"
func.func @step(%x: tensor<3xi64>, %f: tensor<3xf32>, %m: tensor<3xi1>) {
  %a = aten.clamp %x {min = 2 : i64, max = 9 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  %s = aten.sub.Scalar %a {other = 4 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  %arange = aten.arange.start_step {start = 3 : i64, end = 10 : i64, step = 2 : i64} : () -> tensor<4xi64>
  %full = aten.full {size = array<i64: 3>, fill_value = 5 : i64} : () -> tensor<3xi64>
  %number = aten.scalar_tensor {s = 4 : i64} : () -> tensor<i64>
  %constant = aten.constant dense<[7, -1, 2]> : tensor<3xi64> : tensor<3xi64>
  %add = aten.add.Tensor %a, %a {alpha = 2 : i64} : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %sub = aten.sub.Tensor %a, %a : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %rsub = aten.rsub.Scalar %a {other = 10 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  %mul = aten.mul.Tensor %a, %s : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %rest = aten.remainder.Scalar %x {other = 7 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  %rests = aten.remainder.Tensor %x, %a : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %quotient = aten.floor_divide %a, %a : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %half = aten.div.Scalar_mode %a {other = 2 : i64, rounding_mode = "floor"} : (tensor<3xi64>) -> tensor<3xi64>
  %neg = aten.neg %a : (tensor<3xi64>) -> tensor<3xi64>
  %abs = aten.abs %s : (tensor<3xi64>) -> tensor<3xi64>
  %min = aten.minimum %a, %s : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %max = aten.maximum %a, %s : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %never = aten.eq.Scalar %a {other = 1 : i64} : (tensor<3xi64>) -> tensor<3xi1>
  %where = aten.where.self %never, %x, %a : (tensor<3xi1>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %either = aten.where.self %m, %full, %a : (tensor<3xi1>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %fill = aten.masked_fill.Scalar %a, %m {value = 12 : i64} : (tensor<3xi64>, tensor<3xi1>) -> tensor<3xi64>
  %rows = aten.gather_rows %a, %full : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %put = aten.scatter_rows %full, %a {rows = 9 : i64, reduce = "set"} : (tensor<3xi64>, tensor<3xi64>) -> tensor<9xi64>
  %amax = aten.amax %a {dim = array<i64: 0>} : (tensor<3xi64>) -> tensor<i64>
  %sum = aten.sum.dim_IntList %s {dim = array<i64: 0>} : (tensor<3xi64>) -> tensor<i64>
  %flags = aten.sum.dim_IntList %m {dim = array<i64: 0>} : (tensor<3xi1>) -> tensor<i64>
  %scan = aten.cumsum %s {dim = 0 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  %large, %place = aten.max.dim %f {dim = 0 : i64} : (tensor<3xf32>) -> (tensor<f32>, tensor<i64>)
  %values, %order = aten.sort.stable %a {dim = 0 : i64} : (tensor<3xi64>) -> (tensor<3xi64>, tensor<3xi64>)
  %i8 = aten._to_copy %a {dtype = i8} : (tensor<3xi64>) -> tensor<3xi8>
  %wide = aten._to_copy %i8 {dtype = i64} : (tensor<3xi8>) -> tensor<3xi64>
  %both = aten.cat %s, %a {dim = 0 : i64} : (tensor<3xi64>, tensor<3xi64>) -> tensor<6xi64>
  %checked = aten.check_index %x {low = 1 : i64, high = 4 : i64, use = "kept"} : (tensor<3xi64>) -> tensor<3xi64>
  %r0 = aten.check_index %a {low = 2 : i64, high = 10 : i64, use = "in clamp"} : (tensor<3xi64>) -> tensor<3xi64>
  %r1 = aten.check_index %a {low = -3 : i64, high = 9 : i64, use = "high clamp"} : (tensor<3xi64>) -> tensor<3xi64>
  %r2 = aten.check_index %a {low = 3 : i64, high = 14 : i64, use = "low clamp"} : (tensor<3xi64>) -> tensor<3xi64>
  %r3 = aten.check_index %s {low = -2 : i64, high = 6 : i64, use = "in sub"} : (tensor<3xi64>) -> tensor<3xi64>
  %r4 = aten.check_index %s {low = -7 : i64, high = 5 : i64, use = "high sub"} : (tensor<3xi64>) -> tensor<3xi64>
  %r5 = aten.check_index %s {low = -1 : i64, high = 10 : i64, use = "low sub"} : (tensor<3xi64>) -> tensor<3xi64>
  %r6 = aten.check_index %arange {low = 3 : i64, high = 10 : i64, use = "in arange"} : (tensor<4xi64>) -> tensor<4xi64>
  %r7 = aten.check_index %arange {low = -2 : i64, high = 9 : i64, use = "high arange"} : (tensor<4xi64>) -> tensor<4xi64>
  %r8 = aten.check_index %arange {low = 4 : i64, high = 14 : i64, use = "low arange"} : (tensor<4xi64>) -> tensor<4xi64>
  %r9 = aten.check_index %full {low = 5 : i64, high = 6 : i64, use = "in full"} : (tensor<3xi64>) -> tensor<3xi64>
  %r10 = aten.check_index %full {low = 0 : i64, high = 5 : i64, use = "high full"} : (tensor<3xi64>) -> tensor<3xi64>
  %r11 = aten.check_index %full {low = 6 : i64, high = 10 : i64, use = "low full"} : (tensor<3xi64>) -> tensor<3xi64>
  %r12 = aten.check_index %number {low = 4 : i64, high = 5 : i64, use = "in scalar_tensor"} : (tensor<i64>) -> tensor<i64>
  %r13 = aten.check_index %number {low = -1 : i64, high = 4 : i64, use = "high scalar_tensor"} : (tensor<i64>) -> tensor<i64>
  %r14 = aten.check_index %number {low = 5 : i64, high = 9 : i64, use = "low scalar_tensor"} : (tensor<i64>) -> tensor<i64>
  %r15 = aten.check_index %constant {low = -1 : i64, high = 8 : i64, use = "in constant"} : (tensor<3xi64>) -> tensor<3xi64>
  %r16 = aten.check_index %constant {low = -6 : i64, high = 7 : i64, use = "high constant"} : (tensor<3xi64>) -> tensor<3xi64>
  %r17 = aten.check_index %constant {low = 0 : i64, high = 12 : i64, use = "low constant"} : (tensor<3xi64>) -> tensor<3xi64>
  %r18 = aten.check_index %add {low = 6 : i64, high = 28 : i64, use = "in add"} : (tensor<3xi64>) -> tensor<3xi64>
  %r19 = aten.check_index %add {low = 1 : i64, high = 27 : i64, use = "high add"} : (tensor<3xi64>) -> tensor<3xi64>
  %r20 = aten.check_index %add {low = 7 : i64, high = 32 : i64, use = "low add"} : (tensor<3xi64>) -> tensor<3xi64>
  %r21 = aten.check_index %sub {low = -7 : i64, high = 8 : i64, use = "in sub of tensors"} : (tensor<3xi64>) -> tensor<3xi64>
  %r22 = aten.check_index %sub {low = -12 : i64, high = 7 : i64, use = "high sub of tensors"} : (tensor<3xi64>) -> tensor<3xi64>
  %r23 = aten.check_index %sub {low = -6 : i64, high = 12 : i64, use = "low sub of tensors"} : (tensor<3xi64>) -> tensor<3xi64>
  %r24 = aten.check_index %rsub {low = 1 : i64, high = 9 : i64, use = "in rsub"} : (tensor<3xi64>) -> tensor<3xi64>
  %r25 = aten.check_index %rsub {low = -4 : i64, high = 8 : i64, use = "high rsub"} : (tensor<3xi64>) -> tensor<3xi64>
  %r26 = aten.check_index %rsub {low = 2 : i64, high = 13 : i64, use = "low rsub"} : (tensor<3xi64>) -> tensor<3xi64>
  %r27 = aten.check_index %mul {low = -18 : i64, high = 46 : i64, use = "in mul"} : (tensor<3xi64>) -> tensor<3xi64>
  %r28 = aten.check_index %mul {low = -23 : i64, high = 45 : i64, use = "high mul"} : (tensor<3xi64>) -> tensor<3xi64>
  %r29 = aten.check_index %mul {low = -17 : i64, high = 50 : i64, use = "low mul"} : (tensor<3xi64>) -> tensor<3xi64>
  %r30 = aten.check_index %rest {low = 0 : i64, high = 7 : i64, use = "in remainder"} : (tensor<3xi64>) -> tensor<3xi64>
  %r31 = aten.check_index %rest {low = -5 : i64, high = 6 : i64, use = "high remainder"} : (tensor<3xi64>) -> tensor<3xi64>
  %r32 = aten.check_index %rest {low = 1 : i64, high = 11 : i64, use = "low remainder"} : (tensor<3xi64>) -> tensor<3xi64>
  %r33 = aten.check_index %rests {low = 0 : i64, high = 9 : i64, use = "in remainder of tensors"} : (tensor<3xi64>) -> tensor<3xi64>
  %r34 = aten.check_index %rests {low = -5 : i64, high = 8 : i64, use = "high remainder of tensors"} : (tensor<3xi64>) -> tensor<3xi64>
  %r35 = aten.check_index %rests {low = 1 : i64, high = 13 : i64, use = "low remainder of tensors"} : (tensor<3xi64>) -> tensor<3xi64>
  %r36 = aten.check_index %quotient {low = 0 : i64, high = 5 : i64, use = "in floor_divide"} : (tensor<3xi64>) -> tensor<3xi64>
  %r37 = aten.check_index %quotient {low = -5 : i64, high = 4 : i64, use = "high floor_divide"} : (tensor<3xi64>) -> tensor<3xi64>
  %r38 = aten.check_index %quotient {low = 1 : i64, high = 9 : i64, use = "low floor_divide"} : (tensor<3xi64>) -> tensor<3xi64>
  %r39 = aten.check_index %half {low = 1 : i64, high = 5 : i64, use = "in div"} : (tensor<3xi64>) -> tensor<3xi64>
  %r40 = aten.check_index %half {low = -4 : i64, high = 4 : i64, use = "high div"} : (tensor<3xi64>) -> tensor<3xi64>
  %r41 = aten.check_index %half {low = 2 : i64, high = 9 : i64, use = "low div"} : (tensor<3xi64>) -> tensor<3xi64>
  %r42 = aten.check_index %neg {low = -9 : i64, high = -1 : i64, use = "in neg"} : (tensor<3xi64>) -> tensor<3xi64>
  %r43 = aten.check_index %neg {low = -14 : i64, high = -2 : i64, use = "high neg"} : (tensor<3xi64>) -> tensor<3xi64>
  %r44 = aten.check_index %neg {low = -8 : i64, high = 3 : i64, use = "low neg"} : (tensor<3xi64>) -> tensor<3xi64>
  %r45 = aten.check_index %abs {low = 0 : i64, high = 6 : i64, use = "in abs"} : (tensor<3xi64>) -> tensor<3xi64>
  %r46 = aten.check_index %abs {low = -5 : i64, high = 5 : i64, use = "high abs"} : (tensor<3xi64>) -> tensor<3xi64>
  %r47 = aten.check_index %abs {low = 1 : i64, high = 10 : i64, use = "low abs"} : (tensor<3xi64>) -> tensor<3xi64>
  %r48 = aten.check_index %min {low = -2 : i64, high = 6 : i64, use = "in minimum"} : (tensor<3xi64>) -> tensor<3xi64>
  %r49 = aten.check_index %min {low = -7 : i64, high = 5 : i64, use = "high minimum"} : (tensor<3xi64>) -> tensor<3xi64>
  %r50 = aten.check_index %min {low = -1 : i64, high = 10 : i64, use = "low minimum"} : (tensor<3xi64>) -> tensor<3xi64>
  %r51 = aten.check_index %max {low = 2 : i64, high = 10 : i64, use = "in maximum"} : (tensor<3xi64>) -> tensor<3xi64>
  %r52 = aten.check_index %max {low = -3 : i64, high = 9 : i64, use = "high maximum"} : (tensor<3xi64>) -> tensor<3xi64>
  %r53 = aten.check_index %max {low = 3 : i64, high = 14 : i64, use = "low maximum"} : (tensor<3xi64>) -> tensor<3xi64>
  %r54 = aten.check_index %where {low = 2 : i64, high = 10 : i64, use = "in where, never"} : (tensor<3xi64>) -> tensor<3xi64>
  %r55 = aten.check_index %where {low = -3 : i64, high = 9 : i64, use = "high where, never"} : (tensor<3xi64>) -> tensor<3xi64>
  %r56 = aten.check_index %where {low = 3 : i64, high = 14 : i64, use = "low where, never"} : (tensor<3xi64>) -> tensor<3xi64>
  %r57 = aten.check_index %either {low = 2 : i64, high = 10 : i64, use = "in where"} : (tensor<3xi64>) -> tensor<3xi64>
  %r58 = aten.check_index %either {low = -3 : i64, high = 9 : i64, use = "high where"} : (tensor<3xi64>) -> tensor<3xi64>
  %r59 = aten.check_index %either {low = 3 : i64, high = 14 : i64, use = "low where"} : (tensor<3xi64>) -> tensor<3xi64>
  %r60 = aten.check_index %fill {low = 2 : i64, high = 13 : i64, use = "in masked_fill"} : (tensor<3xi64>) -> tensor<3xi64>
  %r61 = aten.check_index %fill {low = -3 : i64, high = 12 : i64, use = "high masked_fill"} : (tensor<3xi64>) -> tensor<3xi64>
  %r62 = aten.check_index %fill {low = 3 : i64, high = 17 : i64, use = "low masked_fill"} : (tensor<3xi64>) -> tensor<3xi64>
  %r63 = aten.check_index %rows {low = 2 : i64, high = 10 : i64, use = "in gather_rows"} : (tensor<3xi64>) -> tensor<3xi64>
  %r64 = aten.check_index %rows {low = -3 : i64, high = 9 : i64, use = "high gather_rows"} : (tensor<3xi64>) -> tensor<3xi64>
  %r65 = aten.check_index %rows {low = 3 : i64, high = 14 : i64, use = "low gather_rows"} : (tensor<3xi64>) -> tensor<3xi64>
  %r66 = aten.check_index %put {low = 0 : i64, high = 10 : i64, use = "in scatter_rows"} : (tensor<9xi64>) -> tensor<9xi64>
  %r67 = aten.check_index %put {low = -5 : i64, high = 9 : i64, use = "high scatter_rows"} : (tensor<9xi64>) -> tensor<9xi64>
  %r68 = aten.check_index %put {low = 1 : i64, high = 14 : i64, use = "low scatter_rows"} : (tensor<9xi64>) -> tensor<9xi64>
  %r69 = aten.check_index %amax {low = 2 : i64, high = 10 : i64, use = "in amax"} : (tensor<i64>) -> tensor<i64>
  %r70 = aten.check_index %amax {low = -3 : i64, high = 9 : i64, use = "high amax"} : (tensor<i64>) -> tensor<i64>
  %r71 = aten.check_index %amax {low = 3 : i64, high = 14 : i64, use = "low amax"} : (tensor<i64>) -> tensor<i64>
  %r72 = aten.check_index %sum {low = -6 : i64, high = 16 : i64, use = "in sum"} : (tensor<i64>) -> tensor<i64>
  %r73 = aten.check_index %sum {low = -11 : i64, high = 15 : i64, use = "high sum"} : (tensor<i64>) -> tensor<i64>
  %r74 = aten.check_index %sum {low = -5 : i64, high = 20 : i64, use = "low sum"} : (tensor<i64>) -> tensor<i64>
  %r75 = aten.check_index %flags {low = 0 : i64, high = 4 : i64, use = "in sum of flags"} : (tensor<i64>) -> tensor<i64>
  %r76 = aten.check_index %flags {low = -5 : i64, high = 3 : i64, use = "high sum of flags"} : (tensor<i64>) -> tensor<i64>
  %r77 = aten.check_index %flags {low = 1 : i64, high = 8 : i64, use = "low sum of flags"} : (tensor<i64>) -> tensor<i64>
  %r78 = aten.check_index %scan {low = -6 : i64, high = 16 : i64, use = "in cumsum"} : (tensor<3xi64>) -> tensor<3xi64>
  %r79 = aten.check_index %scan {low = -11 : i64, high = 15 : i64, use = "high cumsum"} : (tensor<3xi64>) -> tensor<3xi64>
  %r80 = aten.check_index %scan {low = -5 : i64, high = 20 : i64, use = "low cumsum"} : (tensor<3xi64>) -> tensor<3xi64>
  %r81 = aten.check_index %place {low = 0 : i64, high = 3 : i64, use = "in max"} : (tensor<i64>) -> tensor<i64>
  %r82 = aten.check_index %place {low = -5 : i64, high = 2 : i64, use = "high max"} : (tensor<i64>) -> tensor<i64>
  %r83 = aten.check_index %place {low = 1 : i64, high = 7 : i64, use = "low max"} : (tensor<i64>) -> tensor<i64>
  %r84 = aten.check_index %values {low = 2 : i64, high = 10 : i64, use = "in sort"} : (tensor<3xi64>) -> tensor<3xi64>
  %r85 = aten.check_index %values {low = -3 : i64, high = 9 : i64, use = "high sort"} : (tensor<3xi64>) -> tensor<3xi64>
  %r86 = aten.check_index %values {low = 3 : i64, high = 14 : i64, use = "low sort"} : (tensor<3xi64>) -> tensor<3xi64>
  %r87 = aten.check_index %order {low = 0 : i64, high = 3 : i64, use = "in order"} : (tensor<3xi64>) -> tensor<3xi64>
  %r88 = aten.check_index %order {low = -5 : i64, high = 2 : i64, use = "high order"} : (tensor<3xi64>) -> tensor<3xi64>
  %r89 = aten.check_index %order {low = 1 : i64, high = 7 : i64, use = "low order"} : (tensor<3xi64>) -> tensor<3xi64>
  %r90 = aten.check_index %wide {low = 2 : i64, high = 10 : i64, use = "in to and from i8"} : (tensor<3xi64>) -> tensor<3xi64>
  %r91 = aten.check_index %wide {low = -3 : i64, high = 9 : i64, use = "high to and from i8"} : (tensor<3xi64>) -> tensor<3xi64>
  %r92 = aten.check_index %wide {low = 3 : i64, high = 14 : i64, use = "low to and from i8"} : (tensor<3xi64>) -> tensor<3xi64>
  %r93 = aten.check_index %both {low = -2 : i64, high = 10 : i64, use = "in cat"} : (tensor<6xi64>) -> tensor<6xi64>
  %r94 = aten.check_index %both {low = -7 : i64, high = 9 : i64, use = "high cat"} : (tensor<6xi64>) -> tensor<6xi64>
  %r95 = aten.check_index %both {low = -1 : i64, high = 14 : i64, use = "low cat"} : (tensor<6xi64>) -> tensor<6xi64>
  %r96 = aten.check_index %checked {low = 1 : i64, high = 4 : i64, use = "in check_index"} : (tensor<3xi64>) -> tensor<3xi64>
  %r97 = aten.check_index %checked {low = -4 : i64, high = 3 : i64, use = "high check_index"} : (tensor<3xi64>) -> tensor<3xi64>
  %r98 = aten.check_index %checked {low = 2 : i64, high = 8 : i64, use = "low check_index"} : (tensor<3xi64>) -> tensor<3xi64>
  %times = aten.mul.Scalar %i8 {other = 20 : i64} : (tensor<3xi8>) -> tensor<3xi8>
  %wrapped = aten._to_copy %times {dtype = i64} : (tensor<3xi8>) -> tensor<3xi64>
  %k = aten.check_index %wrapped {low = 40 : i64, high = 181 : i64, use = "wrapped"} : (tensor<3xi64>) -> tensor<3xi64>
  %twice = aten.sum.dim_IntList %x {dim = array<i64: 0>} : (tensor<3xi64>) -> tensor<i64>
  %u = aten.check_index %twice {low = 0 : i64, high = 1000000 : i64, use = "unknown"} : (tensor<i64>) -> tensor<i64>
  return
}

// RUN: not spmd-opt %s --spmd-emit-kernels='cpu=x86-64-v3 path=%t.so' 2>&1 | FileCheck %s --check-prefix=SYMBOL
// RUN: not spmd-opt %s --spmd-outline-kernels --spmd-emit-kernels='cpu=pentium path=%t.so' 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not spmd-opt %s --spmd-outline-kernels --spmd-emit-kernels='path=/nonexistent/k.so' 2>&1 | FileCheck %s --check-prefix=PATH
// RUN: spmd-opt %s --spmd-outline-kernels --spmd-emit-kernels='cpu=x86-64-v4 path=%t.1.so' --spmd-emit-kernels='cpu=x86-64-v4 path=%t.2.so' -o /dev/null
// RUN: cmp %t.1.so %t.2.so
// RUN: llvm-nm -D %t.1.so | FileCheck %s --check-prefix=NM

// SYMBOL: error: 'kernel.cluster' op has no symbol; run spmd-outline-kernels before code generation
// CPU: error: cannot generate kernels for cpu "pentium"; known are x86-64-v3, x86-64-v4
// PATH: error: cannot link kernels: {{.*}}/nonexistent/k.so.tmp
// NM-NOT: U
// NM: T k0
// NM-NOT: {{ [UT] }}
// NM: R spmd_kernel_table
// NM-NOT: {{ [UT] }}

// What the kernels take is in the file.
// RUN: grep -a -o 'k0 100 r:f32:400 w:f32:400' %t.1.so
func.func @f(%x: tensor<100xf32>) -> tensor<100xf32> {
  %0 = kernel.cluster dims [100] parallel 1
      ins(%a = %x at (d0) -> (d0) : tensor<100xf32>) outs(at (d0) -> (d0) : tensor<100xf32>) {
    %e = math.tanh %a : f32
    kernel.yield %e : f32
  }
  return %0 : tensor<100xf32>
}

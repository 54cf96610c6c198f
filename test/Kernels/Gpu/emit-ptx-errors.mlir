// RUN: not spmd-opt %s --spmd-emit-ptx=chip=sm_70 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not spmd-opt %s --spmd-emit-ptx 2>&1 | FileCheck %s --check-prefix=MATH
// RUN: echo 'module {}' | not spmd-opt --spmd-emit-ptx=path=/nonexistent/k.ptx 2>&1 | FileCheck %s --check-prefix=PATH

// CHIP: error: unknown chip 'sm_70'; chips are sm_80, sm_90, sm_100
// MATH: :[[@LINE+6]]:{{[0-9]+}}: error: no code generation for math.cbrt on 'f64'
// PATH: error: cannot write '/nonexistent/k.ptx': No such file or directory

gpu.module @kernels {
  gpu.func @k0(%x: !llvm.ptr<1>) kernel {
    %v = llvm.load %x {alignment = 8 : i64} : !llvm.ptr<1> -> f64
    %r = math.cbrt %v : f64
    llvm.store %r, %x {alignment = 8 : i64} : f64, !llvm.ptr<1>
    gpu.return
  }
}

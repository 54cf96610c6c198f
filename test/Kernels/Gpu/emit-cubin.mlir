// What surrounds ptxas, with a stand-in for it: no toolkit is needed.
// RUN: rm -rf %t && mkdir -p %t/cuda/bin && cp %S/Inputs/ptxas %t/cuda/bin
// DEFINE: %{cubin} = spmd-opt %t/k.mlir --spmd-emit-cubin='chip=sm_90 cuda=%t/cuda cache=%t/cache path=%t/k.a' -o /dev/null 2>&1
// RUN: split-file %s %t/source && cp %t/source/two.mlir %t/k.mlir

// RUN: %{cubin} | FileCheck %s
// CHECK: k.mlir:2:3: remark: k0: 8 x 256 threads, 23 registers, 640 + 4096 bytes shared, 2 barriers, 0 bytes local, 0 + 0 bytes spilled
// CHECK: k.mlir:6:3: remark: k1: 1 x 1 threads, 23 registers, 640 + 0 bytes shared
// RUN: llvm-ar t %t/k.a | FileCheck %s --check-prefix=MEMBERS
// MEMBERS: k0.cubin
// MEMBERS-NEXT: k1.cubin
// MEMBERS-NOT: {{.}}

// One run of ptxas per kernel; none when all is there, and then the same bytes.
// RUN: wc -l < %t/cuda/bin/calls | FileCheck %s --check-prefix=TWO
// TWO: {{^2$}}
// RUN: mv %t/k.a %t/first.a
// RUN: %{cubin} | FileCheck %s
// RUN: wc -l < %t/cuda/bin/calls | FileCheck %s --check-prefix=TWO
// RUN: cmp %t/k.a %t/first.a

// A damaged entry, one cut short and an empty one are made again.
// RUN: sed -i 's/machine code/mach1ne code/' %t/cache/llvmcache-*
// RUN: %{cubin} | FileCheck %s
// RUN: cmp %t/k.a %t/first.a
// RUN: wc -l < %t/cuda/bin/calls | FileCheck %s --check-prefix=FOUR
// FOUR: {{^4$}}
// RUN: truncate -s -1 %t/cache/llvmcache-*
// RUN: %{cubin} && cmp %t/k.a %t/first.a
// RUN: truncate -s 0 %t/cache/llvmcache-*
// RUN: %{cubin} && cmp %t/k.a %t/first.a
// RUN: wc -l < %t/cuda/bin/calls | FileCheck %s --check-prefix=EIGHT
// EIGHT: {{^8$}}

// Another release of ptxas is another key; a folder that cannot be written is no cache; none is asked for by default.
// RUN: sed -i s/V0.0.1/V0.0.2/ %t/cuda/bin/ptxas
// RUN: %{cubin} && wc -l < %t/cuda/bin/calls | FileCheck %s --check-prefix=TEN
// TEN: {{^10$}}
// RUN: spmd-opt %t/k.mlir --spmd-emit-cubin='cuda=%t/cuda cache=%t/k.mlir/cache path=%t/k.a' -o /dev/null && cmp %t/k.a %t/first.a
// RUN: spmd-opt %t/k.mlir --spmd-emit-cubin='cuda=%t/cuda path=%t/k.a' -o /dev/null && cmp %t/k.a %t/first.a
// RUN: wc -l < %t/cuda/bin/calls | FileCheck %s --check-prefix=FOURTEEN
// FOURTEEN: {{^14$}}

// A kernel that spills is assembled again for fewer blocks at once: 4 of 256 threads with 64 registers, then 2. One that has
// no number of threads stays as it is.
// RUN: cp %t/source/spills.mlir %t/k.mlir && rm %t/cuda/bin/calls
// RUN: %{cubin} | FileCheck %s --check-prefix=SPILLS
// SPILLS: remark: spills: 8 x 256 threads, 23 registers, {{.*}}, 0 bytes local, 0 + 0 bytes spilled
// SPILLS: remark: spills_as_asked: 1 x 512 threads, {{.*}}, 0 + 0 bytes spilled
// SPILLS: remark: spills_always: {{.*}}, 48 bytes local, 16 + 24 bytes spilled
// RUN: wc -l < %t/cuda/bin/calls | FileCheck %s --check-prefix=SIX
// SIX: {{^6$}}
// RUN: cp %t/source/two.mlir %t/k.mlir

// Errors, which leave no file.
// RUN: rm %t/k.a
// RUN: not spmd-opt %t/k.mlir --spmd-emit-cubin 2>&1 | FileCheck %s --check-prefix=PATH
// PATH: error: spmd-emit-cubin needs the option path
// RUN: not spmd-opt %t/k.mlir --spmd-emit-cubin='cuda=%t/none path=%t/k.a' 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: cannot compile kernels for sm_90: no bin/ptxas is in '{{.*}}/none'; install the CUDA toolkit 13, run scripts/setup --cuda, or name a toolkit with --cuda=DIR
// RUN: not spmd-opt %t/k.mlir --spmd-emit-cubin='chip=sm_7 path=%t/k.a' 2>&1 | FileCheck %s --check-prefix=CHIP
// CHIP: error: cannot compile kernels for sm_7: chips are sm_80, sm_90, sm_100
// RUN: cp %t/source/rejected.mlir %t/k.mlir
// RUN: not %{cubin} | FileCheck %s --check-prefix=REJECTED
// REJECTED: error: cannot compile kernels for sm_90: kernel reject: {{.*}}/ptxas failed: ptxas fatal   : Ptx assembly aborted due to errors
// RUN: cp %t/source/silent.mlir %t/k.mlir
// RUN: not %{cubin} | FileCheck %s --check-prefix=SILENT
// SILENT: error: cannot compile kernels for sm_90: kernel silent: cannot read what {{.*}}/ptxas wrote: No such file or directory
// RUN: not ls %t/k.a

//--- two.mlir
gpu.module @kernels {
  gpu.func @k0(%x: !llvm.ptr<1>, %c: i64) kernel attributes {known_block_size = array<i32: 256, 1, 1>,
      known_grid_size = array<i32: 8, 1, 1>, spmd.shared_bytes = 4096 : i64} {
    gpu.return
  }
  gpu.func @k1(%x: !llvm.ptr<1>) kernel {
    gpu.return
  }
}
//--- rejected.mlir
gpu.module @kernels {
  gpu.func @reject() kernel {
    gpu.return
  }
}
//--- silent.mlir
gpu.module @kernels {
  gpu.func @silent() kernel {
    gpu.return
  }
}
//--- spills.mlir
gpu.module @kernels {
  gpu.func @spills() kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 8, 1, 1>} {
    gpu.return
  }
  gpu.func @spills_as_asked() kernel attributes {known_block_size = array<i32: 512, 1, 1>, nvvm.minctasm = 3 : i32} {
    gpu.return
  }
  gpu.func @spills_always() kernel {
    gpu.return
  }
}

//===- Passes.td - code generation for kernel ops ---------------*- tablegen -*-===//

#ifndef SPMD_KERNELS_PASSES_TD
#define SPMD_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerKernels : Pass<"spmd-lower-kernels", "::mlir::ModuleOp"> {
  let summary = "Replaces the module by one function of loops per kernel";
  let description = [{
    The first step of code generation for CPUs, for reading and testing: for every symbol one
    `llvm.func @SYMBOL(args, coords, begin, end)` whose body is scf loops over arith, math and vector ops on raw
    pointers. Everything else in the module is dropped.

    Input: kernel ops with symbols (spmd-outline-kernels). Output: functions, in order of first use.

    Why: the loops are the contract with LLVM: fixed shape of reductions, 16 lanes, no fast-math flags.

    ```mlir
    // spmd-opt --spmd-lower-kernels
    func.func @step(%x: tensor<f32>) -> tensor<f32> {
      %0 = kernel.cluster dims [] parallel 0 ins(%a = %x at () -> (0) : tensor<f32>)
          outs(at () -> (0) : tensor<f32>) attributes {symbol = "k0"} {
        %r = math.sqrt %a : f32
        kernel.yield %r : f32
      }
      return %0 : tensor<f32>
    }
    // becomes
    llvm.func @k0(%args: !llvm.ptr, %coords: !llvm.ptr, %begin: i64, %end: i64)
        attributes {spmd.moved_bytes = 8 : i64} {
      %one = arith.constant 1 : i64
      %zero = arith.constant 0 : i64
      %0 = llvm.getelementptr %args[%zero] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
      %x = llvm.load %0 {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
      %1 = llvm.getelementptr %args[%one] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
      %y = llvm.load %1 {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
      scf.for %i = %begin to %end step %one : i64 {
        %2 = llvm.getelementptr %x[%zero] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %a = llvm.load %2 {alignment = 4 : i64} : !llvm.ptr -> f32
        %r = math.sqrt %a : f32
        %3 = llvm.getelementptr %y[%zero] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        llvm.store %r, %3 {alignment = 4 : i64} : f32, !llvm.ptr
      }
      llvm.return
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def LowerGpuKernels : Pass<"spmd-lower-gpu-kernels", "::mlir::ModuleOp"> {
  let summary = "Replaces the module by one gpu.func per kernel";
  let description = [{
    The first step of code generation for GPUs, for reading and testing: for every symbol one kernel in
    `gpu.module @kernels`, as [Note: a kernel for GPUs] in lib/Kernels/Gpu/GpuBuilder.h says. Everything else in the
    module is dropped. Errors: an unknown chip (names the known ones), an op without a symbol, more SMs or shared memory
    than the chip has.

    Input: kernel ops with symbols (spmd-outline-kernels). Output: kernels, in order of first use.

    `sms` and `shared-bytes` are for a part of a GPU (an instance of a multi-instance GPU), and for tests: on a small
    device small shapes need several blocks, several accesses of a thread, or more shared memory than there is.

    Why: it is the one form from which machine code for GPUs and the emulation on CPUs are made.

    ```mlir
    // spmd-opt --spmd-lower-gpu-kernels="chip=sm_90"
    func.func @step(%x: tensor<f32>) -> tensor<f32> {
      %0 = kernel.cluster dims [] parallel 0 ins(%a = %x at () -> (0) : tensor<f32>)
          outs(at () -> (0) : tensor<f32>) attributes {symbol = "k0"} {
        %r = math.sqrt %a : f32
        kernel.yield %r : f32
      }
      return %0 : tensor<f32>
    }
    // becomes
    gpu.module @kernels {
      gpu.func @k0(%x: !llvm.ptr<1> {llvm.align = 16 : i64}, %y: !llvm.ptr<1> {llvm.align = 16 : i64}) kernel
          attributes {known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 1, 1, 1>,
                      spmd.arguments = array<i64: 4, 4>, spmd.moved_bytes = 8 : i64, spmd.operands = 1 : i64,
                      spmd.shared_bytes = 0 : i64} {
        %zero = arith.constant 0 : i64
        %one = arith.constant 1 : i64
        %threads = arith.constant 32 : i64
        %tid = gpu.thread_id x
        %thread = arith.index_cast %tid : index to i64
        %bid = gpu.block_id x
        %block = arith.index_cast %bid : index to i64
        %first = arith.muli %block, %threads overflow<nsw> : i64
        %item = arith.addi %first, %thread overflow<nsw> : i64
        %is_there = arith.cmpi slt, %item, %one : i64
        scf.if %is_there {
          %0 = llvm.getelementptr %x[%zero] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
          %a = llvm.load %0 {alignment = 4 : i64} : !llvm.ptr<1> -> f32
          %r = math.sqrt %a : f32
          %1 = llvm.getelementptr %y[%zero] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
          llvm.store %r, %1 {alignment = 4 : i64} : f32, !llvm.ptr<1>
        }
        gpu.return
      }
    }
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"sm_90\"", "chip whose launch shapes are chosen: sm_80, sm_90 or sm_100">,
    Option<"sms", "sms", "int64_t", "0", "multiprocessors that there are; by default all of the chip's">,
    Option<"sharedBytes", "shared-bytes", "int64_t", "0",
           "shared memory a block may have; by default all of the chip's">,
    Option<"registers", "registers", "int64_t", "0", "registers of a multiprocessor; by default all of the chip's">,
  ];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def EmitKernels : Pass<"spmd-emit-kernels", "::mlir::ModuleOp"> {
  let summary = "Writes the kernels of the module as a shared object";
  let description = [{
    Generates code for every kernel of the module and links it to a shared object at `path`. Errors: an unknown CPU
    (names the known ones), an op without a symbol, no linker, a file that cannot be written.

    Input: kernel ops with symbols (spmd-outline-kernels). Output: the input, unchanged; the file is beside it.

    Why a pass: so that kernels can be made and tested from any IR file with spmd-opt.

    ```mlir
    // spmd-opt --spmd-emit-kernels="cpu=x86-64-v3 path=kernels.so"
    func.func @step(%x: tensor<100xf32>) -> tensor<100xf32> {
      %0 = kernel.cluster dims [100] parallel 1 ins(%a = %x at (d0) -> (d0) : tensor<100xf32>)
          outs(at (d0) -> (d0) : tensor<100xf32>) attributes {symbol = "k0"} {
        %r = math.sqrt %a : f32
        kernel.yield %r : f32
      }
      return %0 : tensor<100xf32>
    }
    // becomes
    func.func @step(%x: tensor<100xf32>) -> tensor<100xf32> {
      %0 = kernel.cluster dims [100] parallel 1 ins(%a = %x at (d0) -> (d0) : tensor<100xf32>)
          outs(at (d0) -> (d0) : tensor<100xf32>) attributes {symbol = "k0"} {
        %r = math.sqrt %a : f32
        kernel.yield %r : f32
      }
      return %0 : tensor<100xf32>
    }
    ```
  }];
  let options = [
    Option<"cpu", "cpu", "std::string", "\"x86-64-v3\"", "CPU to generate for: x86-64-v3 or x86-64-v4">,
    Option<"path", "path", "std::string", "", "file to write">,
  ];
}

def EmitPtx : Pass<"spmd-emit-ptx", "::mlir::ModuleOp"> {
  let summary = "Writes the GPU kernels of the module as PTX";
  let description = [{
    Compiles every gpu.func of the module for a chip and writes PTX to `path`; `-` is standard output. Arithmetic is
    IEEE's: divisions and square roots are rounded correctly, nothing is contracted or flushed to zero. Errors: an
    unknown chip (names the known ones), a math op without an expansion, a file that cannot be written.

    Input: a gpu.module. Output: the input, unchanged; the file is beside it.

    Why: PTX is what tests read, and what GPUs newer than the cubin are given.

    ```mlir
    // spmd-opt --spmd-emit-ptx="chip=sm_90 path=kernels.ptx"
    gpu.module @kernels {
      gpu.func @k0(%x: !llvm.ptr<1>) kernel {
        %a = llvm.load %x {alignment = 4 : i64} : !llvm.ptr<1> -> f32
        %r = math.sqrt %a : f32
        llvm.store %r, %x {alignment = 4 : i64} : f32, !llvm.ptr<1>
        gpu.return
      }
    }
    // becomes
    gpu.module @kernels {
      gpu.func @k0(%x: !llvm.ptr<1>) kernel {
        %a = llvm.load %x {alignment = 4 : i64} : !llvm.ptr<1> -> f32
        %r = math.sqrt %a : f32
        llvm.store %r, %x {alignment = 4 : i64} : f32, !llvm.ptr<1>
        gpu.return
      }
    }
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"sm_90\"", "chip to compile for: sm_80, sm_90 or sm_100">,
    Option<"path", "path", "std::string", "\"-\"", "file to write">,
  ];
}

def EmitCubin : Pass<"spmd-emit-cubin", "::mlir::ModuleOp"> {
  let summary = "Writes the GPU kernels of the module as cubins";
  let description = [{
    Compiles every gpu.func of the module for a chip, by NVIDIA's ptxas, and writes an ar archive of one cubin per
    kernel to `path`. A remark per kernel says what ptxas said: registers, shared memory, barriers, spills. Errors: an
    unknown chip (names the known ones), no ptxas (says where it may come from), a file that cannot be written.

    Input: a gpu.module. Output: the input, unchanged; the file is beside it.

    Why a pass: so that machine code can be made and tested from any IR file with spmd-opt, without a GPU.

    ```mlir
    // spmd-opt --spmd-emit-cubin="chip=sm_90 path=kernels.a"
    gpu.module @kernels {
      gpu.func @k0(%x: !llvm.ptr<1>) kernel {
        %a = llvm.load %x {alignment = 4 : i64} : !llvm.ptr<1> -> f32
        llvm.store %a, %x {alignment = 4 : i64} : f32, !llvm.ptr<1>
        gpu.return
      }
    }
    // becomes
    gpu.module @kernels {
      gpu.func @k0(%x: !llvm.ptr<1>) kernel {
        %a = llvm.load %x {alignment = 4 : i64} : !llvm.ptr<1> -> f32
        llvm.store %a, %x {alignment = 4 : i64} : f32, !llvm.ptr<1>
        gpu.return
      }
    }
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"sm_90\"", "chip to compile for: sm_80, sm_90 or sm_100">,
    Option<"path", "path", "std::string", "", "file to write">,
    Option<"toolkit", "cuda", "std::string", "", "folder of the CUDA toolkit; by default one is looked for">,
    Option<"cache", "cache", "std::string", "", "folder of cubins made before; by default none">,
  ];
}

def EmulateKernels : Pass<"spmd-emulate-kernels", "::mlir::ModuleOp"> {
  let summary = "Writes GPU kernels as a shared object that runs them on the CPU";
  let description = [{
    Builds every gpu.func of the module for the CPU, together with the emulator, and links them to a shared object at
    `path`: [emulation](../emulation.md). A kernel runs as it is, thread by thread. Errors: an unknown CPU (names the
    known ones), a kernel without launch shape or without the sizes of its arguments, an op that the emulator does not
    know, no linker, a file that cannot be written.

    Input: GPU kernels (spmd-lower-gpu-kernels). Output: the input, unchanged; the file is beside it.

    Why a pass: so that kernels for GPUs can be tested from any IR file with spmd-opt, on machines without one.

    ```mlir
    // spmd-opt --spmd-emulate-kernels="cpu=x86-64-v3 path=kernels.so"
    gpu.module @kernels {
      gpu.func @k0(%x: !llvm.ptr<1>) kernel
          attributes {known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 1, 1, 1>,
                      spmd.arguments = array<i64: 256>, spmd.operands = 0 : i64} {
        %t = gpu.thread_id x
        %i = arith.index_cast %t : index to i64
        %p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
        llvm.store %i, %p {alignment = 8 : i64} : i64, !llvm.ptr<1>
        gpu.return
      }
    }
    // becomes
    gpu.module @kernels {
      gpu.func @k0(%x: !llvm.ptr<1>) kernel
          attributes {known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 1, 1, 1>,
                      spmd.arguments = array<i64: 256>, spmd.operands = 0 : i64} {
        %t = gpu.thread_id x
        %i = arith.index_cast %t : index to i64
        %p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
        llvm.store %i, %p {alignment = 8 : i64} : i64, !llvm.ptr<1>
        gpu.return
      }
    }
    ```
  }];
  let options = [
    Option<"cpu", "cpu", "std::string", "\"x86-64-v3\"", "CPU to generate for: x86-64-v3 or x86-64-v4">,
    Option<"path", "path", "std::string", "", "file to write">,
    Option<"checkedOnly", "checked-only", "::spmd::BooleanOption", "false",
           "leave out the code that runs at full speed: half the time to compile">,
    Option<"table", "table", "std::string", "\"\"",
           "file with a line for each kernel and what it takes, as spmd/Kernels/KernelTable.h has them: the runtime asks for it">,
  ];
}

def MutateGpuKernels : Pass<"spmd-mutate-gpu-kernels", "::mlir::ModuleOp"> {
  let summary = "Replaces each GPU kernel by copies with one mistake each";
  let description = [{
    Every kernel K becomes K_m0, K_m1, ...: for each place in program order where a mistake can be made, a copy of the
    kernel with that mistake, which the attribute `spmd.mutant` describes. The mistakes:

    - drop-barrier, drop-store: the op is gone;
    - shift-index: the index of a getelementptr is one more;
    - shrink-buffer: shared memory, or the buffer before this one in it, has 16 bytes less;
    - change-comparison: of integers off by one (`slt` is `sle`) or `eq` is `ne`; of floats the opposite;
    - change-shuffle: from another lane;
    - shorten-loop: the upper bound is one less;
    - of `ldmatrix`, shift-fragment: the rows begin 16 bytes later; transpose-fragment: its transposed variant, or the
      plain one; exchange-fragments: the second of the four matrices is the third;
    - of `mma.sync`, exchange-rows: of A the lower rows are the second half of the columns; exchange-parts: the halves of
      B along k; exchange-operands: B is the upper rows of A, and they are B; drop-accumulator: it starts from zero;
      exchange-accumulators: the sums of the upper rows are the lower ones'; drop-product: the sum is what it was.

    Input: GPU kernels (spmd-lower-gpu-kernels). Output: the mutants.

    Why: a test of the emulator's checks and of the kernels' tests, which must find every one
    ([emulation](../emulation.md)).

    ```mlir
    // spmd-opt --spmd-mutate-gpu-kernels
    gpu.module @kernels {
      gpu.func @k0(%x: !llvm.ptr<1>) kernel {
        %c0 = arith.constant 0 : i64
        gpu.barrier
        llvm.store %c0, %x : i64, !llvm.ptr<1>
        gpu.return
      }
    }
    // becomes
    gpu.module @kernels {
      gpu.func @k0_m0(%x: !llvm.ptr<1>) kernel attributes {spmd.mutant = "drop-barrier at op 2, gpu.barrier"} {
        %c0 = arith.constant 0 : i64
        llvm.store %c0, %x : i64, !llvm.ptr<1>
        gpu.return
      }
      gpu.func @k0_m1(%x: !llvm.ptr<1>) kernel
          attributes {spmd.mutant = "drop-store at op 3, llvm.store %c0_i64, %arg0 : i64, !llvm.ptr<1>"} {
        %c0 = arith.constant 0 : i64
        gpu.barrier
        gpu.return
      }
    }
    ```
  }];
  let options = [
    Option<"probes", "probes", "::spmd::BooleanOption", "false",
           "instead of each mistake an access out of bounds where a thread would decide otherwise, or comes to its "
           "place: when none does, the mutant is equivalent">,
    ListOption<"only", "only", "std::string", "the mistakes to make; by default all">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect"];
}

#endif // SPMD_KERNELS_PASSES_TD

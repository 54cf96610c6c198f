//===- Passes.td - code generation for kernel ops ---------------*- tablegen -*-===//

#ifndef SPMD_KERNELS_PASSES_TD
#define SPMD_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"

def OutlineKernels : Pass<"spmd-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Names the kernel each kernel op runs";
  let description = [{
    Gives every op that code is generated for the attribute `symbol`: k0, k1, ... in program order of the first of its
    kind. Ops that differ only in their operands and locations get the same symbol, so the blocks of a transformer share
    their kernels.

    Input: kernel ops, symbols ignored. Output: the same ops, each generated one with a symbol.

    Why: code is generated once per symbol, and the plan names kernels by it.

    ```mlir
    %0 = kernel.gather_rows %t, %a : (tensor<65x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
    %1 = kernel.gather_rows %t, %b : (tensor<65x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
    // both get {symbol = "k0"}
    ```
  }];
  let dependentDialects = ["::spmd::kernel::KernelDialect"];
}

def LowerKernels : Pass<"spmd-lower-kernels", "::mlir::ModuleOp"> {
  let summary = "Replaces the module by one function of loops per kernel";
  let description = [{
    The first step of code generation for CPUs, for reading and testing: for every symbol one
    `llvm.func @SYMBOL(args, coords, begin, end)` whose body is scf loops over arith, math and vector ops on raw
    pointers. Everything else in the module is dropped.

    Input: kernel ops with symbols (spmd-outline-kernels). Output: functions, in order of first use.

    Why: the loops are the contract with LLVM: fixed shape of reductions, 16 lanes, no fast-math flags.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def EmitKernels : Pass<"spmd-emit-kernels", "::mlir::ModuleOp"> {
  let summary = "Writes the kernels of the module as a shared object";
  let description = [{
    Generates code for every kernel of the module and links it to a shared object at `path`. The module is left as it
    is. Errors: an unknown CPU (names the known ones), an op without a symbol, no linker, a file that cannot be written.

    Why a pass: so that kernels can be made and tested from any IR file with spmd-opt.
  }];
  let options = [
    Option<"cpu", "cpu", "std::string", "\"x86-64-v3\"", "CPU to generate for: x86-64-v3 or x86-64-v4">,
    Option<"path", "path", "std::string", "", "file to write">,
  ];
}

#endif // SPMD_KERNELS_PASSES_TD

# Headers that most of the compiler's files include, read once: parsing them, and instantiating their templates, was more than
# half of the CPU time of a build. Two sets: the dialects are compiled with those of MLIR and LLVM alone, and everything above
# the dialects with the dialects' headers as well. -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without; files include what
# they use in any case.
include(SpmdPrecompiledRuntime)

set(SPMD_PRECOMPILED_HEADERS
  <llvm/ADT/MapVector.h>
  <llvm/ADT/STLExtras.h>
  <llvm/ADT/SetVector.h>
  <llvm/ADT/StringExtras.h>
  <llvm/ADT/StringMap.h>
  <llvm/ADT/TypeSwitch.h>
  <mlir/Bytecode/BytecodeOpInterface.h>
  <mlir/Dialect/Arith/IR/Arith.h>
  <mlir/Dialect/Func/IR/FuncOps.h>
  <mlir/Dialect/GPU/IR/GPUDialect.h>
  <mlir/Dialect/LLVMIR/LLVMDialect.h>
  <mlir/Dialect/Math/IR/Math.h>
  <mlir/Dialect/SCF/IR/SCF.h>
  <mlir/Dialect/Vector/IR/VectorOps.h>
  <mlir/IR/Builders.h>
  <mlir/IR/BuiltinOps.h>
  <mlir/IR/DialectImplementation.h>
  <mlir/IR/ImplicitLocOpBuilder.h>
  <mlir/IR/OpImplementation.h>
  <mlir/IR/PatternMatch.h>
  <mlir/Pass/Pass.h>)

set(SPMD_PRECOMPILED_DIALECTS
  <dialects/Aten/Aten.h>
  <dialects/Kernel/Kernel.h>
  <dialects/Plan/Plan.h>
  <dialects/Spmd/Spmd.h>)

# spmd_add_precompiled(NAME headers...): compiled once, with the flags of a compiler library, for the targets that use NAME.
function(spmd_add_precompiled name)
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
  llvm_update_compile_flags(${name})
  spmd_precompile_headers(${name} ${ARGN})
endfunction()

file(TOUCH ${PROJECT_BINARY_DIR}/precompiled.cpp)
spmd_add_precompiled(SpmdPrecompiled ${SPMD_PRECOMPILED_HEADERS})
spmd_add_precompiled(SpmdPrecompiledDialects ${SPMD_PRECOMPILED_HEADERS} ${SPMD_PRECOMPILED_DIALECTS})
add_dependencies(SpmdPrecompiledDialects SpmdAtenIncGen SpmdKernelIncGen SpmdPlanIncGen SpmdSpmdIncGen)

# Headers of MLIR and LLVM that most of the compiler's files include, read once: parsing them, and instantiating their
# templates, was more than half of the CPU time of a build at -O0 (17 minutes; 7.5 with these). Nothing of our own is among them, so an edit never makes them stale.
# -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without; files include what they use in any case.
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

# Compiled for `target` alone, with its own flags.
function(spmd_precompile_headers target)
  # Without the time the same headers give the same bytes, which ccache needs.
  target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  target_precompile_headers(${target} PRIVATE ${SPMD_PRECOMPILED_HEADERS})
endfunction()

# Compiled once for all targets with the flags of a compiler library.
file(TOUCH ${PROJECT_BINARY_DIR}/precompiled.cpp)
add_library(SpmdPrecompiled OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
llvm_update_compile_flags(SpmdPrecompiled)
spmd_precompile_headers(SpmdPrecompiled)

function(spmd_use_precompiled_headers target)
  target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  target_precompile_headers(${target} REUSE_FROM SpmdPrecompiled)
endfunction()

# Precompiled headers in general, and those of what links neither MLIR nor LLVM: the runtime, its programs and its tests.
include_guard(GLOBAL)

# spmd_precompile_headers(TARGET headers...): with the flags of TARGET.
function(spmd_precompile_headers target)
  # Without the time the same headers give the same bytes, which ccache needs.
  target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  target_precompile_headers(${target} PRIVATE ${ARGN})
endfunction()

# spmd_use_precompiled_headers(TARGET NAME): those of NAME, whose flags must be those of TARGET as far as headers depend on them.
function(spmd_use_precompiled_headers target name)
  if(TARGET ${name})
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()

# The runtime alone is built without them: by any compiler, and with programs that are not position-independent as libraries are.
if(SPMD_RUNTIME_ONLY)
  return()
endif()

set(SPMD_PRECOMPILED_STANDARD <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstdint> <cstdio> <cstdlib>
  <cstring> <filesystem> <fstream> <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <sstream> <string>
  <string_view> <thread> <tuple> <unordered_map> <utility> <vector>)
file(TOUCH ${PROJECT_BINARY_DIR}/precompiled.cpp)

# Libraries and programs that do not link MLIR.
add_library(SpmdPrecompiledRuntime OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
target_compile_options(SpmdPrecompiledRuntime PRIVATE -O2 -fexceptions -ffp-contract=off)
set_target_properties(SpmdPrecompiledRuntime PROPERTIES POSITION_INDEPENDENT_CODE ON)
spmd_precompile_headers(SpmdPrecompiledRuntime ${SPMD_PRECOMPILED_STANDARD})

# Unit tests, at the level of optimization of the build.
if(SPMD_ENABLE_TESTS)
  find_package(GTest REQUIRED)
  add_library(SpmdPrecompiledTests OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
  target_link_libraries(SpmdPrecompiledTests PRIVATE GTest::gtest)
  spmd_precompile_headers(SpmdPrecompiledTests ${SPMD_PRECOMPILED_STANDARD} <gtest/gtest.h>)
endif()

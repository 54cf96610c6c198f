# LLVM and MLIR 22 as Debian packages them: shared libLLVM and libMLIR, no assertions, RTTI on, exceptions off.
find_package(MLIR 22.1 REQUIRED CONFIG PATHS /usr/lib/llvm-22/lib/cmake/mlir)
set(MLIR_LINK_MLIR_DYLIB ON)
set(LLVM_LINK_LLVM_DYLIB ON)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
set(LLVM_RUNTIME_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/bin)
set(LLVM_LIBRARY_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/lib)
set(MLIR_BINARY_DIR ${CMAKE_BINARY_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include(HandleLLVMOptions)
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})

# spmd_add_library(NAME sources... [DEPENDS targets...] [LINK_LIBS libs...]): a static compiler library over libMLIR.
function(spmd_add_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK_LIBS" ${ARGN})
  add_mlir_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS} EXCLUDE_FROM_LIBMLIR DISABLE_INSTALL
                   DEPENDS ${ARG_DEPENDS} LINK_LIBS PUBLIC ${ARG_LINK_LIBS})
  spmd_enable_warnings(${name})
  if(TARGET obj.${name})
    spmd_enable_warnings(obj.${name})
  endif()
endfunction()

# spmd_add_tool(NAME source [LINK_LIBS our libraries...] [MLIR_LIBS MLIR components...]): a program over libMLIR.
function(spmd_add_tool name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS;MLIR_LIBS" ${ARGN})
  add_llvm_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  llvm_update_compile_flags(${name})
  spmd_enable_warnings(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS})
  mlir_target_link_libraries(${name} PRIVATE ${ARG_MLIR_LIBS})
endfunction()

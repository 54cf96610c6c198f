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
include(SpmdPrecompiled)

# Links `target` to `libraries`; every MLIR and LLVM component among them means the shared libMLIR and libLLVM:
# a static copy beside the shared one would bring a second set of TypeIDs.
function(spmd_link_libraries target scope)
  foreach(library ${ARGN})
    if(library MATCHES "^MLIR")
      mlir_target_link_libraries(${target} ${scope} ${library})
    elseif(NOT library MATCHES "^LLVM")
      target_link_libraries(${target} ${scope} ${library})
    endif()
  endforeach()
  target_link_libraries(${target} ${scope} LLVM)
endfunction()

# spmd_add_library(NAME sources... [OPTIMIZED] [DIALECT] [DEPENDS targets...] [LINK_LIBS libs...]): a static compiler library over
# libMLIR; OPTIMIZED: at -O2 in every preset. DIALECT: a dialect, which needs no header of the others.
function(spmd_add_library name)
  cmake_parse_arguments(ARG "OPTIMIZED;DIALECT" "" "DEPENDS;LINK_LIBS" ${ARGN})
  add_mlir_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS} EXCLUDE_FROM_LIBMLIR DISABLE_INSTALL DEPENDS ${ARG_DEPENDS})
  spmd_link_libraries(${name} PUBLIC ${ARG_LINK_LIBS})
  spmd_enable_warnings(${name})
  if(ARG_OPTIMIZED)
    target_compile_options(${name} PRIVATE -O2)
    spmd_precompile_headers(${name} ${SPMD_PRECOMPILED_HEADERS})
  elseif(ARG_DIALECT)
    spmd_use_precompiled_headers(${name} SpmdPrecompiled)
  else()
    spmd_use_precompiled_headers(${name} SpmdPrecompiledDialects)
  endif()
  spmd_install_library(${name})
endfunction()

# spmd_add_tool(NAME source [LINK_LIBS our libraries...] [MLIR_LIBS MLIR components...]): a program over libMLIR.
function(spmd_add_tool name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS;MLIR_LIBS" ${ARGN})
  add_llvm_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  llvm_update_compile_flags(${name})
  spmd_enable_warnings(${name})
  spmd_use_precompiled_headers(${name} SpmdPrecompiledDialects)
  spmd_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} ${ARG_MLIR_LIBS})
  # Installed, it finds LLVM's and MLIR's libraries where they were when it was built.
  set_property(TARGET ${name} APPEND PROPERTY INSTALL_RPATH ${LLVM_LIBRARY_DIR})
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# spmd_add_reference(Ops.td NAME mlir-tblgen options...): the target mlir-doc writes docs/reference/NAME.md in the build
# folder. Upstream's add_mlir_doc is the same with shortcodes of the Hugo site generator, which no reader of ours has.
function(spmd_add_reference source name)
  set(LLVM_TARGET_DEFINITIONS ${source})
  tablegen(MLIR ${name}.md ${ARGN})
  set(page ${CMAKE_BINARY_DIR}/docs/reference/${name}.md)
  add_custom_command(OUTPUT ${page} DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${name}.md
    COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_CURRENT_BINARY_DIR}/${name}.md ${page})
  add_custom_target(${name}Reference DEPENDS ${page})
  add_dependencies(mlir-doc ${name}Reference)
endfunction()

# spmd_list_families(FILE MACRO SOURCES BEFORE AFTER families...): one list of what has a source file and a function of its
# name each. Sets SOURCES to BEFORE + family + AFTER of each, and writes FILE, which a source includes to name the functions:
# a line MACRO(family) for each, and the end of MACRO.
function(spmd_list_families file macro sources before after)
  set(lines "// Made by CMake from the list of sources there.\n")
  foreach(family ${ARGN})
    list(APPEND listed "${before}${family}${after}")
    string(APPEND lines "${macro}(${family})\n")
  endforeach()
  string(APPEND lines "#undef ${macro}\n")
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${file} CONTENT "${lines}" @ONLY)
  set(${sources} ${listed} PARENT_SCOPE)
endfunction()

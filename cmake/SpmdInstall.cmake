# Installation: programs, libraries, headers, and the package that find_package(spmd) finds.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Adds a library to the installed package; consumers link it as spmd::NAME.
function(spmd_install_library name)
  set_property(GLOBAL PROPERTY SPMD_HAS_EXPORTS ON)
  target_include_directories(${name} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/spmd-dialects>)
  install(TARGETS ${name} EXPORT SpmdTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# Called once, after every target exists.
function(spmd_install_package)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/spmd)
  # `#include "spmd/…"` and `#include "dialects/…"`, with what TableGen generated beside it.
  foreach(root ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
    install(DIRECTORY ${root}/include/spmd DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
      FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "*.inc" PATTERN "*.td")
    install(DIRECTORY ${root}/dialects DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/spmd-dialects
      FILES_MATCHING PATTERN "*.h" PATTERN "*.inc" PATTERN "*.td")
  endforeach()
  install(EXPORT SpmdTargets NAMESPACE spmd:: DESTINATION ${package_dir})
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/spmdConfig.cmake.in ${PROJECT_BINARY_DIR}/spmdConfig.cmake
    INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/spmdConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/spmdConfig.cmake ${PROJECT_BINARY_DIR}/spmdConfigVersion.cmake
    DESTINATION ${package_dir})
endfunction()

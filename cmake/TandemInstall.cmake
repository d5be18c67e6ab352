# The installed tree. It is relocatable: neither the CMake package nor the pkg-config file holds
# the prefix it was installed to.

include(CMakePackageConfigHelpers)

if(NOT TARGET tandem)
  return()
endif()

# `cmake --install` without a component installs all of them; the archive may be left out.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME tandem)

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/tandem")

# Headers, and the made one. The list also serves the test that compiles each header alone.
tandem_public_headers(headers)
foreach(header IN LISTS headers)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES "${PROJECT_SOURCE_DIR}/${header}"
          DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/${folder}")
endforeach()
install(FILES "${PROJECT_BINARY_DIR}/include/tandem/core/version.h"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tandem/core")

# Libraries. The archive belongs to a set of its own, which is read only where it was installed
# and which needs the libraries that libtandem.so hides.
install(
  TARGETS tandem
  EXPORT tandem_shared_targets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(TARGET tandem_stores)
  install(TARGETS tandem_stores LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
if(TARGET tandem_board_library)
  # With gRPC alone, and not a part of what a package promises.
  install(TARGETS tandem_board_library LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" OPTIONAL)
endif()
if(TARGET tandem_cuda)
  # A component of its own, for machines with GPUs, and only where it was built: it is not part of
  # `./dev build`.
  install(TARGETS tandem_cuda LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cuda OPTIONAL)
endif()
if(TARGET tandem_hdf5)
  install(TARGETS tandem_hdf5 LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
if(TARGET tandem_distribute_library)
  install(
    TARGETS tandem_distribute_library
    EXPORT tandem_shared_targets
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(tandem_distribute_library PROPERTIES INSTALL_RPATH "$ORIGIN")
endif()
install(EXPORT tandem_shared_targets NAMESPACE tandem:: FILE tandemTargets.cmake
        DESTINATION "${package_folder}")
if(TARGET tandem_archive)
  install(
    TARGETS tandem_archive tandem_static
    EXPORT tandem_static_targets
    COMPONENT static
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT static)
  install(EXPORT tandem_static_targets NAMESPACE tandem:: FILE tandemStaticTargets.cmake
          DESTINATION "${package_folder}" COMPONENT static)
endif()
if(TARGET tandem_cli)
  file(RELATIVE_PATH to_library "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(tandem_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${to_library}")
  install(TARGETS tandem_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

# The CMake package.
get_property(TANDEM_STATIC_LINKS GLOBAL PROPERTY TANDEM_LINKS)
list(REMOVE_DUPLICATES TANDEM_STATIC_LINKS)
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/tandemConfig.cmake.in" "${PROJECT_BINARY_DIR}/tandemConfig.cmake"
  INSTALL_DESTINATION "${package_folder}")
# SameMinorVersion while the major version is 0: see docs/compatibility.md.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tandemConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tandemConfigVersion.cmake" DESTINATION "${package_folder}"
        RENAME TandemConfigVersion.cmake)
install(
  FILES "${PROJECT_BINARY_DIR}/tandemConfig.cmake" "${PROJECT_BINARY_DIR}/tandemConfigVersion.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/TandemConfig.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/Findlapacke.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/FindoneDNN.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/TandemDependencies.cmake"
  DESTINATION "${package_folder}")

# The pkg-config file, which finds the prefix from its own place.
file(RELATIVE_PATH TANDEM_PREFIX_FROM_PC "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" TANDEM_PREFIX_FROM_PC "${TANDEM_PREFIX_FROM_PC}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/tandem.pc.in" "${PROJECT_BINARY_DIR}/tandem.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tandem.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

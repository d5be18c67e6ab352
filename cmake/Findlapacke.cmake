# Finds LAPACKE, the C interface of LAPACK, and defines the target lapacke::lapacke. The library
# brings the LAPACK and BLAS that the system has chosen.

find_path(lapacke_INCLUDE_DIR NAMES lapacke.h)
find_library(lapacke_LIBRARY NAMES lapacke)
mark_as_advanced(lapacke_INCLUDE_DIR lapacke_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(lapacke REQUIRED_VARS lapacke_LIBRARY lapacke_INCLUDE_DIR)

if(lapacke_FOUND AND NOT TARGET lapacke::lapacke)
  add_library(lapacke::lapacke UNKNOWN IMPORTED)
  set_target_properties(
    lapacke::lapacke PROPERTIES IMPORTED_LOCATION "${lapacke_LIBRARY}"
                                INTERFACE_INCLUDE_DIRECTORIES "${lapacke_INCLUDE_DIR}")
endif()

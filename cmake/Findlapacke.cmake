# Finds LAPACKE, the C interface of LAPACK, with the LAPACK and BLAS that the system has chosen
# (of which CBLAS is a part), and defines the target lapacke::lapacke.

find_path(lapacke_INCLUDE_DIR NAMES lapacke.h)
find_library(lapacke_LIBRARY NAMES lapacke)
find_library(lapacke_LAPACK_LIBRARY NAMES lapack)
find_library(lapacke_BLAS_LIBRARY NAMES blas)
mark_as_advanced(lapacke_INCLUDE_DIR lapacke_LIBRARY lapacke_LAPACK_LIBRARY lapacke_BLAS_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(lapacke REQUIRED_VARS lapacke_LIBRARY lapacke_LAPACK_LIBRARY lapacke_BLAS_LIBRARY
                                                lapacke_INCLUDE_DIR)

if(lapacke_FOUND AND NOT TARGET lapacke::lapacke)
  add_library(lapacke::lapacke UNKNOWN IMPORTED)
  set_target_properties(
    lapacke::lapacke
    PROPERTIES IMPORTED_LOCATION "${lapacke_LIBRARY}"
               INTERFACE_INCLUDE_DIRECTORIES "${lapacke_INCLUDE_DIR}"
               INTERFACE_LINK_LIBRARIES "${lapacke_LAPACK_LIBRARY};${lapacke_BLAS_LIBRARY}")
endif()

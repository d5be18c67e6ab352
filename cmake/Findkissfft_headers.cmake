# Finds the header-only C++ form of KissFFT and defines the target kissfft::headers.

find_path(kissfft_INCLUDE_DIR NAMES kissfft/kissfft.hh)
mark_as_advanced(kissfft_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(kissfft_headers REQUIRED_VARS kissfft_INCLUDE_DIR)

if(kissfft_headers_FOUND AND NOT TARGET kissfft::headers)
  add_library(kissfft::headers INTERFACE IMPORTED)
  set_target_properties(kissfft::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
                                                    "${kissfft_INCLUDE_DIR}")
endif()

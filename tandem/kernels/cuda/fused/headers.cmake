# tandem_generated_headers(): the headers that generated kernels include, as texts in
# tandem/kernels/cuda/fused/header_texts.inc of the build folder.
function(tandem_generated_headers)
  set(texts "")
  foreach(
    header IN
    ITEMS core/half.h kernels/cuda/elementwise/arithmetic.h kernels/cuda/elementwise/functions.h
          kernels/cuda/fused/generated.h kernels/cuda/fused/standard_words.h
          kernels/cuda/support/device_code.h kernels/cuda/support/number.h
          kernels/cuda/support/parts.h)
    set(path "${PROJECT_SOURCE_DIR}/tandem/${header}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
    file(READ "${path}" text)
    string(APPEND texts "{\"tandem/${header}\", R\"header(${text})header\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/include/tandem/kernels/cuda/fused/header_texts.inc"
       CONTENT "@texts@" @ONLY)
endfunction()

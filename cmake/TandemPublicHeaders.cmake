# The one place that says which headers are public, that is installed: every header under tandem/
# but those in a directory named `internal`, those of the CPU kernels, those in sub-folders of data and runtime, and those of the tool.

set(TANDEM_PRIVATE_HEADERS "/internal/|^tandem/kernels/c(pu|uda)/|^tandem/(data|runtime)/[a-z]+/|^tandem/cli/")

# tandem_public_headers(OUT): paths relative to the source root, as a program includes them.
function(tandem_public_headers out)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
       "${PROJECT_SOURCE_DIR}/tandem/*.h")
  list(FILTER headers EXCLUDE REGEX "${TANDEM_PRIVATE_HEADERS}")
  set(${out} "${headers}" PARENT_SCOPE)
endfunction()

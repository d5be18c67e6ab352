# The libraries we build on. A module names those it uses after LINKS; tandem_find_dependency() maps
# the name to its package, so that nothing is looked for which no module uses.

# A module finds its libraries, the joined library in another folder links them.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)

find_package(Threads REQUIRED)

# tandem_find_library(TARGET NAME HEADER): a library that brings no package of its own for CMake.
macro(tandem_find_library target name header)
  find_path(TANDEM_${name}_INCLUDE "${header}" REQUIRED)
  find_library(TANDEM_${name}_LIBRARY "${name}" REQUIRED)
  mark_as_advanced(TANDEM_${name}_INCLUDE TANDEM_${name}_LIBRARY)
  add_library(${target} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(
    ${target} PROPERTIES IMPORTED_LOCATION "${TANDEM_${name}_LIBRARY}"
                         INTERFACE_INCLUDE_DIRECTORIES "${TANDEM_${name}_INCLUDE}")
endmacro()

# tandem_find_dependency(TARGET): finds the package that provides an imported target.
macro(tandem_find_dependency target)
  if(NOT TARGET ${target})
    if("${target}" STREQUAL "oneDNN::dnnl")
      find_package(oneDNN 2.6 REQUIRED)
    elseif("${target}" STREQUAL "hwy::hwy")
      find_package(hwy CONFIG REQUIRED)
    elseif("${target}" STREQUAL "lapacke::lapacke")
      find_package(lapacke REQUIRED)
    elseif("${target}" STREQUAL "ZLIB::ZLIB")
      find_package(ZLIB REQUIRED)
    elseif("${target}" STREQUAL "PNG::PNG")
      find_package(PNG REQUIRED)
    elseif("${target}" STREQUAL "JPEG::JPEG")
      find_package(JPEG REQUIRED)
    elseif("${target}" STREQUAL "GIF::GIF")
      find_package(GIF 5 REQUIRED)
    elseif("${target}" STREQUAL "CLI11::CLI11")
      find_package(CLI11 CONFIG REQUIRED)
    elseif("${target}" STREQUAL "nlohmann_json::nlohmann_json")
      find_package(nlohmann_json CONFIG REQUIRED)
    elseif("${target}" STREQUAL "re2::re2")
      tandem_find_library(re2::re2 re2 re2/re2.h)
    elseif("${target}" STREQUAL "farmhash::farmhash")
      tandem_find_library(farmhash::farmhash farmhash farmhash.h)
    elseif("${target}" STREQUAL "isal::isal")
      tandem_find_library(isal::isal isal isa-l/crc.h)
    elseif("${target}" STREQUAL "leveldb::table")
      tandem_find_library(leveldb::table leveldb leveldb/table_builder.h)
    elseif("${target}" MATCHES "^absl::")
      find_package(absl CONFIG REQUIRED)
    else()
      message(FATAL_ERROR "cmake/TandemDependencies.cmake knows no package for ${target}")
    endif()
  endif()
endmacro()

# Vector code is generated for the baseline, AVX2 and AVX-512 on x86, and for NEON on arm64; the
# other targets of Highway would add to build time and size more than they give.
set(TANDEM_HIGHWAY_DEFINITIONS
    "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL|HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)")

# Compiler settings. Everything that concerns our own code alone is set through tandem_options(),
# so that a project which adds Tandem by add_subdirectory keeps its own flags.

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Kind of build" FORCE)
  endif()
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1 -fno-omit-frame-pointer")

  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
  set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
endif()

set(TANDEM_USES_CCACHE OFF)
if(TANDEM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TANDEM_CCACHE_PROGRAM ccache)
  mark_as_advanced(TANDEM_CCACHE_PROGRAM)
  if(TANDEM_CCACHE_PROGRAM)
    # For precompiled headers (TandemPrecompile.cmake), and that clones may share results. Results are
    # found by the files that were read: what the preprocessor puts out tells nothing of the macros in
    # a precompiled header, and takes time.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        env "CCACHE_SLOPPINESS=pch_defines,time_macros,$ENV{CCACHE_SLOPPINESS}" CCACHE_PCH_EXTSUM=1
        CCACHE_DEPEND=1)
    if(NOT DEFINED ENV{CCACHE_BASEDIR})
      list(APPEND CMAKE_CXX_COMPILER_LAUNCHER "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}")
    endif()
    list(APPEND CMAKE_CXX_COMPILER_LAUNCHER "${TANDEM_CCACHE_PROGRAM}")
    set(TANDEM_USES_CCACHE ON)
  endif()
endif()

set(TANDEM_WARNINGS
    -Wall
    -Wextra
    -Wpedantic
    -Wnon-virtual-dtor
    -Woverloaded-virtual
    -Wsuggest-override
    # Option structs are filled in by name and rely on their member initialisers.
    -Wno-missing-field-initializers
    # Vector arguments of functions with target attributes stay inside one translation unit.
    -Wno-psabi)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND TANDEM_WARNINGS -Wshadow -Wthread-safety -Wno-gnu-zero-variadic-macro-arguments)
  if(TANDEM_SANITIZE OR TANDEM_BUILD_FUZZERS)
    # Instrumented loops may not become vectors, `omp simd` or not.
    list(APPEND TANDEM_WARNINGS -Wno-pass-failed)
  endif()
else()
  # Both misfire on std::string in g++ 12 (GCC bug 105651).
  list(APPEND TANDEM_WARNINGS -Wshadow=local -Wno-restrict -Wno-stringop-overflow)
  if(TANDEM_SANITIZE OR NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    # With instrumentation g++ loses track of values that it follows at -O2.
    list(APPEND TANDEM_WARNINGS -Wno-maybe-uninitialized)
  endif()
endif()
if(TANDEM_WARNINGS_AS_ERRORS)
  list(APPEND TANDEM_WARNINGS -Werror)
endif()

if(TANDEM_SANITIZE)
  set(TANDEM_SANITIZE_FLAGS "-fsanitize=${TANDEM_SANITIZE}" -fno-omit-frame-pointer)
  if(TANDEM_SANITIZE MATCHES "undefined")
    list(APPEND TANDEM_SANITIZE_FLAGS -fno-sanitize-recover=undefined)
  endif()
else()
  set(TANDEM_SANITIZE_FLAGS "")
endif()
if(TANDEM_BUILD_FUZZERS)
  # The fuzzer looks for inputs that reach new code, which has to be the library's.
  list(APPEND TANDEM_SANITIZE_FLAGS -fsanitize=fuzzer-no-link)
endif()

# tandem_options(TARGET): language level, warnings, sanitizers, and the include root.
function(tandem_options target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON
                                             CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE ${TANDEM_WARNINGS} ${TANDEM_SANITIZE_FLAGS})
  target_link_options(${target} PRIVATE ${TANDEM_SANITIZE_FLAGS})
endfunction()

# tandem_cold(TARGET): for code that runs once, or does little but call what is hot. It compiles in
# two thirds of the time.
function(tandem_cold target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# tandem_cold_files(PATTERN...): the same for files of the current folder.
function(tandem_cold_files)
  foreach(pattern IN LISTS ARGN)
    file(GLOB files CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${pattern}")
    if(NOT files)
      message(FATAL_ERROR "No file is called ${pattern}")
    endif()
    set_property(SOURCE ${files} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:-O1>)
  endforeach()
endfunction()

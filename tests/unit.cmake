find_package(GTest REQUIRED)

set(TANDEM_UNIT_HEADERS <gmock/gmock.h> <gtest/gtest.h> tandem/runtime/tensor.h)

# Has the precompiled headers of all, so that no test program waits for another.
file(CONFIGURE OUTPUT unit_headers.cpp CONTENT "")
add_library(tandem_unit_headers OBJECT "${CMAKE_CURRENT_BINARY_DIR}/unit_headers.cpp")
tandem_options(tandem_unit_headers)
target_link_libraries(tandem_unit_headers PRIVATE tandem::tandem GTest::gtest GTest::gmock)
target_include_directories(tandem_unit_headers PRIVATE "${PROJECT_SOURCE_DIR}")
tandem_precompile(tandem_unit_headers ${TANDEM_UNIT_HEADERS})
tandem_cold(tandem_unit_headers)

# tandem_unit_test(NAME FOLDER LIBRARY...): a program of the *_test.cpp files of a folder.
function(tandem_unit_test name folder)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*_test.cpp")
  if(NOT sources)
    return()
  endif()
  file(GLOB helpers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*_util.cpp")
  add_executable(${name}_test ${sources} ${helpers})
  tandem_options(${name}_test)
  set_target_properties(${name}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                                "${PROJECT_BINARY_DIR}/tests")
  target_link_libraries(${name}_test PRIVATE ${ARGN} GTest::gtest GTest::gmock GTest::gtest_main)
  target_include_directories(${name}_test PRIVATE "${PROJECT_SOURCE_DIR}")
  tandem_precompile(${name}_test ${TANDEM_UNIT_HEADERS})
  tandem_cold(${name}_test)
  add_test(NAME unit.${name} COMMAND ${name}_test --gtest_brief=1 WORKING_DIRECTORY
                                     "${PROJECT_SOURCE_DIR}")
  # What kernels measure is kept out of the user's own cache.
  set_tests_properties(
    unit.${name} PROPERTIES LABELS unit TIMEOUT 1200 ENVIRONMENT
                            "TANDEM_CACHE_DIR=${PROJECT_BINARY_DIR}/tests/cache")
  add_dependencies(unit_tests ${name}_test)
endfunction()

add_custom_target(unit_tests)

get_property(objects GLOBAL PROPERTY TANDEM_MODULES)
get_property(links GLOBAL PROPERTY TANDEM_LINKS)
add_library(tandem_inside INTERFACE)
foreach(object IN LISTS objects)
  target_sources(tandem_inside INTERFACE "$<TARGET_OBJECTS:${object}>")
endforeach()
target_link_libraries(tandem_inside INTERFACE ${links} tandem_root)

file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}"
     "${CMAKE_CURRENT_SOURCE_DIR}/unit/*")
foreach(folder IN LISTS folders)
  cmake_path(GET folder FILENAME module)
  if(module STREQUAL "cli" AND NOT TARGET tandem_cli)
    message(STATUS "unit.cli left out: it runs td, and TANDEM_BUILD_TOOLS is off")
    continue()
  endif()
  if(module STREQUAL "distribute")  # a library of its own
    if(TARGET tandem_distribute_library)
      tandem_unit_test(${module} ${folder} tandem::distribute)
      tandem_unit_test(${module}_internal ${folder}/internal tandem_distribute_inside)
    else()
      message(STATUS "unit.distribute left out: there is no libtandem_distribute.so without gRPC")
    endif()
    continue()
  endif()
  tandem_unit_test(${module} ${folder} tandem::tandem)
  tandem_unit_test(${module}_internal ${folder}/internal tandem_inside)
endforeach()

# What reads and writes files that others have too.
if(TARGET train_test)
  set_tests_properties(unit.train PROPERTIES LABELS "unit;formats")
endif()

if(TARGET cli_test)
  add_dependencies(cli_test tandem_cli)
  if(TARGET pipeline_augment)
    add_dependencies(cli_test pipeline_augment)
  endif()
  # A pipeline of its own that td loads.
  add_library(cli_test_silent MODULE unit/cli/pipelines/silent.cpp)
  tandem_options(cli_test_silent)
  set_target_properties(cli_test_silent PROPERTIES OUTPUT_NAME silent PREFIX ""
                                                   LIBRARY_OUTPUT_DIRECTORY
                                                   "${PROJECT_BINARY_DIR}/tests/pipelines")
  target_link_libraries(cli_test_silent PRIVATE tandem::tandem)
  target_include_directories(cli_test_silent PRIVATE "${PROJECT_SOURCE_DIR}")
  add_dependencies(cli_test cli_test_silent)
endif()

# What opens files of HDF5, where it can be built.
if(TARGET tandem_hdf5)
  foreach(module IN ITEMS keras cli)
    if(TARGET ${module}_test)
      add_dependencies(${module}_test tandem_hdf5)
    endif()
  endforeach()
endif()

# Writes a cache file that data_test reads or writes too.
add_executable(cache_writer unit/data/programs/cache_writer.cpp)
tandem_options(cache_writer)
set_target_properties(cache_writer PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                              "${PROJECT_BINARY_DIR}/tests")
target_link_libraries(cache_writer PRIVATE tandem::tandem)
target_include_directories(cache_writer PRIVATE "${PROJECT_SOURCE_DIR}")
add_dependencies(data_test cache_writer)

# Programs that end in every way, which runtime_test starts by the hundred.
add_executable(ends unit/runtime/programs/ends.cpp)
tandem_options(ends)
set_target_properties(ends PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
target_link_libraries(ends PRIVATE tandem::tandem)
target_include_directories(ends PRIVATE "${PROJECT_SOURCE_DIR}")
tandem_cold(ends)
add_dependencies(runtime_test ends)

# The same once more on an emulated accelerator with memory of its own: what is trained and
# differentiated on a CPU must be the same there.
foreach(module IN ITEMS autodiff keras)
  if(TARGET ${module}_test)
    add_test(NAME unit.${module}_emulated COMMAND ${module}_test --gtest_brief=1
             WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    set_tests_properties(unit.${module}_emulated PROPERTIES LABELS unit TIMEOUT 1200
                         ENVIRONMENT "TANDEM_EMULATE=GPU:1,memory=2GiB,latency=0us")
  endif()
endforeach()

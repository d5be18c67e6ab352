# Precompiled headers: without them a clean build parses the same 100,000 lines of standard headers
# for each of our files. Release builds have them. Builds for checking, with assertions or
# sanitizers, and `./dev lint` go without, and so see to it that each file includes what it uses; so
# do builds with a launcher of the user's own, which may know nothing of them.

get_property(several_configurations GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(TANDEM_PCH
   AND PROJECT_IS_TOP_LEVEL
   AND CMAKE_BUILD_TYPE STREQUAL "Release"
   AND NOT TANDEM_SANITIZE
   AND NOT several_configurations
   AND (TANDEM_USES_CCACHE OR NOT CMAKE_CXX_COMPILER_LAUNCHER))
  set(TANDEM_PRECOMPILES ON)
else()
  set(TANDEM_PRECOMPILES OFF)
endif()

set(TANDEM_STANDARD_HEADERS
    <algorithm>
    <array>
    <atomic>
    <chrono>
    <cmath>
    <complex>
    <condition_variable>
    <cstdint>
    <cstring>
    <deque>
    <functional>
    <initializer_list>
    <limits>
    <map>
    <memory>
    <mutex>
    <numeric>
    <optional>
    <set>
    <span>
    <sstream>
    <string>
    <string_view>
    <thread>
    <tuple>
    <type_traits>
    <unordered_map>
    <utility>
    <variant>
    <vector>)

# tandem_precompile(TARGET [HEADER...]): the standard headers, and those. Targets that are compiled
# alike and name the same headers share one file.
function(tandem_precompile target)
  if(NOT TANDEM_PRECOMPILES)
    return()
  endif()
  set(headers "")
  foreach(header IN LISTS ARGN)
    if(NOT header MATCHES "^<")
      set(header "${PROJECT_SOURCE_DIR}/${header}")
    endif()
    list(APPEND headers "${header}")
  endforeach()
  get_target_property(definitions ${target} COMPILE_DEFINITIONS)
  get_target_property(independent ${target} POSITION_INDEPENDENT_CODE)
  get_target_property(visibility ${target} CXX_VISIBILITY_PRESET)
  string(SHA256 key "${definitions} ${independent} ${visibility} ${headers}")
  get_property(first GLOBAL PROPERTY TANDEM_PCH_${key})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    set(first ${target})
    target_precompile_headers(${target} PRIVATE ${TANDEM_STANDARD_HEADERS} ${headers})
    set_property(GLOBAL PROPERTY TANDEM_PCH_${key} ${target})
    tandem_precompiled_sum(${target})
  endif()
  if(TARGET ${first}_pch_sum)
    target_compile_options(${target} PRIVATE -fpch-preprocess)
    add_dependencies(${target} ${first}_pch_sum)
  elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Else no two precompiled files are the same to ccache.
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

# tandem_precompiled_sum(TARGET): ccache must know whether a precompiled file is another one. g++ never
# writes the same bytes twice, so ccache is given a sum of the headers' text and macros instead
# (pch_external_checksum in its manual).
function(tandem_precompiled_sum target)
  if(NOT TANDEM_USES_CCACHE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  set(header "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx")
  set(sum "${header}.gch.sum")
  set(definitions "$<FILTER:$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>,EXCLUDE,^$>")
  set(folders "$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>")
  string(CONCAT arguments "$<$<BOOL:${definitions}>:-D\"$<JOIN:${definitions},\"\n-D\">\">\n"
                "$<$<BOOL:${folders}>:-I\"$<JOIN:${folders},\"\n-I\">\">\n"
                "-std=c++20 ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_RELEASE}\n"
                "-w -E -dD -P -MD -MF \"${sum}.d\" -MT \"${sum}\" -x c++ \"${header}\"\n")
  file(GENERATE OUTPUT "${sum}.arguments" CONTENT "${arguments}")
  add_custom_command(
    OUTPUT "${sum}"
    COMMAND ${CMAKE_CXX_COMPILER} "@${sum}.arguments" -o "${sum}.text"
    COMMAND ${CMAKE_COMMAND} -E sha256sum cmake_pch.hxx.gch.sum.text > "${sum}"
    COMMAND ${CMAKE_COMMAND} -E rm "${sum}.text"
    WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir"
    DEPENDS "${header}" "${sum}.arguments"
    DEPFILE "${sum}.d"
    COMMENT "Summing up the precompiled header of ${target}"
    VERBATIM)
  add_custom_target(${target}_pch_sum DEPENDS "${sum}")
endfunction()

# A module is a folder under tandem/ and one object library, tandem_MODULE. All modules are joined into
# libtandem.so (and libtandem.a); see tandem/CMakeLists.txt.

define_property(GLOBAL PROPERTY TANDEM_MODULES BRIEF_DOCS "Object libraries of modules with sources")
define_property(GLOBAL PROPERTY TANDEM_LINKS BRIEF_DOCS "Libraries that the modules link to")

# tandem_module(NAME [DEPENDS module...] [LINKS target...] [DEFINES definition...]
#             [PRECOMPILE header...] [ALSO_INCLUDES header...] [COLD] [COLD_FILES pattern...] [APART])
#
# Sources are found by name, so that adding a file touches no list. DEPENDS names the modules that
# this one uses directly; it may include their headers and those of the modules below them, and no
# others: tests/lint/include_direction.py reads these calls. PRECOMPILE names headers that most
# files of the module include (TandemPrecompile.cmake). ALSO_INCLUDES lists single headers of other
# modules that are allowed besides; keep it empty where you can. COLD, and COLD_FILES for some files of
# a module: see tandem_cold. APART: the module is no part of libtandem.so, but of a library of its own,
# which its CMakeLists.txt makes. A module without sources is left out of the library, and modules may depend on
# it all the same.
function(tandem_module name)
  cmake_parse_arguments(PARSE_ARGV 1 module "COLD;APART" ""
                        "DEPENDS;LINKS;DEFINES;PRECOMPILE;ALSO_INCLUDES;COLD_FILES")
  if(module_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tandem_module(${name}): what is ${module_UNPARSED_ARGUMENTS}?")
  endif()
  tandem_module_sources(sources)
  set(target tandem_${name})
  foreach(dependency IN LISTS module_DEPENDS)
    if(NOT TARGET tandem_${dependency})
      message(FATAL_ERROR "Module ${name} depends on ${dependency}, which is not below it")
    endif()
  endforeach()
  list(TRANSFORM module_DEPENDS PREPEND tandem_)

  if(NOT sources)
    message(STATUS "Module ${name}: no sources")
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE tandem_root ${module_DEPENDS})
    return()
  endif()

  add_library(${target} OBJECT ${sources})
  tandem_options(${target})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
                                             CXX_VISIBILITY_PRESET hidden
                                             VISIBILITY_INLINES_HIDDEN ON)
  foreach(link IN LISTS module_LINKS)
    tandem_find_dependency(${link})
  endforeach()
  target_compile_definitions(${target} PRIVATE ${module_DEFINES})
  target_link_libraries(${target} PUBLIC tandem_root ${module_DEPENDS} PRIVATE ${module_LINKS})
  tandem_precompile(${target} ${module_PRECOMPILE})
  if(module_COLD)
    tandem_cold(${target})
  endif()
  tandem_cold_files(${module_COLD_FILES})
  if(module_APART)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY TANDEM_MODULES ${target})
  set_property(GLOBAL APPEND PROPERTY TANDEM_LINKS ${module_LINKS})
endfunction()

# tandem_module_sources(OUT): the sources of the current module: its own folder and every folder below
# it, whether that is a backend (device/host), a kernel class (kernels/cpu) or `internal`. A folder
# with a CMakeLists.txt is a library of its own, and left out.
function(tandem_module_sources out)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  file(GLOB_RECURSE apart CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt")
  foreach(list IN LISTS apart)
    cmake_path(GET list PARENT_PATH folder)
    foreach(source IN LISTS sources)
      cmake_path(IS_PREFIX folder "${source}" inside)
      if(inside)
        list(REMOVE_ITEM sources "${source}")
      endif()
    endforeach()
  endforeach()
  set(${out} "${sources}" PARENT_SCOPE)
endfunction()

# A room is a folder under tandem/ and one object library, tandem_ROOM. All rooms are joined into
# libtandem.so (and libtandem.a); see tandem/CMakeLists.txt.

define_property(GLOBAL PROPERTY TANDEM_ROOMS BRIEF_DOCS "Object libraries of rooms with sources")
define_property(GLOBAL PROPERTY TANDEM_LINKS BRIEF_DOCS "Libraries that the rooms link to")

# tandem_room(NAME [DEPENDS room...] [LINKS target...] [DEFINES definition...]
#             [PRECOMPILE header...] [ALSO_INCLUDES header...] [COLD] [COLD_FILES pattern...])
#
# Sources are found by name, so that adding a file touches no list. DEPENDS names the rooms that
# this one uses directly; it may include their headers and those of the rooms below them, and no
# others: tests/lint/include_direction.py reads these calls. PRECOMPILE names headers that most
# files of the room include (TandemPrecompile.cmake). ALSO_INCLUDES lists single headers of other
# rooms that are allowed besides; keep it empty where you can. COLD, and COLD_FILES for some files of
# a room: see tandem_cold. A room without sources is left out of the library, and rooms may depend on
# it all the same.
function(tandem_room name)
  cmake_parse_arguments(PARSE_ARGV 1 room "COLD" ""
                        "DEPENDS;LINKS;DEFINES;PRECOMPILE;ALSO_INCLUDES;COLD_FILES")
  if(room_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tandem_room(${name}): what is ${room_UNPARSED_ARGUMENTS}?")
  endif()
  tandem_room_sources(sources)
  set(target tandem_${name})
  foreach(dependency IN LISTS room_DEPENDS)
    if(NOT TARGET tandem_${dependency})
      message(FATAL_ERROR "Room ${name} depends on ${dependency}, which is not below it")
    endif()
  endforeach()
  list(TRANSFORM room_DEPENDS PREPEND tandem_)

  if(NOT sources)
    message(STATUS "Room ${name}: no sources")
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE tandem_root ${room_DEPENDS})
    return()
  endif()

  add_library(${target} OBJECT ${sources})
  tandem_options(${target})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
                                             CXX_VISIBILITY_PRESET hidden
                                             VISIBILITY_INLINES_HIDDEN ON)
  foreach(link IN LISTS room_LINKS)
    tandem_find_dependency(${link})
  endforeach()
  target_compile_definitions(${target} PRIVATE ${room_DEFINES})
  target_link_libraries(${target} PUBLIC tandem_root ${room_DEPENDS} PRIVATE ${room_LINKS})
  tandem_precompile(${target} ${room_PRECOMPILE})
  if(room_COLD)
    tandem_cold(${target})
  endif()
  tandem_cold_files(${room_COLD_FILES})
  set_property(GLOBAL APPEND PROPERTY TANDEM_ROOMS ${target})
  set_property(GLOBAL APPEND PROPERTY TANDEM_LINKS ${room_LINKS})
endfunction()

# tandem_room_sources(OUT): the sources of the current room: its own folder and every folder below
# it, whether that is a backend (device/host), a kernel class (kernels/cpu) or `internal`. A folder
# with a CMakeLists.txt is a library of its own, and left out.
function(tandem_room_sources out)
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

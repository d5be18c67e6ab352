# The name in capitals finds the same package, and gives the same targets tandem::….
find_package(tandem CONFIG QUIET COMPONENTS ${Tandem_FIND_COMPONENTS} PATHS
             "${CMAKE_CURRENT_LIST_DIR}" NO_DEFAULT_PATH)
set(Tandem_FOUND ${tandem_FOUND})
set(Tandem_NOT_FOUND_MESSAGE "${tandem_NOT_FOUND_MESSAGE}")
foreach(component IN LISTS Tandem_FIND_COMPONENTS)
  set(Tandem_${component}_FOUND ${tandem_${component}_FOUND})
endforeach()

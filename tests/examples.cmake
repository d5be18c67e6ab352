# Every example is run as its reader would run it: from the source root, without arguments.
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.cpp")
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  add_test(NAME example.${name} COMMAND example_${name} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(example.${name} PROPERTIES LABELS unit TIMEOUT 300)
endforeach()

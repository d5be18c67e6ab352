# Every example is run as its reader would run it: from the source root, without arguments.
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.cpp")
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  if(NOT TARGET example_${name})
    continue()
  endif()
  add_test(NAME example.${name} COMMAND example_${name} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(example.${name} PROPERTIES LABELS unit TIMEOUT 300)
endforeach()

set_tests_properties(example.train_and_resume PROPERTIES LABELS "unit;formats")

# `./dev demo --emulate`: with an accelerator the demo also explains where a step's work goes.
add_test(NAME example.demo_emulated
         COMMAND example_demo --epochs 2 --output "${PROJECT_BINARY_DIR}/demo/emulated.png"
         WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
set_tests_properties(
  example.demo_emulated
  PROPERTIES
    LABELS unit
    TIMEOUT 300
    ENVIRONMENT "TANDEM_EMULATE=GPU:1,memory=256MiB"
    PASS_REGULAR_EXPRESSION
    "emulated GPU, 256 MiB.* ops on 2 devices, .* copies a step.*GPU:0 .*test accuracy: (0\\.[89]|1)")

if(TARGET example_cluster_demo)
  add_dependencies(example_cluster_demo tandem_cli)
  set_tests_properties(example.cluster_demo PROPERTIES LABELS "unit;cluster")
endif()

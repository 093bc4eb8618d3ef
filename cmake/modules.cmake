# plumb_module(name DEPS module... LIBS library...): a static library from every .cc of src/<name>
# but the tests, benches and main; DEPS are the modules it may include. Tests (*_test.cc) make one
# binary <name>_test, registered with ctest case by case.
include(GoogleTest)

function(plumb_module name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS" ${ARGN})
  set(dir ${CMAKE_SOURCE_DIR}/src/${name})
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cc ${dir}/*/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|_bench|/main)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(TRANSFORM ARG_DEPS PREPEND plumb_ OUTPUT_VARIABLE deps)

  if(sources)
    add_library(plumb_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(plumb_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(plumb_${name} ${scope} ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(plumb_${name} ${scope} ${deps} ${ARG_LIBS} Threads::Threads)

  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE plumb_${name} GTest::gmock GTest::gtest_main)
    gtest_discover_tests(${name}_test TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST
                         PROPERTIES TIMEOUT 300)
  endif()
endfunction()

function(plumb_binary name main)
  add_executable(${name} ${CMAKE_SOURCE_DIR}/${main})
  target_link_libraries(${name} PRIVATE plumb_cli)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()

# plumb_shipped_model(alias folder): a model that comes with plumb. cli/model_store.h looks for it
# beside the program (here, a link) and in ../share of where that is installed.
function(plumb_shipped_model alias folder)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/plumb/models)
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${folder} ${CMAKE_BINARY_DIR}/share/plumb/models/${alias}
       SYMBOLIC)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/${folder}/ DESTINATION share/plumb/models/${alias})
endfunction()

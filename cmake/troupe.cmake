# Sources are compiled together, since compilers mostly read headers and compile their templates
# (decision 0036): in as few units of at most thirty sources as possible, filled evenly.
# OFF compiles each alone, for clang-tidy and to find a missing include.
option(TROUPE_UNITY "Compile the sources of a library together" ON)
function(troupe_unity name)
  get_target_property(sources ${name} SOURCES)
  list(LENGTH sources num_sources)
  math(EXPR num_units "(${num_sources} + 29) / 30")
  math(EXPR batch "(${num_sources} + ${num_units} - 1) / ${num_units}")
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${TROUPE_UNITY} UNITY_BUILD_BATCH_SIZE ${batch})
  if(TROUPE_UNITY)
    # GCC treats the source that includes the others as a header.
    target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# For libraries that start, check, print and register, and compute nothing: -O1 saves a fifth of their
# time in the compiler.
function(troupe_small_code)
  foreach(name IN LISTS ARGN)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endforeach()
endfunction()

# For libraries that mostly wait for others, people and disks included: -Og saves another fifth.
function(troupe_waiting_code)
  foreach(name IN LISTS ARGN)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Og>)
  endforeach()
endfunction()

# For libraries with loops over pixels, bytes and numbers.
function(troupe_loops)
  foreach(name IN LISTS ARGN)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O3>)
  endforeach()
endfunction()

# One library per folder: every .cpp in it, and only the libraries named after DEPENDS, so that an
# include against the order of docs/architecture.md fails to link.
function(troupe_library folder)
  cmake_parse_arguments(arg "" "" "DEPENDS;PRIVATE" ${ARGN})
  string(REPLACE "/" "_" name "troupe_${folder}")
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  if(sources)
    add_library(${name} STATIC ${sources})
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} PUBLIC ${arg_DEPENDS} PRIVATE troupe_warnings ${arg_PRIVATE})
    troupe_unity(${name})
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} INTERFACE ${arg_DEPENDS})
  endif()
endfunction()

# One test program per folder of tests/: tests/FOLDER/*_test.cpp. QUICK: `make quick` runs it, too.
# UNITY: its sources are compiled ten at a time, as those of libraries.
function(troupe_tests folder)
  cmake_parse_arguments(arg "QUICK;UNITY" "TIMEOUT" "DEPENDS" ${ARGN})
  string(REPLACE "/" "_" name "test_${folder}")
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*.cpp)
  if(NOT sources)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(TROUPE_SANITIZE)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 10")
  endif()
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} troupe_catch_main troupe_warnings)
  # The tested code is optimised; tests are compiled more often than they run.
  target_compile_options(${name} PRIVATE -O1)
  if(arg_UNITY)
    troupe_unity(${name})
    set_target_properties(${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 10)
  endif()
  target_precompile_headers(${name} PRIVATE <catch2/catch.hpp>)
  add_test(NAME ${folder} COMMAND ${name} "~[.]~[slow]~[gpu]" WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${folder} PROPERTIES TIMEOUT ${arg_TIMEOUT})
  set_property(TEST ${folder} PROPERTY ENVIRONMENT ${TROUPE_TEST_ENVIRONMENT})
  if(arg_QUICK)
    set_property(TEST ${folder} PROPERTY LABELS quick)
    add_dependencies(quick_tests ${name})
  endif()
endfunction()

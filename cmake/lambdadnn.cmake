# SPDX-License-Identifier: Apache-2.0
# Helpers shared by every folder's CMakeLists.txt.

# What is done for gcc's sake to build faster.
set(LAMBDADNN_GCC OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(LAMBDADNN_GCC ON)
endif()

add_library(lambdadnn_flags INTERFACE)
target_include_directories(lambdadnn_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(lambdadnn_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion)
# Assertions name files by their path in the repository, so that checkouts share compiled objects.
target_compile_options(lambdadnn_flags INTERFACE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # gcc 12 reports copies inside std::string's operator+ that overlap or end outside; none of them does.
  target_compile_options(lambdadnn_flags INTERFACE
    -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()
if(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
  # The results of amd64, where products and sums are rounded one by one and char has a sign.
  target_compile_options(lambdadnn_flags INTERFACE -ffp-contract=off -fsigned-char)
endif()
if(LAMBDADNN_WERROR)
  target_compile_options(lambdadnn_flags INTERFACE -Werror)
endif()
if(LAMBDADNN_SANITIZE)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # gcc 12 with sanitizers reports std::regex's own moves as reads of unset members.
    target_compile_options(lambdadnn_flags INTERFACE -Wno-maybe-uninitialized)
    if(LAMBDADNN_SANITIZE MATCHES "thread")
      # Boost.Asio's fences are not understood; it holds locks where they matter.
      target_compile_options(lambdadnn_flags INTERFACE -Wno-tsan)
    endif()
  endif()
  add_compile_options(-fsanitize=${LAMBDADNN_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${LAMBDADNN_SANITIZE})
endif()
if(LAMBDADNN_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# lambdadnn_library(NAME SOURCES a.cc ... DEPS other ...): the one target of a folder.
# A folder whose sources are all headers becomes an INTERFACE library. QUICKLY: see
# lambdadnn_compile_quickly. PRECOMPILED: what most of its files include (cmake/precompiled.cmake); by
# default JSON where LAMBDADNN_USES_JSON is set for the directory.
function(lambdadnn_library name)
  cmake_parse_arguments(ARG "QUICKLY" "PRECOMPILED" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC lambdadnn_flags ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
    set(kind library)
    if(ARG_QUICKLY)
      lambdadnn_compile_quickly(${name})
      set(kind quick_library)
    endif()
    if(ARG_PRECOMPILED)
      lambdadnn_precompile(${name} ${ARG_PRECOMPILED})
    elseif(LAMBDADNN_USES_JSON)
      lambdadnn_precompile(${name} ${kind})
    endif()
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE lambdadnn_flags ${ARG_DEPS})
  endif()
endfunction()

# For code that waits for others or runs once: a quarter less to compile than with -O2. Not -O0: the
# linker takes one copy of each template for the whole program, and a test's may be the one.
function(lambdadnn_compile_quickly name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# All GoogleTest programs of a tier, as one target: what the sanitizers run is two tiers.
foreach(tier unit conformance)
  add_custom_target(${tier}_tests)
endforeach()

# The system's, which has the packages of scripts/setup.sh.
set(LAMBDADNN_PYTHON /usr/bin/python3)

# add_test, with a variable that everything that the test starts can be told by
# (tests/support/marked_processes.py).
function(lambdadnn_add_test keyword name)
  add_test(NAME ${name} ${ARGN})
  set_property(TEST ${name} PROPERTY ENVIRONMENT_MODIFICATION LAMBDADNN_TEST=set:${name})
endfunction()

# lambdadnn_python_test(NAME FILE.py WORDS...): a file of tests, or of it the classes and tests that WORDS
# name (Class, Class::test_name); other words are options of tests/conftest.py.
function(lambdadnn_python_test name file)
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set(wanted "")
  set(options "")
  foreach(word ${ARGN})
    if(word MATCHES "^[A-Z][A-Za-z]+(::.*)?$")
      list(APPEND wanted ${file}::${word})
    else()
      list(APPEND options ${word})
    endif()
  endforeach()
  if(NOT wanted)
    set(wanted ${file})
  endif()
  lambdadnn_add_test(NAME ${name}
    COMMAND ${LAMBDADNN_PYTHON} -m pytest ${wanted} ${options}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endfunction()

# lambdadnn_test(NAME SOURCES ... DEPS ... LABELS tier READS ...): a GoogleTest program, one ctest entry a
# program. READS: the files and folders of the repository that it reads, and the programs that it runs
# (bin/NAME). scripts/test.sh remembers that a test passed until one of them, or the program, is another.
function(lambdadnn_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS;ENVIRONMENT;READS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} lambdadnn_test_support GTest::gtest GTest::gmock GTest::gtest_main)
  lambdadnn_add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  list(GET ARG_LABELS 0 tier)
  if(TARGET ${tier}_tests)
    add_dependencies(${tier}_tests ${name})
  endif()
  # Nothing is remembered of the tests that run whole systems.
  if(NOT tier STREQUAL integration)
    list(JOIN ARG_READS ":" reads)
    list(APPEND ARG_ENVIRONMENT LAMBDADNN_TEST_READS=${reads})
  endif()
  lambdadnn_compile_quickly(${name})
  lambdadnn_precompile(${name} test)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  # What takes seconds by itself takes minutes under a sanitizer and beside others.
  if(LAMBDADNN_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 4")
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
                                          ENVIRONMENT "${ARG_ENVIRONMENT}")
endfunction()

# lambdadnn_fuzz(NAME_fuzz DEPS ...): a fuzz target from NAME_fuzz.cc with the corpus
# tests/fuzz/corpus/NAME. With LAMBDADNN_FUZZ a libFuzzer program, which scripts/test.sh --all runs;
# else a part of fuzz_replay, which gives it what is in its corpora: a test of the tier fuzz.
function(lambdadnn_fuzz name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  if(NOT LAMBDADNN_FUZZ)
    string(REGEX REPLACE "_fuzz$" "" target ${name})
    target_sources(fuzz_replay PRIVATE ${name}.cc)
    set_source_files_properties(${name}.cc PROPERTIES
      COMPILE_DEFINITIONS LLVMFuzzerTestOneInput=Fuzz_${target})
    target_link_libraries(fuzz_replay PRIVATE ${ARG_DEPS})
    set_property(GLOBAL APPEND_STRING PROPERTY LAMBDADNN_FUZZ_TARGETS "FUZZ_TARGET(${target})\n")
    lambdadnn_add_test(NAME fuzz_${target} COMMAND fuzz_replay ${target} ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${target})
    set_tests_properties(fuzz_${target} PROPERTIES LABELS fuzz TIMEOUT 300
      ENVIRONMENT ASAN_OPTIONS=hard_rss_limit_mb=1024)
    return()
  endif()
  add_executable(${name} ${name}.cc)
  target_link_libraries(${name} PRIVATE lambdadnn_flags ${ARG_DEPS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endfunction()

# lambdadnn_bench(NAME DEPS ...): a google-benchmark program from NAME.cc, run by scripts/bench.sh.
function(lambdadnn_bench name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_executable(${name} ${name}.cc)
  target_link_libraries(${name} PRIVATE lambdadnn_flags ${ARG_DEPS} benchmark::benchmark_main)
endfunction()

# lambdadnn_cluster_test(NAME LABELS SECONDS FILE.py WORDS...): a Python test on the one cluster of the
# e2e tier, with the images that were built for all of it (tests/cluster/CMakeLists.txt).
set(LAMBDADNN_CLUSTER "LAMBDADNN_CLUSTER_DIR=/tmp/lambdadnn-e2e;LAMBDADNN_IMAGES=kept")
function(lambdadnn_cluster_test name labels seconds)
  lambdadnn_python_test(${name} ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${seconds} RUN_SERIAL ON
    FIXTURES_REQUIRED "cluster_images;cluster" ENVIRONMENT "${LAMBDADNN_CLUSTER}")
endfunction()

# SPDX-License-Identifier: Apache-2.0
# JSON, GoogleTest and the standard containers, parsed once for all files that use them: a fifth of a
# build's time. A file still includes what it uses: the build without precompiled headers (fuzz) and
# clang-tidy tell.
option(LAMBDADNN_PRECOMPILE "Precompile the headers that most files include" ${LAMBDADNN_GCC})

set(LAMBDADNN_COMMON_HEADERS
  <algorithm> <chrono> <functional> <map> <memory> <mutex> <optional> <string> <string_view> <variant>
  <vector> <nlohmann/json.hpp>)
set(LAMBDADNN_TEST_HEADERS ${LAMBDADNN_COMMON_HEADERS} <thread> <gtest/gtest.h> <gmock/gmock.h>)

# gcc writes other bytes each time that it precompiles the same headers. ccache takes a checksum of ours
# for them (CCACHE_PCH_EXTSUM), so that what one checkout compiled serves all others: of the compiler and
# the packages that the headers are of. cmake runs again when a package is installed.
set(LAMBDADNN_PACKAGES "")
if(CMAKE_SYSROOT)
  file(READ ${CMAKE_SYSROOT}/packages LAMBDADNN_PACKAGES)
elseif(EXISTS /var/lib/dpkg/status)
  execute_process(
    COMMAND dpkg-query -W -f "\${Package} \${Version}\n" libc6-dev linux-libc-dev libstdc++-*-dev
      libgcc-*-dev nlohmann-json3-dev libcli11-dev libgtest-dev libgmock-dev
    OUTPUT_VARIABLE LAMBDADNN_PACKAGES ERROR_QUIET)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS /var/lib/dpkg/status)
endif()
function(lambdadnn_precompiled_checksum kind)
  if(LAMBDADNN_PACKAGES)
    string(SHA256 checksum
      "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${LAMBDADNN_PACKAGES} ${ARGN}")
    file(CONFIGURE CONTENT "${checksum}\n" @ONLY
      OUTPUT ${CMAKE_BINARY_DIR}/CMakeFiles/lambdadnn_precompiled_${kind}.dir/cmake_pch.hxx.gch.sum)
  endif()
endfunction()

# lambdadnn_precompiled(KIND HEADERS... ): makes what lambdadnn_precompile(TARGET KIND) lends. gcc
# refuses precompiled headers that were made with other options, so each kind stands for one set of them.
function(lambdadnn_precompiled kind)
  cmake_parse_arguments(ARG "EXECUTABLE;QUICKLY" "" "HEADERS;DEPS" ${ARGN})
  set(source ${CMAKE_BINARY_DIR}/precompiled/${kind}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Precompiled headers need a source file.\n")
  add_library(lambdadnn_precompiled_${kind} OBJECT ${source})
  target_link_libraries(lambdadnn_precompiled_${kind} PRIVATE lambdadnn_flags ${ARG_DEPS})
  if(ARG_EXECUTABLE)
    set_target_properties(lambdadnn_precompiled_${kind} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(lambdadnn_precompiled_${kind} PRIVATE ${CMAKE_CXX_COMPILE_OPTIONS_PIE})
  endif()
  if(ARG_QUICKLY)
    lambdadnn_compile_quickly(lambdadnn_precompiled_${kind})
  endif()
  target_precompile_headers(lambdadnn_precompiled_${kind} PRIVATE ${ARG_HEADERS})
  lambdadnn_precompiled_checksum(${kind} ${ARG_HEADERS})
endfunction()

function(lambdadnn_precompile target kind)
  if(LAMBDADNN_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM lambdadnn_precompiled_${kind})
  endif()
endfunction()

if(LAMBDADNN_PRECOMPILE)
  lambdadnn_precompiled(library HEADERS ${LAMBDADNN_COMMON_HEADERS} DEPS nlohmann_json::nlohmann_json)
  lambdadnn_precompiled(quick_library QUICKLY HEADERS ${LAMBDADNN_COMMON_HEADERS}
    DEPS nlohmann_json::nlohmann_json)
  lambdadnn_precompiled(command QUICKLY HEADERS ${LAMBDADNN_COMMON_HEADERS} <CLI/CLI.hpp>
    DEPS nlohmann_json::nlohmann_json CLI11::CLI11)
  if(LAMBDADNN_TESTS)
    lambdadnn_precompiled(test EXECUTABLE QUICKLY HEADERS ${LAMBDADNN_TEST_HEADERS}
      DEPS nlohmann_json::nlohmann_json GTest::gtest GTest::gmock)
  endif()
endif()

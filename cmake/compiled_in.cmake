# SPDX-License-Identifier: Apache-2.0
# What headers leave in our programs, beside the shared libraries that these load: installed as
# share/lambdadnn/compiled_in/COMPONENT, a line each (name, version, licence, supplier, separated by tabs),
# from which images make their list of packages, with the licences' texts where Debian keeps them.
function(lambdadnn_compiled_in component)
  set(lines "")
  foreach(entry ${ARGN})
    string(REPLACE "|" ";" fields "${entry}")
    list(POP_BACK fields debian_package)
    list(JOIN fields "\t" line)
    string(APPEND lines "${line}\n")
    if(NOT debian_package STREQUAL "-")
      install(FILES ${CMAKE_SYSROOT}/usr/share/doc/${debian_package}/copyright OPTIONAL
              DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${debian_package} COMPONENT ${component})
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/compiled_in/${component} CONTENT "${lines}" @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/compiled_in/${component}
          DESTINATION ${CMAKE_INSTALL_DATADIR}/lambdadnn/compiled_in COMPONENT ${component})
endfunction()

set(_json "nlohmann-json|${nlohmann_json_VERSION}|MIT|Organization: Debian|nlohmann-json3-dev")
set(_cli11 "CLI11|${CLI11_VERSION}|BSD-3-Clause|Organization: Debian|libcli11-dev")
set(_boost "Boost|${Boost_VERSION_STRING}|BSL-1.0|Organization: Debian|libboost1.74-dev")
set(_arrow "")
if(TARGET UpstreamArrow::parquet)
  set(_arrow "Apache Arrow|${LAMBDADNN_ARROW_VERSION}|Apache-2.0|Organization: The Apache Software Foundation|-")
endif()
lambdadnn_compiled_in(operator ${_json} ${_boost} ${_cli11} ${_arrow})
lambdadnn_compiled_in(server ${_json} ${_boost})
if(TARGET UpstreamTorch::cpu)
  set(_torch "LibTorch|${UpstreamTorch_VERSION}|BSD-3-Clause|Organization: PyTorch|-")
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
    # Libraries of others that the wheel brings as files of their own.
    list(APPEND _torch
      "Arm Compute Library|of LibTorch ${UpstreamTorch_VERSION}|MIT|Organization: Arm|-"
      "NVPL|of LibTorch ${UpstreamTorch_VERSION}|NOASSERTION|Organization: NVIDIA|-")
  endif()
  if(LAMBDADNN_TORCH_SOURCE STREQUAL "upstream-cuda")
    file(STRINGS ${PROJECT_SOURCE_DIR}/scripts/cuda_wheels.txt _wheels REGEX "^[^#]")
    foreach(_wheel ${_wheels})
      string(REGEX MATCH "^([^ ]+) ([^ ]+)" _ "${_wheel}")
      list(APPEND _torch "${CMAKE_MATCH_1}|${CMAKE_MATCH_2}|NOASSERTION|Organization: NVIDIA|-")
    endforeach()
  endif()
  lambdadnn_compiled_in(worker ${_json} ${_boost} ${_torch} ${_arrow})
endif()

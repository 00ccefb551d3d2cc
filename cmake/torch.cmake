# SPDX-License-Identifier: Apache-2.0
# Finds LibTorch where LAMBDADNN_TORCH_SOURCE says. What links it uses TORCH_INCLUDE_DIRS and
# TORCH_LIBRARIES and does not know which it is.
if(LAMBDADNN_TORCH_SOURCE STREQUAL "system")
  find_package(Torch REQUIRED)
elseif(LAMBDADNN_TORCH_SOURCE STREQUAL "upstream")
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/scripts/libtorch.sh path ${CMAKE_SYSTEM_PROCESSOR}
    OUTPUT_VARIABLE _folder OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(LAMBDADNN_UPSTREAM_TORCH ${_folder} CACHE PATH "Folder that scripts/libtorch.sh made")
  list(APPEND CMAKE_MODULE_PATH ${PROJECT_SOURCE_DIR}/cmake)
  find_package(UpstreamTorch REQUIRED)
  get_target_property(TORCH_INCLUDE_DIRS UpstreamTorch::c10 INTERFACE_INCLUDE_DIRECTORIES)
  set(TORCH_LIBRARIES lambdadnn_no_cuda UpstreamTorch::cpu)
  set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/lambdadnn")
  install(DIRECTORY ${LAMBDADNN_UPSTREAM_TORCH}/lib/
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/lambdadnn COMPONENT worker)
  install(DIRECTORY ${LAMBDADNN_UPSTREAM_TORCH}/licenses/
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libtorch COMPONENT worker)
else()
  message(FATAL_ERROR
    "LAMBDADNN_TORCH_SOURCE is '${LAMBDADNN_TORCH_SOURCE}'; it can be system or upstream")
endif()

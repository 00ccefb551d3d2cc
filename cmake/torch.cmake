# SPDX-License-Identifier: Apache-2.0
# Finds LibTorch where LAMBDADNN_TORCH_SOURCE says. What links it uses TORCH_INCLUDE_DIRS and
# TORCH_LIBRARIES and does not know which it is.
if(LAMBDADNN_TORCH_SOURCE STREQUAL "system")
  find_package(Torch REQUIRED)
elseif(LAMBDADNN_TORCH_SOURCE MATCHES "^upstream(-cuda)?$")
  set(_cuda "")
  if(LAMBDADNN_TORCH_SOURCE STREQUAL "upstream-cuda")
    set(_cuda --cuda)
  endif()
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/scripts/libtorch.sh path ${_cuda} ${CMAKE_SYSTEM_PROCESSOR}
    OUTPUT_VARIABLE _folder OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(LAMBDADNN_UPSTREAM_TORCH ${_folder} CACHE PATH "Folder that scripts/libtorch.sh made")
  list(APPEND CMAKE_MODULE_PATH ${PROJECT_SOURCE_DIR}/cmake)
  if(_cuda)
    find_package(UpstreamTorch REQUIRED COMPONENTS cuda)
    set(TORCH_LIBRARIES UpstreamTorch::cuda)
    # Its libraries are gigabytes: the image has them from where they are.
  else()
    find_package(UpstreamTorch REQUIRED)
    set(TORCH_LIBRARIES lambdadnn_no_cuda UpstreamTorch::cpu)
    install(DIRECTORY ${LAMBDADNN_UPSTREAM_TORCH}/lib/
      DESTINATION ${CMAKE_INSTALL_LIBDIR}/lambdadnn COMPONENT worker)
  endif()
  get_target_property(TORCH_INCLUDE_DIRS UpstreamTorch::c10 INTERFACE_INCLUDE_DIRECTORIES)
  set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/lambdadnn")
  install(DIRECTORY ${LAMBDADNN_UPSTREAM_TORCH}/licenses/
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libtorch COMPONENT worker)
elseif(LAMBDADNN_TORCH_SOURCE STREQUAL "cuda")
  if(NOT LAMBDADNN_UPSTREAM_TORCH)
    # Without importing it: that may take a GPU's libraries that are not here.
    execute_process(
      COMMAND python3 -c "import importlib.util as u; print(*u.find_spec('torch').submodule_search_locations)"
      OUTPUT_VARIABLE _folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    set(LAMBDADNN_UPSTREAM_TORCH "${_folder}" CACHE PATH "Folder with include and lib of a LibTorch with CUDA" FORCE)
  endif()
  list(APPEND CMAKE_MODULE_PATH ${PROJECT_SOURCE_DIR}/cmake)
  find_package(UpstreamTorch REQUIRED COMPONENTS cuda)
  get_target_property(TORCH_INCLUDE_DIRS UpstreamTorch::c10 INTERFACE_INCLUDE_DIRECTORIES)
  set(TORCH_LIBRARIES UpstreamTorch::cuda)
  # The libraries stay where they are: with NVIDIA's, gigabytes.
  set(CMAKE_INSTALL_RPATH ${LAMBDADNN_UPSTREAM_TORCH}/lib)
else()
  message(FATAL_ERROR
    "LAMBDADNN_TORCH_SOURCE is '${LAMBDADNN_TORCH_SOURCE}'; it can be system, upstream, upstream-cuda or cuda")
endif()

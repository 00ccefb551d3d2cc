# SPDX-License-Identifier: Apache-2.0
# LibTorch as upstream publishes it, reduced by scripts/libtorch.sh to headers and the libraries of CPUs.
# (Its own TorchConfig.cmake insists on a CUDA toolkit, which a program on CPUs has no use for.)
#
# Input:  LAMBDADNN_UPSTREAM_TORCH, the folder that scripts/libtorch.sh made (it prints it).
# Output: UpstreamTorch_FOUND, UpstreamTorch_VERSION, and the target UpstreamTorch::cpu.
find_path(UpstreamTorch_INCLUDE_DIR torch/csrc/api/include/torch/torch.h
  PATHS ${LAMBDADNN_UPSTREAM_TORCH}/include NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
find_library(UpstreamTorch_CPU_LIBRARY torch_cpu
  PATHS ${LAMBDADNN_UPSTREAM_TORCH}/lib NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
find_library(UpstreamTorch_C10_LIBRARY c10
  PATHS ${LAMBDADNN_UPSTREAM_TORCH}/lib NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
mark_as_advanced(UpstreamTorch_INCLUDE_DIR UpstreamTorch_CPU_LIBRARY UpstreamTorch_C10_LIBRARY)
if(EXISTS ${LAMBDADNN_UPSTREAM_TORCH}/version)
  file(STRINGS ${LAMBDADNN_UPSTREAM_TORCH}/version UpstreamTorch_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(UpstreamTorch
  REQUIRED_VARS UpstreamTorch_CPU_LIBRARY UpstreamTorch_C10_LIBRARY UpstreamTorch_INCLUDE_DIR
  VERSION_VAR UpstreamTorch_VERSION
  REASON_FAILURE_MESSAGE "run scripts/libtorch.sh fetch ${CMAKE_SYSTEM_PROCESSOR}, or set LAMBDADNN_UPSTREAM_TORCH")

if(UpstreamTorch_FOUND AND NOT TARGET UpstreamTorch::cpu)
  add_library(UpstreamTorch::c10 SHARED IMPORTED)
  set_target_properties(UpstreamTorch::c10 PROPERTIES
    IMPORTED_LOCATION ${UpstreamTorch_C10_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES
      "${UpstreamTorch_INCLUDE_DIR};${UpstreamTorch_INCLUDE_DIR}/torch/csrc/api/include")
  add_library(UpstreamTorch::cpu SHARED IMPORTED)
  set_target_properties(UpstreamTorch::cpu PROPERTIES
    IMPORTED_LOCATION ${UpstreamTorch_CPU_LIBRARY}
    INTERFACE_LINK_LIBRARIES UpstreamTorch::c10)
endif()

# SPDX-License-Identifier: Apache-2.0
# LibTorch as upstream publishes it: reduced by scripts/libtorch.sh to headers and the libraries of CPUs, or,
# with the component cuda, all of it, as PyTorch is installed. (Its own TorchConfig.cmake insists on a CUDA
# toolkit, which our programs have no use for.)
#
# Input:  LAMBDADNN_UPSTREAM_TORCH, the folder that scripts/libtorch.sh made (it prints it), or PyTorch's.
# Output: UpstreamTorch_FOUND, UpstreamTorch_VERSION, and the targets UpstreamTorch::cpu and, if asked for,
#         UpstreamTorch::cuda, which has the former.
find_path(UpstreamTorch_INCLUDE_DIR torch/csrc/api/include/torch/torch.h
  PATHS ${LAMBDADNN_UPSTREAM_TORCH}/include NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
find_library(UpstreamTorch_CPU_LIBRARY torch_cpu
  PATHS ${LAMBDADNN_UPSTREAM_TORCH}/lib NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
find_library(UpstreamTorch_C10_LIBRARY c10
  PATHS ${LAMBDADNN_UPSTREAM_TORCH}/lib NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
mark_as_advanced(UpstreamTorch_INCLUDE_DIR UpstreamTorch_CPU_LIBRARY UpstreamTorch_C10_LIBRARY)
set(_advice "run scripts/libtorch.sh fetch ${CMAKE_SYSTEM_PROCESSOR}, or set LAMBDADNN_UPSTREAM_TORCH")
if("cuda" IN_LIST UpstreamTorch_FIND_COMPONENTS)
  find_library(UpstreamTorch_CUDA_LIBRARY torch_cuda
    PATHS ${LAMBDADNN_UPSTREAM_TORCH}/lib NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
  mark_as_advanced(UpstreamTorch_CUDA_LIBRARY)
  if(UpstreamTorch_CUDA_LIBRARY)
    set(UpstreamTorch_cuda_FOUND TRUE)
  endif()
  set(_advice "install a PyTorch with CUDA for the python3 of PATH, or set LAMBDADNN_UPSTREAM_TORCH to the folder torch of one")
  if(LAMBDADNN_TORCH_SOURCE STREQUAL "upstream-cuda")
    set(_advice "run scripts/libtorch.sh fetch --cuda")
  endif()
endif()
if(EXISTS ${LAMBDADNN_UPSTREAM_TORCH}/version)
  file(STRINGS ${LAMBDADNN_UPSTREAM_TORCH}/version UpstreamTorch_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(UpstreamTorch
  REQUIRED_VARS UpstreamTorch_CPU_LIBRARY UpstreamTorch_C10_LIBRARY UpstreamTorch_INCLUDE_DIR
  VERSION_VAR UpstreamTorch_VERSION
  HANDLE_COMPONENTS
  REASON_FAILURE_MESSAGE ${_advice})

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

if(UpstreamTorch_FOUND AND UpstreamTorch_cuda_FOUND AND NOT TARGET UpstreamTorch::cuda)
  # No symbol of it is named: what it registers when it is loaded makes LibTorch compute on GPUs. What it
  # needs of NVIDIA's need not be where a program is linked.
  add_library(UpstreamTorch::cuda INTERFACE IMPORTED)
  target_link_options(UpstreamTorch::cuda INTERFACE -Wl,--unresolved-symbols=ignore-in-shared-libs)
  target_link_libraries(UpstreamTorch::cuda INTERFACE
    -Wl,--push-state,--no-as-needed ${UpstreamTorch_CUDA_LIBRARY} -Wl,--pop-state UpstreamTorch::cpu)
endif()

# SPDX-License-Identifier: Apache-2.0
# Sources compiled six at a time: what templates they share is generated once, which halves a build.
# The builds without it (debug, fuzz, tsan) hold that each file stands on its own.
option(LAMBDADNN_UNITY "Compile the sources of a target in batches" ${LAMBDADNN_GCC})
if(LAMBDADNN_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 6)
  # A source that another includes is no header: its unnamed namespace is its own all the same.
  target_compile_options(lambdadnn_flags INTERFACE -Wno-subobject-linkage)
endif()

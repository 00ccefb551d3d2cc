# SPDX-License-Identifier: Apache-2.0
# add_subdirectories(a b c): those that exist; every folder owns its CMakeLists.txt.
function(add_subdirectories)
  foreach(directory ${ARGN})
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${directory}/CMakeLists.txt)
      add_subdirectory(${directory})
    endif()
  endforeach()
endfunction()

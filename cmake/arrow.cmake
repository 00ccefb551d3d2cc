# SPDX-License-Identifier: Apache-2.0
# Apache Arrow's reader of Parquet, as scripts/arrow.sh keeps it: UpstreamArrow::parquet, if it is there.
# Without it everything is built but lib/lambdadnn/liblambdadnn_parquet.so, and Parquet files are refused.
# -DLAMBDADNN_ARROW=FOLDER takes another folder.
if(NOT LAMBDADNN_ARROW)
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/scripts/arrow.sh path ${CMAKE_SYSTEM_PROCESSOR}
    OUTPUT_VARIABLE LAMBDADNN_ARROW OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/scripts/arrow.sh)
if(EXISTS ${LAMBDADNN_ARROW}/version)
  file(STRINGS ${LAMBDADNN_ARROW}/version LAMBDADNN_ARROW_VERSION)
  string(REGEX MATCH "^[0-9]+" _major ${LAMBDADNN_ARROW_VERSION})
  foreach(name arrow parquet)
    add_library(UpstreamArrow::${name} SHARED IMPORTED)
    set_target_properties(UpstreamArrow::${name} PROPERTIES
      IMPORTED_LOCATION ${LAMBDADNN_ARROW}/lib/lib${name}.so.${_major}00
      INTERFACE_INCLUDE_DIRECTORIES ${LAMBDADNN_ARROW}/include)
  endforeach()
  set_property(TARGET UpstreamArrow::parquet PROPERTY INTERFACE_LINK_LIBRARIES UpstreamArrow::arrow)
else()
  message(STATUS "Parquet files will be refused: no Apache Arrow in ${LAMBDADNN_ARROW}; run scripts/arrow.sh fetch")
endif()

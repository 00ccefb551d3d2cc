#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The upstream LibTorch for builds with LAMBDADNN_TORCH_SOURCE=upstream, as the worker's image has it:
# headers, libraries and the licences of PyPI's torch wheel, below the cache folder.
#
#   scripts/libtorch.sh fetch [x86_64|aarch64]    download it once (540 MB, of which 510 stay), and check it
#   scripts/libtorch.sh path [x86_64|aarch64]     print the folder that it is or would be in
#
# It is this machine's architecture unless told.
set -euo pipefail
# shellcheck disable=SC1091
. "$(dirname "${BASH_SOURCE[0]}")/wheel.sh"

readonly VERSION=2.15.0

# What a program on CPUs loads; for aarch64 its BLAS (NVPL) and the Arm Compute Library are files of their own.
architecture=${2:-$(uname -m)}
libraries=(libtorch_cpu.so libc10.so)
case "$architecture" in
  x86_64) sha256=48c2d861134c0b5697c7602cb5ffa68f62a2989fdcd1717e593356f67996ca1e ;;
  aarch64)
    sha256=58ce2ebfb3430941353109a85be63ee8e941da22f13daa2c43344eeb51c81e06
    libraries+=(libarm_compute.so libarm_compute_graph.so)
    libraries+=(libnvpl_{blas,lapack}_{core,lp64_gomp}.so.0) ;;
  *) fail "the upstream LibTorch is for x86_64 and aarch64, not for $architecture; use the distribution's (LAMBDADNN_TORCH_SOURCE=system)" ;;
esac
folder=${XDG_CACHE_HOME:-$HOME/.cache}/lambdadnn/libtorch-$VERSION-${sha256:0:8}

fetch() { keep_wheel "$folder" torch $VERSION "$sha256" "$architecture" "${libraries[@]/#/lib/}"; }

case "${1:-}" in
  fetch) fetch ;;
  path) echo "$folder" ;;
  -h | --help) sed -n '3,9p' "$0" | cut -c3- ;;
  *) echo "error: unknown command '${1:-}'; see scripts/libtorch.sh --help" >&2; exit 2 ;;
esac

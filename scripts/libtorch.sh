#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The upstream LibTorch for builds with LAMBDADNN_TORCH_SOURCE=upstream, as the worker's image has it:
# headers, libraries and the licences of PyPI's torch wheel, below the cache folder.
#
#   scripts/libtorch.sh fetch [--cuda] [x86_64|aarch64]    download it once (540 MB, of which 510 stay), and check it
#   scripts/libtorch.sh path [--cuda] [x86_64|aarch64]     print the folder that it is or would be in
#
# It is this machine's architecture unless told. With --cuda (LAMBDADNN_TORCH_SOURCE=upstream-cuda) it is for GPUs,
# with NVIDIA's libraries beside LibTorch's (scripts/cuda_wheels.txt): x86_64 alone, 2.7 GB
# to download, of which 3.9 GB stay.
set -euo pipefail
# shellcheck disable=SC1091
. "$(dirname "${BASH_SOURCE[0]}")/wheel.sh"

readonly VERSION=2.15.0
readonly CUDA_WHEELS="${BASH_SOURCE[0]%/*}/cuda_wheels.txt"

cuda=0
words=()
for word; do
  if [ "$word" = --cuda ]; then cuda=1; else words+=("$word"); fi
done

# What a program on CPUs loads; for aarch64 its BLAS (NVPL) and the Arm Compute Library are files of their own.
architecture=${words[1]:-$(uname -m)}
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
if [ "$cuda" = 1 ]; then
  [ "$architecture" = x86_64 ] ||
    fail "NVIDIA's libraries are listed for x86_64 (scripts/cuda_wheels.txt), not for $architecture; install a PyTorch, and use the preset cuda"
  # The last two are opened when they are first needed.
  libraries+=(libc10_cuda.so libtorch_cuda.so libtorch_nvshmem.so libtorch_cuda_linalg.so libcaffe2_nvrtc.so)
  folder=$folder-cuda-$(sha256sum "$CUDA_WHEELS" | cut -c1-8)
fi

# Into the same folder: there LibTorch's libraries look for them.
finish() {
  [ "$cuda" = 1 ] || return 0
  local package version sha256 files
  while read -r package version sha256 files; do
    [[ -n "$package" && "$package" != '#'* ]] || continue
    echo "fetching $package $version"
    # shellcheck disable=SC2086
    take_wheel "$1" "$package" "$version" "$sha256" "$architecture" nvidia "licenses/$package" $files
  done <"$CUDA_WHEELS"
}
fetch() { keep_wheel "$folder" torch $VERSION "$sha256" "$architecture" "${libraries[@]/#/lib/}"; }

case "${words[0]:-}" in
  fetch) fetch ;;
  path) echo "$folder" ;;
  -h | --help) sed -n '3,12p' "$0" | cut -c3- ;;
  *) echo "error: unknown command '${words[0]:-}'; see scripts/libtorch.sh --help" >&2; exit 2 ;;
esac

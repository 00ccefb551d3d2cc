#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Apache Arrow's reader of Parquet files for our builds: headers, two libraries and the licences of PyPI's
# pyarrow wheel, below the cache folder. A build without it refuses such files.
#
#   scripts/arrow.sh fetch [x86_64|aarch64]    download it once (55 MB, of which as many stay), and check it
#   scripts/arrow.sh path [x86_64|aarch64]     print the folder that it is or would be in
#
# It is this machine's architecture unless told.
set -euo pipefail
# shellcheck disable=SC1091
. "$(dirname "${BASH_SOURCE[0]}")/wheel.sh"

readonly VERSION=26.0.1

architecture=${2:-$(uname -m)}
case "$architecture" in
  x86_64) sha256=39cb0f2418282c24bea6ceda77b03e5a8f0a5766b63a8bf194d4e2a2c423548c ;;
  aarch64) sha256=22a96a225de107eb9acd1ad9a818198ca832df2a4c0952412f754a7ed2105a98 ;;
  *) fail "there is no Apache Arrow for $architecture, only for x86_64 and aarch64; Parquet files will be refused" ;;
esac
folder=${XDG_CACHE_HOME:-$HOME/.cache}/lambdadnn/arrow-$VERSION-${sha256:0:8}

# Symbols that no program needs are a fifth of the libraries.
finish() {
  local strip=strip
  [ "$architecture" = "$(uname -m)" ] || strip=$architecture-linux-gnu-strip
  ! command -v "$strip" >/dev/null || "$strip" --strip-unneeded "$1"/lib/*
}
fetch() {
  keep_wheel "$folder" pyarrow $VERSION "$sha256" "$architecture" "libarrow.so.${VERSION%%.*}00" "libparquet.so.${VERSION%%.*}00"
}

case "${1:-}" in
  fetch) fetch ;;
  path) echo "$folder" ;;
  -h | --help) sed -n '3,10p' "$0" | cut -c3- ;;
  *) echo "error: unknown command '${1:-}'; see scripts/arrow.sh --help" >&2; exit 2 ;;
esac

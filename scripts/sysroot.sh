#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The sysroot of the presets arm64 and arm64-upstream: headers and libraries of Debian for arm64, below the
# cache folder. They are unpacked, not installed: nothing of them runs, and no root is needed.
#
#   scripts/sysroot.sh make [--mirror URL]    make it once, of today's packages (100 MB to fetch, 450 stay)
#   scripts/sysroot.sh path                   print the folder that it is or would be in
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly SUITE=bookworm ARCHITECTURE=arm64
packages=$(scripts/setup.sh --libraries | paste -sd,)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/lambdadnn/sysroot-$ARCHITECTURE-$(echo "$SUITE $packages" | sha256sum | cut -c1-8)

fail() { echo "error: $*" >&2; exit 1; }

make() {
  [ ! -f "$folder/packages" ] || return 0
  command -v mmdebstrap >/dev/null || fail "mmdebstrap is not installed; run scripts/setup.sh --images-arm64"
  mkdir -p "$(dirname "$folder")"
  work=$(mktemp -d "$folder.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "making the sysroot, Debian $SUITE for $ARCHITECTURE, in $folder"
  # A tar file, since only root could make the folder's devices.
  # shellcheck disable=SC2016
  mmdebstrap --quiet --variant=extract --architectures="$ARCHITECTURE" --include="$packages" \
    --extract-hook='cd "$1/var/cache/apt/archives" && ls *.deb >"$1/packages"' "$SUITE" "$work/all.tar" ${1:+"$1"} ||
    fail "mmdebstrap could not make the sysroot, see above; is Debian's mirror reachable? (--mirror URL)"
  mkdir "$work/new"
  tar -C "$work/new" -xf "$work/all.tar" --no-same-owner ./lib ./usr ./packages
  # Links that begin at the root would lead to files of this machine.
  find "$work/new" -type l -lname '/*' | while read -r link; do
    ln -sfnr "$work/new$(readlink "$link")" "$link"
  done
  chmod -R a+rX "$work/new"
  rm -rf "$folder"
  mv "$work/new" "$folder"
}

case "${1:-}" in
  make)
    case "${2:-}" in
      "") make ;;
      --mirror) make "${3:?--mirror needs a value}" ;;
      *) echo "error: unknown option $2; see scripts/sysroot.sh --help" >&2; exit 2 ;;
    esac ;;
  path) echo "$folder" ;;
  -h | --help) sed -n '3,7p' "$0" | cut -c3- ;;
  *) echo "error: unknown command '${1:-}'; see scripts/sysroot.sh --help" >&2; exit 2 ;;
esac

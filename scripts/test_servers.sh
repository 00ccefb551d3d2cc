#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The real servers and tools that the tests run, each a folder tests/servers/NAME. Most are built
# from pinned Go modules: go.mod and go.sum, whose `tool` lines name the programs (one: it is called
# NAME; several: each by its own name, after what the file prefix holds), and linker flags in the
# file ldflags where a program wants them. Without a `tool` line the folder's own main.go is the
# program. A file deb names a Debian package and the path of the one program in it that is wanted,
# without the services that installing it would start. A file source names a module and its version
# of which nothing is built, only its files are read. Programs are made once and kept in
# ${XDG_CACHE_HOME:-~/.cache}/lambdadnn/<hash of the pins and the Go version>/bin; a build that was
# interrupted goes on with the program that it was at.
#
#   scripts/test_servers.sh build [NAME...]     build what is missing (takes minutes, once)
#   scripts/test_servers.sh path PROGRAM        print where the program is (to be); 1 if not built
#   scripts/test_servers.sh source NAME [MODULE]  print where the source of one of NAME's modules is
#   scripts/test_servers.sh list                each NAME with its programs
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lambdadnn

names() {
  local file
  for file in "$root"/tests/servers/*/{go.mod,deb}; do
    [ ! -f "$file" ] || basename "$(dirname "$file")"
  done
}

need_name() {
  [ -n "$1" ] && names | grep -x -- "$1" >/dev/null && return
  echo "error: there is no test server '$1'; the names are: $(names | tr '\n' ' ')" >&2
  exit 2
}

is_deb() { [ -f "$root/tests/servers/$1/deb" ]; }

# The import paths that NAME builds; of a Debian package the path in it.
packages() {
  if is_deb "$1"; then cut -d' ' -f2 "$root/tests/servers/$1/deb"; return; fi
  awk '$1 == "tool" && $2 != "(" {print $2; any = 1} /^tool \($/ {inside = 1; next} /^\)/ {inside = 0}
       inside {print $1; any = 1} END {if (!any) print "."}' "$root/tests/servers/$1/go.mod"
}

# What the program of an import path is called: program NAME PACKAGE.
program() {
  if [ "$(packages "$1" | wc -l)" = 1 ]; then echo "$1"; return; fi
  echo "$(cat "$root/tests/servers/$1/prefix" 2>/dev/null)$(basename "$2")"
}

programs() {
  local package
  for package in $(packages "$1"); do program "$1" "$package"; done
}

go_program() {
  local candidate
  # What scripts/setup.sh fetched comes first: it did so because the other one is too old.
  for candidate in "$cache"/go-*/bin/go go /usr/local/go/bin/go; do
    command -v "$candidate" && return
  done
  echo "error: the test servers are built with Go 1.26 or newer, which is not installed; run scripts/setup.sh" >&2
  exit 4
}

# Where NAME's programs are kept.
directory() {
  local version key file
  if is_deb "$1"; then
    echo "$cache/$(sha256sum "$root/tests/servers/$1/deb" | cut -c1-16)/bin"
    return
  fi
  version=$("$(go_program)" env GOVERSION)
  key=$( (for file in "$root/tests/servers/$1/"{go.mod,go.sum,ldflags,main.go}; do
      [ ! -f "$file" ] || cat "$file"
    done
    echo "$version") | sha256sum | cut -c1-16)
  echo "$cache/$key/bin"
}

unpack_program() {  # NAME PATH BINARY
  local package
  package=$(cut -d' ' -f1 "$root/tests/servers/$1/deb")
  work=$(mktemp -d "$cache/build-XXXXXX")
  if ! (cd "$work" && apt-get -qq -o APT::Sandbox::User=root download "$package" && dpkg -x "$package"_*.deb .) >&2; then
    echo "error: $1 could not be taken from the Debian package $package, see above; is its archive reachable (apt-get update)?" >&2
    exit 4
  fi
  mv "$work/$2" "$3"
  rm -rf "$work"
  work=
  echo "$(basename "$3"): $3"
}

work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT

# A copy of NAME's folder in $work: go may touch go.mod and go.sum, and the checkout may be read-only.
copy_module() {
  local file
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/build-XXXXXX")
  for file in "$root/tests/servers/$1"/{go.mod,go.sum,main.go}; do
    [ ! -f "$file" ] || cp "$file" "$work/"
  done
}

build_program() {  # NAME PACKAGE BINARY
  local started flags="-s -w"
  [ -f "$root/tests/servers/$1/ldflags" ] && flags="$flags $(tr '\n' ' ' <"$root/tests/servers/$1/ldflags")"
  copy_module "$1"
  started=$(date +%s)
  echo "building $(basename "$3")${progress:+, $progress} (minutes, once) ..." >&2
  if ! (cd "$work" && GOFLAGS="-mod=mod -buildvcs=false" CGO_ENABLED=0 GOMAXPROCS=2 nice -n 19 "$(go_program)" \
      build -p 2 -trimpath -ldflags "$flags" -o "$work/program" "$2"); then
    echo "error: building $(basename "$3") failed, see above; is the Go module proxy reachable?" >&2
    exit 4
  fi
  mv "$work/program" "$3"
  rm -rf "$work"
  work=
  echo "$(basename "$3"): $3 ($(($(date +%s) - started)) s)"
}

build() {
  local name=$1 package binary
  need_name "$name"
  mkdir -p "$(directory "$name")"
  # Two builds at once would only fight for the processor; the second finds the work done.
  exec 9>"$cache/test_servers.lock"
  flock 9
  for package in $(packages "$name"); do
    binary=$(directory "$name")/$(program "$name" "$package")
    if [ -x "$binary" ]; then
      echo "$(basename "$binary"): $binary"
    elif is_deb "$name"; then
      unpack_program "$name" "$package" "$binary"
    else
      build_program "$name" "$package" "$binary"
    fi
  done
}

# The names one after another, saying how far it is.
build_all() {
  local name number=0
  for name in "$@"; do
    number=$((number + 1))
    progress="part $number of $#"
    build "$name"
  done
}

# The folder of a module that nothing is built of.
source_alone() {  # NAME
  local module
  module=$(tr ' ' '@' <"$root/tests/servers/$1/source")
  (cd / && GOFLAGS=-mod=mod "$(go_program)" mod download -json "$module") | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p' |
    grep . && return
  echo "error: the source of $module could not be fetched; is the Go module proxy reachable?" >&2
  exit 4
}

source_of() {  # NAME MODULE
  if [ -f "$root/tests/servers/$1/source" ]; then source_alone "$1"; return; fi
  need_name "$1"
  copy_module "$1"
  (cd "$work" && export GOFLAGS=-mod=mod && "$(go_program)" mod download "$2" >&2 &&
    "$(go_program)" list -m -f '{{.Dir}}' "$2") && return
  echo "error: the source of $2 could not be fetched, see above; is the Go module proxy reachable?" >&2
  exit 4
}

path() {
  local name binary
  for name in $(names); do
    programs "$name" | grep -x -- "$1" >/dev/null || continue
    binary=$(directory "$name")/$1
    echo "$binary"
    [ -x "$binary" ]
    return
  done
  echo "error: there is no test program '$1'; see scripts/test_servers.sh list" >&2
  exit 2
}

case "${1:-}" in
  build)
    shift
    [ $# -gt 0 ] || { mapfile -t all < <(names); set -- "${all[@]}"; }
    build_all "$@"
    ;;
  path) path "${2:-}" ;;
  source) source_of "${2:-}" "${3:-}" ;;
  list) for name in $(names); do echo "$name: $(programs "$name" | tr '\n' ' ')"; done ;;
  *)
    sed -n '3,17s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac

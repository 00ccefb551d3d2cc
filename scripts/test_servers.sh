#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The real S3 servers that the integration tests run against, built from pinned Go modules
# (tests/servers/NAME/go.mod, go.sum). They are built once and kept in
# ${XDG_CACHE_HOME:-~/.cache}/lambdadnn/<hash of the pins and the Go version>/bin.
#
#   scripts/test_servers.sh build [NAME...]   build what is missing (minio takes minutes)
#   scripts/test_servers.sh path NAME         print where the binary is (to be); 1 if not built
#   scripts/test_servers.sh list              the names
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lambdadnn

main_package() {
  sed -n 's/^tool //p' "$root/tests/servers/$1/go.mod"
}

need_server() {
  [ -f "$root/tests/servers/$1/go.mod" ] && return
  echo "error: there is no test server '$1'; the names are: $(list | tr '\n' ' ')" >&2
  exit 2
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

binary_path() {
  local go version key
  go=$(go_program)
  version=$("$go" env GOVERSION)
  key=$( (cat "$root/tests/servers/$1/go.mod" "$root/tests/servers/$1/go.sum"; echo "$version") |
    sha256sum | cut -c1-16)
  echo "$cache/$key/bin/$1"
}

list() {
  local directory
  for directory in "$root"/tests/servers/*/; do
    [ -f "$directory/go.mod" ] && basename "$directory"
  done
}

build() {
  local name=$1 binary work started
  need_server "$name"
  binary=$(binary_path "$name")
  mkdir -p "$(dirname "$binary")"
  # Two builds at once would only fight for the processor; the second finds the work done.
  exec 9>"$cache/test_servers.lock"
  flock 9
  if [ -x "$binary" ]; then
    echo "$name: $binary"
    return
  fi
  # In a copy: go may touch go.mod and go.sum, and the checkout may be read-only.
  work=$(mktemp -d "$cache/build-$name-XXXXXX")
  cp "$root/tests/servers/$name"/go.* "$work/"
  started=$(date +%s)
  echo "building $name (minutes, once) ..." >&2
  if ! (cd "$work" && GOFLAGS=-mod=mod CGO_ENABLED=0 nice "$(go_program)" build -p 1 -trimpath \
      -ldflags "-s -w" -o "$work/$name" "$(main_package "$name")"); then
    rm -rf "$work"
    echo "error: building $name failed, see above; is the Go module proxy reachable?" >&2
    exit 4
  fi
  mv "$work/$name" "$binary"
  rm -rf "$work"
  echo "$name: $binary ($(($(date +%s) - started)) s)"
}

case "${1:-}" in
  build)
    shift
    for name in ${*:-$(list)}; do build "$name"; done
    ;;
  path)
    need_server "${2:-}"
    binary=$(binary_path "$2")
    echo "$binary"
    [ -x "$binary" ]
    ;;
  list) list ;;
  *)
    sed -n '3,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what building and testing need, on Debian 12 and its relatives. Idempotent; says what it
# installs; changes nothing when everything is there.
#
#   scripts/setup.sh            everything (build, tests, test servers' Go toolchain)
#   scripts/setup.sh --build    only what building and running need
#   scripts/setup.sh --cluster  only what scripts/cluster.sh needs, with Go for its parts
#   scripts/setup.sh --images   only what scripts/images.sh needs beside a compiler
#   scripts/setup.sh --images-arm64  the same, and what its --platform linux/arm64 needs: a compiler, an emulator
#   scripts/setup.sh --compile  only what compiling the programs without LibTorch needs
#   scripts/setup.sh --libraries  installs nothing; prints the packages that scripts/sysroot.sh takes, one a line
#   scripts/setup.sh --check    installs nothing; exit code 1 when something is missing
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly LIBRARY_PACKAGES=(
  libcpprest-dev libyaml-cpp-dev libssl-dev zlib1g-dev libspdlog-dev nlohmann-json3-dev
  libjpeg62-turbo-dev libpng-dev libcli11-dev libxxhash-dev libboost-dev libboost-system-dev libboost-context-dev
)
readonly COMPILE_PACKAGES=(g++ cmake ninja-build ccache "${LIBRARY_PACKAGES[@]}")
readonly TEST_LIBRARY_PACKAGES=(libgtest-dev libgmock-dev librapidcheck-dev)
readonly BUILD_PACKAGES=(
  "${COMPILE_PACKAGES[@]}"
  libtorch-dev libopenblas0-openmp
  "${TEST_LIBRARY_PACKAGES[@]}" libbenchmark-dev python3 python3-pip patch
)
readonly TEST_PACKAGES=(
  clang-14 libclang-rt-14-dev clang-format-19 clang-tidy-19 shellcheck python3 python3-pip python3-pytest
  python3-pytest-subtests python3-torch python3-torchvision python3-sklearn
  python3-pyte python3-yaml python3-kubernetes python3-boto3 libfaketime
  chromium git procps curl
)
# Only root can use these, and only for a cluster (docs/development.md).
readonly CLUSTER_PACKAGES=(
  containerd runc containernetworking-plugins iptables conntrack socat iproute2 util-linux
  gcc libc6-dev openssl python3 python3-kubernetes curl
)
# Images are made without a daemon (docs/development.md).
readonly IMAGE_PACKAGES=(buildah mmdebstrap python3 python3-pip util-linux)
# The programs are compiled for arm64 here; the steps of the Dockerfiles run in the emulator.
readonly ARM64_PACKAGES=(g++-aarch64-linux-gnu qemu-user-static arch-test)
# The oldest Go that builds the servers of the conformance tests (tests/servers).
readonly GO_VERSION=1.26.0

readonly CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/lambdadnn
# The linter of the Python sources (tests/tidy).
ruff_folder() { echo "$CACHE/ruff-$(sed -n 's/^ruff==\([0-9.]*\).*/\1/p' tests/tidy/ruff.txt)"; }

mode=all
case "${1:-}" in
  "") ;;
  --build) mode=build ;;
  --cluster) mode=cluster ;;
  --images) mode=images ;;
  --images-arm64) mode=images-arm64 ;;
  --compile) mode=compile ;;
  --libraries) printf '%s\n' libc6-dev libgomp1 "${LIBRARY_PACKAGES[@]}" "${TEST_LIBRARY_PACKAGES[@]}"; exit 0 ;;
  --check) mode=check ;;
  -h | --help) sed -n '3,14p' "$0" | cut -c3-; exit 0 ;;
  *) echo "error: unknown option $1; see scripts/setup.sh --help" >&2; exit 2 ;;
esac

case "$mode" in
  build) wanted=("${BUILD_PACKAGES[@]}") ;;
  cluster) wanted=("${CLUSTER_PACKAGES[@]}") ;;
  images) wanted=("${IMAGE_PACKAGES[@]}") ;;
  images-arm64) wanted=("${IMAGE_PACKAGES[@]}" "${ARM64_PACKAGES[@]}") ;;
  compile) wanted=("${COMPILE_PACKAGES[@]}") ;;
  *) wanted=("${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}") ;;
esac

missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
  done
}

if ! command -v apt-get >/dev/null; then
  echo "error: this script installs Debian packages, and apt-get is not here;" \
    "install the equivalents of: ${wanted[*]}" >&2
  exit 4
fi

sudo=()
need_root() {
  [ "$(id -u)" = 0 ] && return
  command -v sudo >/dev/null || {
    echo "error: installing packages needs root; run this script as root or install them yourself" >&2
    exit 4
  }
  sudo=(sudo)
}

update_lists() {
  "${sudo[@]}" apt-get update -qq && return
  echo "error: apt-get could not update its package lists, see above; mend /etc/apt/sources.list or the network, then run this again" >&2
  exit 4
}

mapfile -t missing < <(missing_packages "${wanted[@]}")
if [ "$mode" = check ]; then
  [ -x "$(ruff_folder)/bin/ruff" ] || missing+=("$(basename "$(ruff_folder)")")
  ! arrow=$(scripts/arrow.sh path 2>/dev/null) || [ -f "$arrow/version" ] || missing+=("$(basename "$arrow")")
  [ ${#missing[@]} -eq 0 ] && { echo "everything is installed"; exit 0; }
  echo "missing: ${missing[*]}"
  exit 1
fi
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing ${#missing[@]} packages with apt: ${missing[*]}"
  need_root
  update_lists
  if ! "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends "${missing[@]}" >/dev/null; then
    echo "error: apt-get could not install the packages above; see its message, then run this again" >&2
    exit 4
  fi
fi

# Go is needed by nothing but the test servers. A found one is used if it is new enough; else the
# toolchain comes as a Go module through whatever Go the distribution has.
go_is_new_enough() {
  command -v go >/dev/null || return 1
  local have
  have=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null | sed 's/^go//')
  [ "$(printf '%s\n%s\n' "$GO_VERSION" "${have:-0}" | sort -V | head -1)" = "$GO_VERSION" ]
}
if [[ "$mode" = all || "$mode" = cluster ]] && ! go_is_new_enough; then
  cache=$CACHE/go-$GO_VERSION
  if [ ! -x "$cache/bin/go" ]; then
    command -v go >/dev/null || {
      echo "installing golang with apt to fetch Go $GO_VERSION with it"
      need_root
      update_lists
      if ! "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
        --no-install-recommends golang-go >/dev/null; then
        echo "error: apt-get could not install golang-go; see its message, or put Go $GO_VERSION on the PATH, then run this again" >&2
        exit 4
      fi
    }
    echo "fetching Go $GO_VERSION into $cache"
    module=golang.org/toolchain@v0.0.1-go$GO_VERSION.linux-$(dpkg --print-architecture)
    # What it says stands in its JSON, also when it fails.
    if ! answer=$(cd / && GOFLAGS=-mod=mod go mod download -json "$module"); then
      why=$(sed -n 's/^\t"Error": "\(.*\)",\{0,1\}$/\1/p' <<<"$answer" | sed 's/\\"/"/g')
      echo "error: Go $GO_VERSION could not be fetched: ${why:-see above}; is the Go module proxy (GOPROXY) reachable? Or put Go $GO_VERSION on the PATH" >&2
      exit 4
    fi
    directory=$(sed -n 's/^\t"Dir": "\(.*\)",/\1/p' <<<"$answer")
    mkdir -p "$(dirname "$cache")"
    rm -rf "$cache.new"
    cp -r "$directory" "$cache.new"
    chmod -R u+w "$cache.new"
    chmod +x "$cache.new"/bin/* "$cache.new"/pkg/tool/*/* 2>/dev/null || true
    mv "$cache.new" "$cache"
  fi
  echo "Go $GO_VERSION: $cache/bin/go"
fi

# What reads Parquet files, which no package of Debian 12 has. Without it a build refuses them; the tests want it.
if [[ "$mode" = all || "$mode" = build ]] && scripts/arrow.sh path >/dev/null && ! scripts/arrow.sh fetch; then
  [ "$mode" = build ] || exit 4
  echo "going on without it: Parquet files will be refused"
fi

if [ "$mode" = all ] && [ ! -x "$(ruff_folder)/bin/ruff" ]; then
  folder=$(ruff_folder)
  echo "fetching ruff into $folder"
  mkdir -p "$CACHE"
  work=$(mktemp -d "$folder.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  if ! python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --no-cache-dir \
    --no-deps --require-hashes --only-binary :all: --target "$work/new" -r tests/tidy/ruff.txt >&2; then
    echo "error: ruff could not be fetched, see above; is a package index of Python reachable?" >&2
    exit 4
  fi
  rm -rf "$folder"
  mv "$work/new" "$folder"
fi

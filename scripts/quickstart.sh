#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From nothing but this repository to a trained network: installs what is missing, builds, renders the
# demo data and runs examples/quickstart/job.yaml on this machine. Extra arguments go to `lambdadnn run`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ "${1:-}" = -h ] || [ "${1:-}" = --help ]; then
  sed -n '3,4p' "$0" | cut -c3-
  exit 0
fi

scripts/setup.sh --build
# Configuring takes seconds and building nothing takes one more, so a prepared machine goes straight on.
if [ ! -f build/release/build.ninja ]; then
  echo "configuring (build/release)"
  mkdir -p build
  if ! cmake --preset release >build/configure.log 2>&1; then
    cat build/configure.log >&2
    exit 4
  fi
fi
programs=(lambdadnn lambdadnn-worker lambdadnn-server lambdadnn-dataset)
if ! cmake --build build/release --target "${programs[@]}" -- -n | grep -q 'no work to do'; then
  echo "building ${programs[*]}"
  cmake --build build/release --target "${programs[@]}"
fi

data=examples/quickstart/digits
if [ ! -f "$data/t10k-labels-idx1-ubyte" ]; then
  build/release/bin/lambdadnn dataset render-digits --out "$data" --train 12000 --test 2000 --seed 1
fi
exec build/release/bin/lambdadnn run examples/quickstart/job.yaml "$@"

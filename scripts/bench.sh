#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the benchmarks, each figure as a ratio within one run where that is possible.
#
#   scripts/bench.sh            all of them
#   scripts/bench.sh plan merge only these (see --list)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

names() { sed -n 's/^ *lambdadnn_bench(\([a-z_]*\)_bench.*/\1/p' tests/bench/CMakeLists.txt; }
case "${1:-}" in
  -h | --help) sed -n '3,6p' "$0" | cut -c3-; exit 0 ;;
  --list) names; exit 0 ;;
esac
wanted=("$@")
[ ${#wanted[@]} -gt 0 ] || mapfile -t wanted < <(names)

[ -f build/release/build.ninja ] || cmake --preset release >/dev/null
cmake --build build/release --target "${wanted[@]/%/_bench}" >build/bench.build.log 2>&1 || {
  tail -40 build/bench.build.log
  exit 1
}
for name in "${wanted[@]}"; do
  echo "== $name: build/release/bin/${name}_bench"
  "build/release/bin/${name}_bench"
  [ "$name" != step ] || /usr/bin/python3 tests/bench/step_python.py
done

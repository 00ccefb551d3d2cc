#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the benchmarks, each figure as a ratio within one run where that is possible.
#
#   scripts/bench.sh            all of them but cluster
#   scripts/bench.sh plan merge only these (see --list)
#   scripts/bench.sh cluster    jobs on a real cluster, which is started only when it is named: as root, once
#                               scripts/cluster.sh build is done; LAMBDADNN_CLUSTER_DIR and
#                               LAMBDADNN_IMAGES=kept as for the tests (docs/development.md)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

names() { sed -n 's/^ *lambdadnn_bench(\([a-z_]*\)_bench.*/\1/p' tests/bench/CMakeLists.txt; }
case "${1:-}" in
  -h | --help) sed -n '3,9p' "$0" | cut -c3-; exit 0 ;;
  --list) names; echo cluster; exit 0 ;;
esac
wanted=() cluster=0
for name in "$@"; do
  if [ "$name" = cluster ]; then cluster=1; else wanted+=("$name"); fi
done
[ $# -gt 0 ] || mapfile -t wanted < <(names)

figures_of_cluster() {
  [ "$(id -u)" = 0 ] || { echo "error: the cluster needs root" >&2; return 4; }
  local part
  for part in kube-apiserver kubelet knative-controller minio; do
    scripts/test_servers.sh path "$part" >/dev/null ||
      { echo "error: $part is not built; run scripts/cluster.sh build" >&2; return 4; }
  done
  echo "== cluster: tests/bench/cluster_figures.py"
  /usr/bin/python3 -m pytest tests/bench/cluster_figures.py --preset release
}
if [ ${#wanted[@]} = 0 ]; then
  figures_of_cluster
  exit
fi

[ -f build/release/build.ninja ] || cmake --preset release >/dev/null
targets=("${wanted[@]/%/_bench}")
[[ " ${wanted[*]} " != *" direct "* ]] || targets+=(lambdadnn lambdadnn-worker lambdadnn-server)
cmake --build build/release --target "${targets[@]}" >build/bench.build.log 2>&1 || {
  tail -40 build/bench.build.log
  exit 1
}
for name in "${wanted[@]}"; do
  echo "== $name: build/release/bin/${name}_bench"
  if [ "$name" = direct ]; then
    /usr/bin/python3 tests/bench/gloo_python.py
    /usr/bin/python3 tests/bench/ddp_python.py
  else
    # Of steps, step_python.py runs the others below.
    options=()
    [ "$name" != step ] || options=(--benchmark_filter=-^alone/)
    "build/release/bin/${name}_bench" "${options[@]}"
  fi
  [ "$name" != step ] || /usr/bin/python3 tests/bench/step_python.py
  [ "$name" != exchange ] || /usr/bin/python3 tests/bench/lambdaml_python.py
done
[ "$cluster" = 0 ] || figures_of_cluster

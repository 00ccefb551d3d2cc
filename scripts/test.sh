#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs, builds and runs the tests.
#
#   scripts/test.sh                 the ci set: a share of every tier, each within its budget
#   scripts/test.sh --all           everything, without budgets
#   scripts/test.sh --tier NAME     one tier (its ci share; with --all, the whole of it)
#   scripts/test.sh --list          the tiers, their budgets and what their shares are
#   --no-setup                      do not look at the installed packages
#
# Prints what ran, how long it took, and what did not run and why; ends with `N passed, N failed`.
# Exit code 0 only when every test that was asked for has run and passed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# tier | budget of the ci share in minutes, after building | ci share | what only --all adds
readonly TIERS='
unit        |3 |all unit tests                                             |
tidy        |2 |all                                                        |
conformance |3 |object stores: memory, files, strict S3 stand-in           |
simulation  |6 |600 fixed seeds, planted bugs, 5 h of jobs, 2 min of seeds|a day of jobs, 10 minutes of fresh seeds, each planted bug within 10,000
integration |25|kills, UCI digits, MinIO, bad input, CRD, operator           |20 kills, versitygw, every store operation of an iteration, the operator killed at every write
timing      |4 |none: needs a quiet machine; --tier timing: 3 runs of two plans|predicted against actual time, median of 5 runs
sanitizers  |4 |address+undefined: parsers, readers, transport, servers    |all unit and conformance tests; thread sanitizer; a training with LibTorch
fuzz        |5 |each target 20 s                                           |each target 120 s
e2e         |1 |none yet; --tier e2e: a cluster, jobs on pods of Knative    |
'

all=0 setup=1 wanted=()
list() {
  printf '%-12s %-7s %-62s %s\n' TIER BUDGET 'CI SHARE' 'ONLY WITH --all'
  echo "$TIERS" | while IFS='|' read -r tier budget share extra; do
    [ -n "$tier" ] && printf '%-12s %3s min %-62s %s\n' "$(echo $tier)" "$budget" "$(echo $share)" "$extra"
  done
}
while [ $# -gt 0 ]; do
  case "$1" in
    --all) all=1 ;;
    --no-setup) setup=0 ;;
    --list) list; exit 0 ;;
    --tier)
      shift
      if ! echo "$TIERS" | grep -q "^${1:-?} *|"; then
        echo "error: unknown tier '${1:-}'; see scripts/test.sh --list" >&2
        exit 2
      fi
      wanted+=("$1")
      ;;
    -h | --help) sed -n '3,13p' "$0" | cut -c3-; exit 0 ;;
    *) echo "error: unknown option $1; see scripts/test.sh --help" >&2; exit 2 ;;
  esac
  shift
done
if [ ${#wanted[@]} -eq 0 ]; then
  mapfile -t wanted < <(echo "$TIERS" | sed -n 's/^\([a-z0-9]*\) *|.*/\1/p')
  # Times mean nothing where others use the machine, as where ci runs; a cluster takes long to build.
  [ "$all" = 1 ] || mapfile -t wanted < <(printf '%s\n' "${wanted[@]}" | grep -vxE 'timing|e2e')
fi

passed=0 failed=0 summary=()
note() { summary+=("$(printf '%-12s %s' "$1" "$2")"); }
count() { passed=$((passed + $1)); failed=$((failed + $2)); }
budget_of() { echo "$TIERS" | sed -n "s/^$1 *|\([0-9]*\) *|.*/\1/p"; }
# Seconds that a command of this tier may take.
limit_of() { [[ "$all" = 1 || "$1" = e2e ]] && echo 21600 || echo $(($(budget_of "$1") * 60)); }

# build PRESET [TARGET...]: configures once, builds, counts a failure when it cannot.
declare -A built
build() {
  local preset=$1
  shift
  [ "${built[$preset:$*]:-}" = 1 ] && return 0
  local begin=$SECONDS
  mkdir -p build
  if ! cmake --preset "$preset" >"build/$preset.configure.log" 2>&1; then
    tail -30 "build/$preset.configure.log"
    return 1
  fi
  if ! cmake --build "build/$preset" ${*:+--target "$@"} >"build/$preset.build.log" 2>&1; then
    grep -E 'error|FAILED|warning' -A4 "build/$preset.build.log" | head -60
    return 1
  fi
  built[$preset:$*]=1
  note build "$preset${*:+ ($# targets)}: $((SECONDS - begin)) s"
}

# run_ctest TIER PRESET CTEST_ARGUMENTS...: one ctest run within the tier's budget.
run_ctest() {
  local tier=$1 preset=$2 begin=$SECONDS log
  shift 2
  log=build/$preset.$tier.log
  timeout "$(limit_of "$tier")" ctest --test-dir "build/$preset" --output-on-failure "$@" 2>&1 | tee "$log" | grep -vE '^(Internal ctest|Test project)'
  local code=${PIPESTATUS[0]} line total bad
  line=$(grep -E 'tests? passed, [0-9]+ tests? failed out of' "$log" | tail -1)
  if [ -z "$line" ]; then
    count 0 1
    if [ "$code" = 124 ]; then
      note "$tier" "FAILED: over its budget of $(budget_of "$tier") minutes"
    else
      note "$tier" "FAILED: ctest ran no test (see $log)"
    fi
    return
  fi
  total=$(echo "$line" | sed 's/.*out of //')
  bad=$(echo "$line" | sed 's/.*passed, \([0-9]*\) .*/\1/')
  count $((total - bad)) "$bad"
  note "$tier" "$preset: $((total - bad)) passed, $bad failed, $((SECONDS - begin)) s"
}

# fail TIER WHY: a tier that could not run is a failure, never a silent skip.
fail() { count 0 1; note "$1" "FAILED: $2"; }

# Labels: a test carries its tier, and `long` when only --all runs it.
labels() { [ "$all" = 1 ] && echo "-L ^$1\$" || echo "-L ^$1\$ -LE ^long\$"; }

tier_simple() {  # TIER PARALLELISM
  build release || { fail "$1" "the build failed"; return; }
  # shellcheck disable=SC2046
  run_ctest "$1" release $(labels "$1") -j "$2"
}

tier_simulation() {
  tier_simple simulation 2
  local simulate=build/release/bin/simulate minutes=2 begin=$SECONDS bug jobs=() bugs=() i
  [ -x "$simulate" ] || return 0  # counted above
  [ "$all" = 1 ] && minutes=10
  if "$simulate" --minutes "$minutes" >build/simulate.log; then count 1 0; else count 0 1; fi
  grep -vE '^ *(replay|[a-z-]+ +[a-z_]+ +(before|after)) ' build/simulate.log
  note simulation "$(grep -oE '^[0-9]+ passed, [0-9]+ failed' build/simulate.log) of the fresh seeds, $((SECONDS - begin)) s"
  [ "$all" = 1 ] || return 0
  begin=$SECONDS
  for bug in $("$simulate" --list-bugs) ''; do
    if [ ${#jobs[@]} -eq 2 ] || [ -z "$bug" ]; then
      for i in "${!jobs[@]}"; do
        if wait "${jobs[$i]}"; then count 1 0; else fail simulation "${bugs[$i]} was not found"; fi
      done
      jobs=() bugs=()
    fi
    [ -n "$bug" ] || continue
    "$simulate" --seeds 1..10000 --expect-failure --bug "$bug" >"build/simulate.$bug.log" &
    jobs+=($!) bugs+=("$bug")
  done
  note simulation "planted bugs searched: $((SECONDS - begin)) s"
}

tier_integration() {
  local servers='minio versitygw etcd kubernetes promtool'
  [ "$all" = 1 ] && servers="$servers kube-apiserver-oldest"
  # shellcheck disable=SC2086
  if ! scripts/test_servers.sh build $servers; then
    fail integration "the test servers could not be built"
    return
  fi
  tier_simple integration 2
}

# Last of those that need the machine to themselves.
tier_timing() { tier_simple timing 1; }

# The whole of it even without --all: who names it wants the cluster.
tier_e2e() {
  if ! scripts/setup.sh --cluster || ! scripts/cluster.sh build; then
    fail e2e "the parts of the cluster could not be installed or built"
    return
  fi
  build release || { fail e2e "the build failed"; return; }
  run_ctest e2e release -L '^e2e$' -j 1
}

# What reads bytes from outside, and the threads under it: quick to build.
readonly SANITIZED='base_test json_test plan_json_test protocol_test data_test http_server_test transport_test checkpoint_test'
tier_sanitizers() {
  if [ "$all" = 0 ]; then
    # shellcheck disable=SC2086
    build asan-ubsan $SANITIZED || { fail sanitizers "the asan-ubsan build failed"; return; }
    run_ctest sanitizers asan-ubsan -R "^(${SANITIZED// /|})\$" -j 2
    return
  fi
  build asan-ubsan || { fail sanitizers "the asan-ubsan build failed"; return; }
  run_ctest sanitizers asan-ubsan -L '^(unit|conformance)$' -j 2
  build tsan || { fail sanitizers "the tsan build failed"; return; }
  run_ctest sanitizers tsan -L '^(unit|conformance)$' -j 2
  sanitized_training
}

# The functions alone are built with the address sanitizer and LibTorch; the command is release's.
sanitized_training() {
  build release lambdadnn lambdadnn-dataset && build asan-torch lambdadnn-worker lambdadnn-server ||
    { fail sanitizers "the asan-torch build failed"; return; }
  local begin=$SECONDS
  if python3 tests/integration/sanitized_run_test.py build/release/bin build/asan-torch/bin; then
    count 1 0
    note sanitizers "training with LibTorch: 1 passed, $((SECONDS - begin)) s"
  else
    fail sanitizers "the training with LibTorch"
  fi
}

tier_fuzz() {
  local targets
  mapfile -t targets < <(sed -n 's/^lambdadnn_fuzz(\([a-z0-9_]*\) .*/\1/p' tests/fuzz/CMakeLists.txt)
  build fuzz "${targets[@]}" || { fail fuzz "the fuzz build failed"; return; }
  local seconds=20 target name any=0
  [ "$all" = 1 ] && seconds=120
  local jobs=() names=()
  for target in build/fuzz/bin/*_fuzz; do
    [ -x "$target" ] || continue
    any=1
    name=$(basename "$target" _fuzz)
    mkdir -p "build/fuzz/corpus/$name"
    "$target" -max_total_time=$seconds -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
      -artifact_prefix="build/fuzz/crash-$name-" "build/fuzz/corpus/$name" \
      $( [ -d "tests/fuzz/corpus/$name" ] && echo "tests/fuzz/corpus/$name") \
      >"build/fuzz/$name.log" 2>&1 &
    jobs+=($!) names+=("$name")
    # Two at a time: as many as this machine is assumed to have cores.
    if [ ${#jobs[@]} -eq 2 ]; then collect_fuzz; fi
  done
  collect_fuzz
  [ "$any" = 1 ] || fail fuzz "no target was built"
}
collect_fuzz() {
  local i
  for i in "${!jobs[@]}"; do
    if wait "${jobs[$i]}"; then
      count 1 0
      note fuzz "${names[$i]}: $(grep -oE 'number_of_executed_units: [0-9]+' "build/fuzz/${names[$i]}.log" | grep -oE '[0-9]+$') runs"
    else
      tail -30 "build/fuzz/${names[$i]}.log"
      fail fuzz "${names[$i]} (input in build/fuzz/crash-${names[$i]}-*)"
    fi
  done
  jobs=() names=()
}

start=$SECONDS
if [ "$setup" = 1 ]; then
  scripts/setup.sh || { echo "error: setup failed" >&2; echo "0 passed, 1 failed"; exit 4; }
fi
for tier in "${wanted[@]}"; do
  echo "== $tier"
  case "$tier" in
    unit | tidy | conformance) tier_simple "$tier" 2 ;;
    *) "tier_$tier" ;;
  esac
done

echo
echo "== what ran"
printf '%s\n' "${summary[@]}"
if [ "$all" = 0 ]; then
  echo "== what did not run"
  for tier in $(echo "$TIERS" | sed -n 's/^\([a-z0-9]*\) *|.*/\1/p'); do
    extra=$(echo "$TIERS" | sed -n "s/^$tier *|[^|]*|[^|]*|\(..*\)/\1/p")
    case " ${wanted[*]} " in
      *" $tier "*) [ -z "$extra" ] || echo "$tier: $extra (only with --all)" ;;
      *)
        case "$tier" in
          timing) echo "timing: needs a quiet machine (--tier timing, --all)" ;;
          e2e) echo "e2e: needs root and a cluster's parts (--tier e2e, --all)" ;;
          *) echo "$tier: not asked for" ;;
        esac
        ;;
    esac
  done
fi
echo "in all: $((SECONDS - start)) s"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs, builds and runs the tests.
#
#   scripts/test.sh                 the ci set: a share of every tier, each with its budget
#   scripts/test.sh --all           everything, without budgets
#   scripts/test.sh --tier NAME     one tier (its ci share; with --all, the whole of it)
#   scripts/test.sh --list          the tiers, their budgets and what their shares are
#   --no-setup                      do not look at the installed packages
#
# Prints what ran, how long it took, and what did not run and why (tests that skipped themselves
# among it); ends with `N passed, N failed`. Exit codes: 0 nothing failed and something passed, 1 a
# failure, 2 usage, 4 something could not be installed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# tier | minutes that its ci share should take | ci share | what only --all adds
# A tier that takes longer says so. It is ended, as a failure, at twice its budget and HANG_MINUTES:
# other programs on the machine are no bug, and slower machines neither. Building has a budget with a
# warm compiler cache, and is never ended.
# The budgets of the ci set add up to CI_MINUTES at most.
readonly CI_MINUTES=40
readonly HANG_MINUTES=10
readonly TIERS='
build       |4 |what the tiers below need, incl. servers (35 on a bare machine)|
unit        |1 |all unit tests                                             |
tidy        |1 |all                                                        |
conformance |1 |object stores: memory, files, strict S3 stand-in           |
simulation  |4 |600 fixed seeds, planted bugs, 5 h of jobs, 2 min of seeds|a day of jobs, 10 minutes of fresh seeds, each planted bug within 10,000
integration |15|kills, UCI digits, MinIO, bad input, CRD, operator, chart    |20 kills, versitygw, every store operation of an iteration, the operator killed at every write, models on both LibTorch
timing      |4 |none: needs a quiet machine; --tier timing: 3 runs of two plans|median of 5 runs, and of 3 on a cluster
sanitizers  |1 |address+undefined: parsers, readers, transport, servers    |all unit and conformance tests; thread sanitizer; a training with LibTorch
fuzz        |4 |each target 20 s                                           |each target 120 s
e2e         |9 |README on a real cluster, a job in layers, four faults, the end|all faults, limits, isolation, life of a chart, an upgrade; the cluster itself
'

# Where the tests run, real servers are not optional; who runs a program by hand may leave them out.
unset LAMBDADNN_WITHOUT_SERVERS

all=0 setup=1 wanted=()
# Times mean nothing where others use the machine, as where ci runs.
readonly NOT_IN_CI='timing'
tiers() { echo "$TIERS" | sed -n 's/^\([a-z0-9]*\) *|.*/\1/p'; }
budget_of() { echo "$TIERS" | sed -n "s/^$1 *|\([0-9]*\) *|.*/\1/p"; }
ci_minutes() {
  local tier sum=0
  for tier in $(tiers | grep -vxE "$NOT_IN_CI"); do sum=$((sum + $(budget_of "$tier"))); done
  echo "$sum"
}
if [ "$(ci_minutes)" -gt "$CI_MINUTES" ]; then
  echo "error: the budgets of the ci set are $(ci_minutes) minutes, more than the $CI_MINUTES that it may take; lower one in scripts/test.sh" >&2
  exit 2
fi

list() {
  printf '%-12s %-7s %-62s %s\n' TIER BUDGET 'CI SHARE' 'ONLY WITH --all'
  echo "$TIERS" | while IFS='|' read -r tier budget share extra; do
    [ -n "$tier" ] && printf '%-12s %3s min %-62s %s\n' "$(echo $tier)" "$budget" "$(echo $share)" "$extra"
  done
  echo "the ci set in all: $(ci_minutes) of at most $CI_MINUTES minutes"
}
while [ $# -gt 0 ]; do
  case "$1" in
    --all) all=1 ;;
    --no-setup) setup=0 ;;
    --list) list; exit 0 ;;
    --tier)
      shift
      if [ "${1:-}" = build ] || ! tiers | grep -qx -- "${1:-?}"; then
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
  mapfile -t wanted < <(tiers | grep -vx build)
  [ "$all" = 1 ] || mapfile -t wanted < <(printf '%s\n' "${wanted[@]}" | grep -vxE "$NOT_IN_CI")
fi

passed=0 failed=0 summary=() left_out=()
# Of the tier that runs, and of all of them; in seconds.
tier_begin=0 tier_built=0 built_seconds=0
note() { summary+=("$(printf '%-12s %s' "$1" "$2")"); }
count() { passed=$((passed + $1)); failed=$((failed + $2)); }
# Seconds that this tier has run for, without building.
spent() { echo $((SECONDS - tier_begin - tier_built)); }
# Seconds that the next command of this tier may take.
limit_of() {
  if [ "$all" = 1 ]; then echo 21600; return; fi
  local left=$(($(budget_of "$1") * 120 + HANG_MINUTES * 60 - $(spent)))
  echo $((left > 1 ? left : 1))
}
over_budget() { echo "ended after $(spent) s, far beyond its budget of $(budget_of "$1") minutes"; }
# Says so when the seconds are more than the budget.
check_budget() {  # TIER SECONDS
  [[ "$all" = 1 || "$2" -le $(($(budget_of "$1") * 60)) ]] && return
  note "$1" "took $2 s, more than its budget of $(budget_of "$1") minutes"
}
add_built() { tier_built=$((tier_built + $1)) built_seconds=$((built_seconds + $1)); }

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
    add_built $((SECONDS - begin))
    return 1
  fi
  if ! cmake --build "build/$preset" ${*:+--target "$@"} >"build/$preset.build.log" 2>&1; then
    grep -E 'error|FAILED|warning' -A4 "build/$preset.build.log" | head -60
    add_built $((SECONDS - begin))
    return 1
  fi
  add_built $((SECONDS - begin))
  built[$preset:$*]=1
  note build "$preset${*:+ ($# targets)}: $((SECONDS - begin)) s"
}

# run_ctest TIER PRESET CTEST_ARGUMENTS...: one ctest run within the tier's limit.
run_ctest() {
  local tier=$1 preset=$2 begin=$SECONDS log what
  shift 2
  log=build/$preset.$tier.log
  timeout "$(limit_of "$tier")" ctest --test-dir "build/$preset" --output-on-failure "$@" 2>&1 | tee "$log" | grep -vE '^(Internal ctest|Test project)'
  local code=${PIPESTATUS[0]} line total bad skipped
  line=$(grep -E 'tests? passed, [0-9]+ tests? failed out of' "$log" | tail -1)
  if [ -z "$line" ]; then
    count 0 1
    if [ "$code" = 124 ]; then
      note "$tier" "FAILED: $(over_budget "$tier")"
    else
      note "$tier" "FAILED: ctest ran no test (see $log)"
    fi
    return
  fi
  total=$(echo "$line" | sed 's/.*out of //')
  bad=$(echo "$line" | sed 's/.*passed, \([0-9]*\) .*/\1/')
  # Programs that were skipped as a whole; ctest takes them for passed.
  skipped=$(grep -cE 'Test +#[0-9]+: .*\*\*\*Skipped' "$log")
  count $((total - bad - skipped)) "$bad"
  what="$preset: $((total - bad - skipped)) passed, $bad failed"
  [ "$skipped" = 0 ] || what="$what, $skipped skipped"
  note "$tier" "$what, $((SECONDS - begin)) s"
  while read -r what; do
    left_out+=("$tier: $preset: $what")
  done < <(python3 tests/support/skipped_tests.py "build/$preset" "$log" || echo "the list of skipped tests could not be made")
}

# fail TIER WHY: a tier that could not run is a failure, never a silent skip.
fail() { count 0 1; note "$1" "FAILED: $2"; }

# Labels: a test carries its tier, `long` when only --all runs it, and `share` when it is a part of
# one of those, which --all need not run twice.
labels() { [ "$all" = 1 ] && echo "-L ^$1\$ -LE ^share\$" || echo "-L ^$1\$ -LE ^long\$"; }

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
  timeout "$(limit_of simulation)" "$simulate" --minutes "$minutes" >build/simulate.log
  case $? in
    0) count 1 0 ;;
    124) fail simulation "fresh seeds $(over_budget simulation)" ;;
    *) count 0 1 ;;
  esac
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
  local servers='minio versitygw etcd kubernetes promtool helm kubeconform kube-score'
  [ "$all" = 1 ] && servers="$servers kube-apiserver-oldest"
  local begin=$SECONDS ready=0
  # shellcheck disable=SC2086
  scripts/test_servers.sh build $servers && ready=1
  add_built $((SECONDS - begin))
  if [ "$ready" = 0 ]; then
    fail integration "the test servers could not be built"
    return
  fi
  tier_simple integration 2
  [ "$all" = 0 ] || tests_of_models_upstream
}
# What computes with LibTorch, on the one that the worker's image has.
tests_of_models_upstream() {
  scripts/setup.sh --images && scripts/libtorch.sh fetch &&
    build upstream torch_model_test model_probe lambdadnn lambdadnn-worker lambdadnn-server lambdadnn-dataset ||
    { fail integration "the build with the upstream LibTorch failed"; return; }
  run_ctest integration upstream -R torch -j 2
}

# Last of those that need the machine to themselves.
tier_timing() {
  build release || { fail timing "the build failed"; return; }
  local but=()
  if [ "$all" = 1 ] && ! cluster_ready timing; then but=(-E '^cluster_'); fi
  # shellcheck disable=SC2046
  run_ctest timing release $(labels timing) "${but[@]}" -j 1
}

# A cluster's nodes are network, mount and process namespaces.
can_run_cluster() { unshare --net --mount --pid --fork true 2>/dev/null; }
# What the cluster's tests alone need is built behind the other tiers, which leave processors idle.
parts_job=''
begin_parts() {
  [[ " ${wanted[*]} " = *" e2e "* || ("$all" = 1 && " ${wanted[*]} " = *" timing "*) ]] &&
    can_run_cluster || return 0
  mkdir -p build
  (
    scripts/setup.sh --cluster && scripts/setup.sh --images || exit 1
    nice -n 19 scripts/cluster.sh build && nice -n 19 scripts/libtorch.sh fetch
  ) >build/cluster.build.log 2>&1 &
  parts_job=$!
  trap '[ -z "$parts_job" ] || kill "$parts_job" 2>/dev/null' EXIT
}
# cluster_ready TIER: everything that its tests on a cluster need is there; else says why it is not.
cluster_ready() {
  if ! can_run_cluster; then
    left_out+=("$1: on a cluster: this user may not make network, mount and process namespaces; run it as root")
    return 1
  fi
  local begin=$SECONDS ready=1
  [ -z "$parts_job" ] || wait "$parts_job" || ready=0
  [ "$ready" = 0 ] || scripts/test_servers.sh build helm versitygw || ready=0
  add_built $((SECONDS - begin))
  if [ "$ready" = 0 ]; then
    tail -20 build/cluster.build.log
    fail "$1" "the parts of the cluster could not be installed or built"
    return 1
  fi
  parts_job=''
  build release && build upstream lambdadnn-worker || { fail "$1" "the build failed"; return 1; }
}

tier_e2e() {
  cluster_ready e2e || return
  # shellcheck disable=SC2046
  run_ctest e2e release $(labels e2e) -j 1
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
  local preset
  export TSAN_OPTIONS="suppressions=$PWD/tests/support/tsan_suppressions.txt"
  for preset in asan-ubsan tsan; do
    if build "$preset" unit_tests conformance_tests; then
      run_ctest sanitizers "$preset" -L '^(unit|conformance)$' -j 2
    else
      fail sanitizers "the $preset build failed"
    fi
  done
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
    timeout "$(limit_of fuzz)" "$target" -max_total_time=$seconds -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
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
  local i code
  for i in "${!jobs[@]}"; do
    wait "${jobs[$i]}"
    code=$?
    if [ "$code" = 0 ]; then
      count 1 0
      note fuzz "${names[$i]}: $(grep -oE 'number_of_executed_units: [0-9]+' "build/fuzz/${names[$i]}.log" | grep -oE '[0-9]+$') runs"
    elif [ "$code" = 124 ]; then
      fail fuzz "${names[$i]} $(over_budget fuzz)"
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
begin_parts
for tier in "${wanted[@]}"; do
  echo "== $tier"
  tier_begin=$SECONDS tier_built=0
  case "$tier" in
    unit | tidy | conformance) tier_simple "$tier" 2 ;;
    *) "tier_$tier" ;;
  esac
  check_budget "$tier" "$(spent)"
done
check_budget build "$built_seconds"

echo
echo "== what ran"
printf '%s\n' "${summary[@]}"
[[ "$all" = 1 && ${#left_out[@]} -eq 0 ]] || echo "== what did not run"
[ ${#left_out[@]} -eq 0 ] || printf '%s\n' "${left_out[@]}"
if [ "$all" = 0 ]; then
  for tier in $(tiers | grep -vx build); do
    extra=$(echo "$TIERS" | sed -n "s/^$tier *|[^|]*|[^|]*|\(..*\)/\1/p")
    case " ${wanted[*]} " in
      *" $tier "*) [ -z "$extra" ] || echo "$tier: $extra (only with --all)" ;;
      *)
        case "$tier" in
          timing) echo "timing: needs a quiet machine (--tier timing, --all)" ;;
          *) echo "$tier: not asked for" ;;
        esac
        ;;
    esac
  done
fi
echo "in all: $((SECONDS - start)) s"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]

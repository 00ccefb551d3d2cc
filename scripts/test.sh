#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs, builds and runs the tests.
#
#   scripts/test.sh                 the ci set: a share of every tier, each with its budget
#   scripts/test.sh --all           everything, without budgets
#   scripts/test.sh --tier NAME     one tier (its ci share; with --all, the whole of it)
#   scripts/test.sh --without NAME  without this tier, which is said; what cannot run fails otherwise
#   scripts/test.sh --list          the tiers, their budgets and what their shares are
#   --deadline MINUTES              end what runs then, and fail: 85, with --all none, unless told
#   --no-cache                      run also what passed with the same inputs before
#   --no-setup                      do not check the installed packages
#
# Prints what ran, how long it took, the slowest tests, and what did not run and why (tests that
# skipped themselves among it); ends with `N passed, N failed`. What passed with the same inputs
# before is not run again but for --all: it counts as passed, and is told as cached. Exit codes: 0
# nothing failed and something passed, 1 a failure, 2 usage, 4 something could not be installed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

# tier | seconds that its ci share should take | ci share | what only --all adds
# A tier that takes longer says so. It is ended, as a failure, at twice its budget and HANG_MINUTES:
# other programs on the machine are no bug, and slower machines neither. Building has a budget with a
# warm compiler cache, and is never ended before the deadline.
# The budgets of the ci set add up to CI_MINUTES at most, where everything was built before on the
# machine; DEADLINE_MINUTES end it on a bare one too. No test of it takes more than TEST_SECONDS.
readonly CI_MINUTES=15 DEADLINE_MINUTES=85 HANG_MINUTES=10 TEST_SECONDS=300
readonly TIERS='
build       |90 |what the tiers below need, incl. servers (more on a bare machine)|
unit        |50 |all unit tests                                             |
tidy        |45 |all; clang-tidy for 20 s, of what the last commit changed   |clang-tidy of every file
conformance |5  |object stores: memory, files, strict S3 stand-in           |
simulation  |80 |600 fixed seeds and those found, planted bugs, hours of jobs; 30 s of seeds, not counted|a day of jobs, 10 minutes of fresh seeds, each planted bug within 10,000
integration |290|kills, UCI digits, MinIO, bad input, CRD, operator, chart; an eighth of others, by commit|20 kills, versitygw, every store operation of an iteration, the operator killed at every write, models on both LibTorch
timing      |240|none: needs a quiet machine; --tier timing: 3 runs of two plans|median of 5 runs, and of 3 on a cluster
sanitizers  |10 |address+undefined: parsers, readers, transport, servers    |all unit and conformance tests, 50 seeds of the simulator; thread sanitizer; a training with LibTorch
fuzz        |5  |every input of the corpora under address+undefined         |each target fuzzed for 120 s
e2e         |325|README on a real cluster, a job in layers and one behind OpenFaaS, two faults, the end|all faults, limits, isolation, tenants, life of a chart, an upgrade; the cluster itself; images, also for arm64
'

# Where the tests run, real servers are not optional; who runs a program by hand may leave them out.
unset LAMBDADNN_WITHOUT_SERVERS

all=0 setup=1 remember=1 deadline='' wanted=() without=()
# Times mean nothing where others use the machine, as where ci runs.
readonly NOT_IN_CI='timing'
tiers() { echo "$TIERS" | sed -n 's/^\([a-z0-9]*\) *|.*/\1/p'; }
budget_of() { echo "$TIERS" | sed -n "s/^$1 *|\([0-9]*\) *|.*/\1/p"; }
ci_seconds() {
  local tier sum=0
  for tier in $(tiers | grep -vxE "$NOT_IN_CI"); do sum=$((sum + $(budget_of "$tier"))); done
  echo "$sum"
}
if [ "$(ci_seconds)" -gt $((CI_MINUTES * 60)) ]; then
  echo "error: the budgets of the ci set are $(ci_seconds) s, more than the $CI_MINUTES minutes that it may take; lower one in scripts/test.sh" >&2
  exit 2
fi

list() {
  printf '%-12s %-7s %-62s %s\n' TIER BUDGET 'CI SHARE' 'ONLY WITH --all'
  echo "$TIERS" | sed 's/ *| */|/g' | while IFS='|' read -r tier budget share extra; do
    [ -n "$tier" ] && printf '%-12s %3s s   %-62s %s\n' "$tier" "$budget" "$share" "$extra"
  done
  echo "the ci set in all: $(ci_seconds) s of at most $CI_MINUTES minutes; it is ended after $DEADLINE_MINUTES"
}
need_tier() {
  [ "${1:-}" != build ] && tiers | grep -qx -- "${1:-?}" && return
  echo "error: unknown tier '${1:-}'; see scripts/test.sh --list" >&2
  exit 2
}
while [ $# -gt 0 ]; do
  case "$1" in
    --all) all=1 ;;
    --no-setup) setup=0 ;;
    --no-cache) remember=0 ;;
    --list) list; exit 0 ;;
    --tier) shift; need_tier "${1:-}"; wanted+=("$1") ;;
    --without) shift; need_tier "${1:-}"; without+=("$1") ;;
    --deadline)
      shift
      if [[ ! "${1:-}" =~ ^[1-9][0-9]{0,4}$ ]]; then
        echo "error: --deadline '${1:-}' is no whole number of minutes; write --deadline 40" >&2
        exit 2
      fi
      deadline=$1
      ;;
    -h | --help) sed -n '3,17p' "$0" | cut -c3-; exit 0 ;;
    *) echo "error: unknown option $1; see scripts/test.sh --help" >&2; exit 2 ;;
  esac
  shift
done
if [ ${#wanted[@]} -eq 0 ]; then
  mapfile -t wanted < <(tiers | grep -vx build)
  [ "$all" = 1 ] || mapfile -t wanted < <(printf '%s\n' "${wanted[@]}" | grep -vxE "$NOT_IN_CI")
fi
is_left_out() { [[ " ${without[*]} " = *" $1 "* ]]; }
[ "$all" = 1 ] && remember=0 || deadline=${deadline:-$DEADLINE_MINUTES}

start=$SECONDS
passed=0 failed=0 cached=0 summary=() left_out=()
# Of the tier that runs, and of all of them; in seconds.
tier_begin=0 tier_built=0 built_seconds=0
note() { summary+=("$(printf '%-12s %s' "$1" "$2")"); }
count() { passed=$((passed + $1)); failed=$((failed + $2)); }
# Seconds until the deadline; many without one.
remaining() { [ -n "$deadline" ] && echo $((deadline * 60 - (SECONDS - start))) || echo 86400; }
is_over() { [ "$(remaining)" -le 0 ]; }
# Runs a command until the deadline. Behind this script, which would not hear of an interruption before
# the command's end otherwise.
until_deadline() {
  is_over && return 124
  timeout --kill-after=10 "$(remaining)" "$@" &
  wait $!
}
parts_job=''  # see begin_parts
end_parts() { [ -z "$parts_job" ] || kill -- "-$parts_job" 2>/dev/null; }
interrupted() {
  # shellcheck disable=SC2046
  kill $(jobs -p) 2>/dev/null
  wait
  end_parts
  exit 130
}
trap interrupted INT TERM
trap end_parts EXIT
# Seconds that this tier has run for, without building.
spent() { echo $((SECONDS - tier_begin - tier_built)); }
# Seconds that the next command of this tier may take.
limit_of() {
  local left most
  most=$(remaining)
  [ "$all" = 1 ] && left=21600 || left=$(($(budget_of "$1") * 2 + HANG_MINUTES * 60 - $(spent)))
  [ "$left" -lt "$most" ] || left=$most
  echo $((left > 1 ? left : 1))
}
over_budget() {
  if is_over; then echo "ended after $(spent) s: the deadline of $deadline minutes was reached"; return; fi
  echo "ended after $(spent) s, far beyond its budget of $(budget_of "$1") s"
}
# Says so when the seconds are more than the budget.
check_budget() {  # TIER SECONDS
  [[ "$all" = 1 || "$2" -le $(budget_of "$1") ]] && return
  note "$1" "took $2 s, more than its budget of $(budget_of "$1") s"
}
add_built() { tier_built=$((tier_built + $1)) built_seconds=$((built_seconds + $1)); }
mkdir -p build
readonly TIMES=build/test_times  # lines of seconds, tier, test
: >"$TIMES"

# build PRESET [TARGET...]: configures once, builds, counts a failure when it cannot.
declare -A built
build() {
  local preset=$1
  shift
  [ "${built[$preset:$*]:-}" = 1 ] && return 0
  local begin=$SECONDS targets=()
  if ! until_deadline cmake --preset "$preset" >"build/$preset.configure.log" 2>&1; then
    tail -30 "build/$preset.configure.log"
    add_built $((SECONDS - begin))
    return 1
  fi
  [ $# = 0 ] || targets=(--target "$@")
  if ! until_deadline cmake --build "build/$preset" "${targets[@]}" >"build/$preset.build.log" 2>&1; then
    grep -E 'error|FAILED|warning' -A4 "build/$preset.build.log" | head -60
    add_built $((SECONDS - begin))
    return 1
  fi
  add_built $((SECONDS - begin))
  built[$preset:$*]=1
  note build "$preset${*:+ ($# targets)}: $((SECONDS - begin)) s"
}

# run_ctest TIER PRESET [--also ARGUMENTS] CTEST_ARGUMENTS...: one ctest run within the tier's limit.
run_ctest() {
  local tier=$1 preset=$2 begin=$SECONDS options=() line name what
  shift 2
  [ "$1" = --also ] && { options+=("$1" "$2"); shift 2; }
  [ "$all" = 1 ] || options+=(--test-limit "$TEST_SECONDS")
  [[ "$remember" = 1 && " $REMEMBERED " = *" $tier "* ]] && options+=(--remember)
  local results=build/$preset.$tier.json
  rm -f "$results"
  /usr/bin/python3 tests/support/run_ctest.py --tier "$tier" --limit "$(limit_of "$tier")" "${options[@]}" "build/$preset" "$@" &
  wait $!
  if ! mapfile -t line < <(python3 tests/support/test_summary.py "$results" "$tier" "$TIMES") || [ ${#line[@]} = 0 ]; then
    fail "$tier" "the tests of $preset could not be run (see above)"
    return
  fi
  # shellcheck disable=SC2086
  set -- ${line[0]}
  local good=$1 bad=$2 skipped=$3 known=$4 missing=$5
  if [ $((good + bad + skipped + missing)) = 0 ]; then
    fail "$tier" "ctest ran no test (see build/$preset.$tier.log)"
    return
  fi
  count "$good" $((bad + missing))
  cached=$((cached + known))
  what="$preset: $good passed"
  [ "$known" = 0 ] || what="$what ($known cached)"
  what="$what, $bad failed"
  [ "$skipped" = 0 ] || what="$what, $skipped skipped"
  note "$tier" "$what, $((SECONDS - begin)) s"
  [ "$missing" = 0 ] || note "$tier" "FAILED: $(over_budget "$tier"); $missing tests did not end"
  for name in "${line[@]:1}"; do left_out+=("$tier: $preset: $name"); done
}
# What depends on nothing but its inputs.
readonly REMEMBERED='unit tidy conformance simulation'

# fail TIER WHY: a tier that could not run is a failure, never a silent skip.
fail() { count 0 1; note "$1" "FAILED: $2"; }

# Labels: a test carries its tier, `long` when only --all runs it, `share` when it is a part of one of
# those, which --all need not run twice, and `turns` when an eighth of the commits have it in their ci set.
labels() { [ "$all" = 1 ] && echo "-L ^$1\$ -LE ^share\$" || echo "-L ^$1\$ -LE ^(long|turns)\$"; }

run_with_turns() {  # TIER PARALLELISM
  local also=()
  [ "$all" = 1 ] || also=(--also "-L ^$1\$ -L ^turns\$")
  # shellcheck disable=SC2046
  run_ctest "$1" release "${also[@]}" $(labels "$1") -j "$2"
}

tier_simple() {  # TIER PARALLELISM
  build release || { fail "$1" "the build failed"; return; }
  # shellcheck disable=SC2046
  run_ctest "$1" release $(labels "$1") -j "$2"
}

readonly CLANG_TIDY_SECONDS=20
tier_tidy() {
  tier_simple tidy 2
  local begin=$SECONDS bound=()
  [ "$all" = 1 ] || bound=(--changed --seconds "$CLANG_TIDY_SECONDS")
  if until_deadline /usr/bin/python3 tests/tidy/clang_tidy.py "${bound[@]}" >build/clang_tidy.log 2>&1; then
    count 1 0
    note tidy "$(tail -n 1 build/clang_tidy.log), $((SECONDS - begin)) s"
  else
    cat build/clang_tidy.log
    fail tidy "clang-tidy (see build/clang_tidy.log)"
  fi
}

# Seeds that once failed: like the fixed ones, a gate.
found_seeds() { echo "${XDG_CACHE_HOME:-$HOME/.cache}/lambdadnn/simulation/found-seeds"; }
readonly FOUND_SEEDS=20  # the newest: the others mean other worlds by now
replay_found_seeds() {
  local seed begin=$SECONDS good=0 bad=0
  [ -f "$(found_seeds)" ] || return 0
  for seed in $(cut -d' ' -f1 "$(found_seeds)" | awk '!seen[$0]++' | tail -n "$FOUND_SEEDS"); do
    if timeout --kill-after=10 "$(limit_of simulation)" "$1" --seeds "$seed" >build/simulate.found.log; then
      good=$((good + 1))
    else
      bad=$((bad + 1))
      grep -A1 '^FAILED' build/simulate.found.log
    fi
  done
  count "$good" "$bad"
  note simulation "seeds found before ($(found_seeds)): $good passed, $bad failed, $((SECONDS - begin)) s"
}
# fresh_seeds SIMULATE MINUTES: on two processes. With --all a gate; else what fails is saved for the
# next runs, and no failure of this one, which another seed might have had as well.
fresh_seeds() {
  local begin=$SECONDS i code seed seeds jobs=() bad=0
  for i in 1 2; do
    timeout --kill-after=10 "$(limit_of simulation)" "$1" --minutes "$2" >"build/simulate.$i.log" &
    jobs+=($!)
  done
  for i in 1 2; do
    wait "${jobs[$((i - 1))]}"
    code=$?
    grep -vE '^ *(replay|[a-z-]+ +[a-z_]+ +(before|after)) ' "build/simulate.$i.log"
    [ "$code" = 0 ] && { [ "$all" = 0 ] || count 1 0; continue; }
    seeds=$(sed -n 's/^FAILED seed \([0-9]*\):.*/\1/p' "build/simulate.$i.log")
    for seed in $seeds; do
      bad=$((bad + 1))
      mkdir -p "$(dirname "$(found_seeds)")"
      echo "$seed $(git rev-parse --short HEAD 2>/dev/null)" >>"$(found_seeds)"
    done
    [ "$code" = 124 ] && fail simulation "fresh seeds $(over_budget simulation)" && continue
    [[ "$all" = 0 && -n "$seeds" ]] && continue
    fail simulation "fresh seeds (see build/simulate.$i.log)"
  done
  seeds=$(sed -n 's/^\([0-9]*\) passed, .*/\1/p' build/simulate.[12].log | awk '{sum += $1} END {print sum + 0}')
  note simulation "fresh seeds: $seeds passed, $bad failed, $((SECONDS - begin)) s"
  [ "$bad" = 0 ] && return
  note simulation "failing seeds are saved in $(found_seeds); replay them as printed above, and add them to the fixed ones of tests/simulation/simulation_test.cc"
  [ "$all" = 1 ] || note simulation "NOT COUNTED this time: fresh seeds that fail count from the next run on"
}
tier_simulation() {
  tier_simple simulation 2
  local simulate=build/release/bin/simulate
  [ -x "$simulate" ] || return 0  # counted above
  replay_found_seeds "$simulate"
  if [ "$all" = 0 ]; then fresh_seeds "$simulate" 0.5; return; fi
  fresh_seeds "$simulate" 10
  search_planted_bugs "$simulate"
}
search_planted_bugs() {
  local simulate=$1 begin=$SECONDS bug jobs=() bugs=() i
  for bug in $("$simulate" --list-bugs) ''; do
    if [ ${#jobs[@]} -eq 2 ] || [ -z "$bug" ]; then
      for i in "${!jobs[@]}"; do
        if wait "${jobs[$i]}"; then count 1 0; else fail simulation "${bugs[$i]} was not found"; fi
      done
      jobs=() bugs=()
    fi
    [ -n "$bug" ] || continue
    timeout --kill-after=10 "$(limit_of simulation)" "$simulate" --seeds 1..10000 --expect-failure --bug "$bug" >"build/simulate.$bug.log" &
    jobs+=($!) bugs+=("$bug")
  done
  note simulation "planted bugs searched: $((SECONDS - begin)) s"
}

tier_integration() {
  local servers='minio versitygw etcd kubernetes promtool helm kubeconform kube-score gitops-view'
  [ "$all" = 1 ] && servers="$servers kube-apiserver-oldest"
  local begin=$SECONDS ready=0
  # shellcheck disable=SC2086
  until_deadline scripts/test_servers.sh build $servers && ready=1
  add_built $((SECONDS - begin))
  if [ "$ready" = 0 ]; then
    fail integration "the test servers could not be built"
    return
  fi
  build release || { fail integration "the build failed"; return; }
  # Four on two cores: many a test waits for seconds.
  run_with_turns integration 4
  [ "$all" = 0 ] || tests_of_models_upstream
}
# What computes with LibTorch, on the one that the worker's image has.
tests_of_models_upstream() {
  if ! { scripts/setup.sh --images && scripts/libtorch.sh fetch &&
    build upstream torch_model_test model_probe lambdadnn lambdadnn-worker lambdadnn-server lambdadnn-dataset; }; then
    fail integration "the build with the upstream LibTorch failed"
    return
  fi
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
begin_parts() {
  [[ " ${wanted[*]} " = *" e2e "* || ("$all" = 1 && " ${wanted[*]} " = *" timing "*) ]] &&
    ! is_left_out e2e && can_run_cluster || return 0
  # A session of its own, so that all of it can be ended.
  setsid sh -c 'scripts/setup.sh --cluster && scripts/setup.sh --images || exit 1
    nice -n 19 scripts/cluster.sh build && nice -n 19 scripts/libtorch.sh fetch' >build/cluster.build.log 2>&1 &
  parts_job=$!
}
wait_for_parts() {
  while [ -n "$parts_job" ] && kill -0 "$parts_job" 2>/dev/null; do
    is_over && { end_parts; break; }
    sleep 1
  done
  [ -z "$parts_job" ] || wait "$parts_job"
}
# cluster_ready TIER: everything that its tests on a cluster need is there; else says why it is not.
cluster_ready() {
  if is_left_out e2e; then
    left_out+=("$1: on a cluster: left out (--without)")
    return 1
  fi
  if ! can_run_cluster; then
    fail "$1" "on a cluster: this user may not make network, mount and process namespaces; run it as root, or leave it out (--without e2e)"
    return 1
  fi
  local begin=$SECONDS ready=1
  wait_for_parts || ready=0
  [ "$ready" = 0 ] || until_deadline scripts/test_servers.sh build helm versitygw || ready=0
  add_built $((SECONDS - begin))
  if [ "$ready" = 0 ]; then
    tail -20 build/cluster.build.log
    fail "$1" "the parts of the cluster could not be installed or built"
    return 1
  fi
  parts_job=''
  if ! { build release && build upstream lambdadnn-worker; }; then
    fail "$1" "the build failed"
    return 1
  fi
  begin=$SECONDS
  until_deadline scripts/images.sh build --reuse || { fail "$1" "the images could not be built"; return 1; }
  add_built $((SECONDS - begin))
}

tier_e2e() {
  cluster_ready e2e || return
  run_with_turns e2e 1
  # The last test does so, unless it was ended.
  LAMBDADNN_CLUSTER_DIR=/tmp/lambdadnn-e2e timeout --kill-after=10 120 scripts/cluster.sh down >/dev/null 2>&1
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
  # Of the simulator all of the operator and of the functions is built.
  if build asan-ubsan simulate; then
    run_ctest sanitizers asan-ubsan -L '^sanitizers$' -j 2
  else
    fail sanitizers "the asan-ubsan build of the simulator failed"
  fi
  sanitized_training
}

# The functions alone are built with the address sanitizer and LibTorch; the command is release's.
sanitized_training() {
  if ! { build release lambdadnn lambdadnn-dataset && build asan-torch lambdadnn-worker lambdadnn-server; }; then
    fail sanitizers "the asan-torch build failed"
    return
  fi
  local begin=$SECONDS
  if until_deadline /usr/bin/python3 -m pytest tests/integration/sanitized_run_test.py --sanitized-bin build/asan-torch/bin; then
    count 1 0
    note sanitizers "training with LibTorch: 1 passed, $((SECONDS - begin)) s"
  else
    fail sanitizers "the training with LibTorch"
  fi
}

tier_fuzz() {
  if build asan-ubsan fuzz_replay; then
    run_ctest fuzz asan-ubsan -L '^fuzz$' -j 2
  else
    fail fuzz "the asan-ubsan build failed"
  fi
  [ "$all" = 0 ] || fuzz_all
}
# What was found is kept for the runs that only replay.
kept_corpus() { echo "${XDG_CACHE_HOME:-$HOME/.cache}/lambdadnn/fuzz/$1"; }
readonly FUZZ_SECONDS=120
fuzz_all() {
  local targets
  mapfile -t targets < <(sed -n 's/^lambdadnn_fuzz(\([a-z0-9_]*\) .*/\1/p' tests/fuzz/CMakeLists.txt)
  build fuzz "${targets[@]}" || { fail fuzz "the fuzz build failed"; return; }
  local target name any=0
  local jobs=() names=() corpora=()
  for target in build/fuzz/bin/*_fuzz; do
    [ -x "$target" ] || continue
    any=1
    name=$(basename "$target" _fuzz)
    mkdir -p "$(kept_corpus "$name")"
    corpora=("$(kept_corpus "$name")")
    [ ! -d "tests/fuzz/corpus/$name" ] || corpora+=("tests/fuzz/corpus/$name")
    timeout --kill-after=10 "$(limit_of fuzz)" "$target" -max_total_time=$FUZZ_SECONDS -timeout=10 -rss_limit_mb=1024 \
      -print_final_stats=1 -artifact_prefix="build/fuzz/crash-$name-" "${corpora[@]}" \
      >"build/fuzz/$name.log" 2>&1 &
    jobs+=($!) names+=("$name")
    # Two at a time: as many as this machine is assumed to have cores.
    if [ ${#jobs[@]} -eq 2 ]; then collect_fuzz; fi
  done
  collect_fuzz
  [ "$any" = 1 ] || fail fuzz "no target was built"
}
# The fewest and smallest inputs that cover what all of the kept corpus does.
keep_smallest() {
  local kept new
  kept=$(kept_corpus "$1") new=$(kept_corpus "$1").new
  rm -rf "$new" && mkdir "$new" || return
  if timeout 120 "build/fuzz/bin/$1_fuzz" -merge=1 -timeout=10 -rss_limit_mb=1024 "$new" "$kept" >"build/fuzz/$1.merge.log" 2>&1; then
    rm -rf "$kept" && mv "$new" "$kept"
  fi
  rm -rf "$new"
}
collect_fuzz() {
  local i code
  for i in "${!jobs[@]}"; do
    wait "${jobs[$i]}"
    code=$?
    if [ "$code" = 0 ]; then
      count 1 0
      keep_smallest "${names[$i]}"
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

if [ "$setup" = 1 ]; then
  # In the foreground: it may ask for a password.
  timeout --foreground --kill-after=10 "$(remaining)" scripts/setup.sh || { echo "error: setup failed" >&2; echo "0 passed, 1 failed"; exit 4; }
fi
begin_parts
for tier in "${wanted[@]}"; do
  echo "== $tier"
  if is_left_out "$tier"; then left_out+=("$tier: left out (--without)"); continue; fi
  if is_over; then fail "$tier" "did not run: the deadline of $deadline minutes was reached"; continue; fi
  tier_begin=$SECONDS tier_built=0
  case "$tier" in
    unit | conformance) tier_simple "$tier" 2 ;;
    *) "tier_$tier" ;;
  esac
  check_budget "$tier" "$(spent)"
done
check_budget build "$built_seconds"
readonly SLOWEST=20

echo
echo "== what ran"
printf '%s\n' "${summary[@]}"
if [ -s "$TIMES" ]; then
  echo "== the slowest tests, in seconds"
  sort -rn "$TIMES" | head -n "$SLOWEST"
fi
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
if is_over; then
  verdict="reached: what had not ended failed"
else
  verdict=kept
fi
echo "in all: $((SECONDS - start)) s${deadline:+; the deadline of $deadline minutes was $verdict}"
[ "$cached" = 0 ] || echo "of those that passed, $cached were not run: they passed with the same inputs before (cached)"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]

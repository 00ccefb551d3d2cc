#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every store operation of one iteration, per role: the function that makes it is killed -9 before
and after its effect, and the model's bits stay the same.

    store_operation_test.py BIN_FOLDER [--share K/N]

The operations of an iteration are recorded from an undisturbed run (not listed by hand), then each is
hit once before and once after. --share takes every N-th of them.
"""
import os
import re
import signal
import sys
import threading

from fault_store import CREDENTIALS, FaultStore
from run_support import Bench

EXCHANGE = re.compile(r".*/x/r\d+\.i\d+/(\d+)/(.*)$")
RECORDED_ITERATION = 12
LENGTH = ("--set", "spec.training.epochs=2")
# A few strikes a run: each costs the run a fall-back, and all must happen before its end.
STEPS_PER_RUN = 5


def shape(operation):
    """What stays the same in every iteration: verb and place in the tree."""
    match = EXCHANGE.match(operation.key)
    return (operation.method, match.group(2)) if match else None


def record(bench):
    """Undisturbed run: its digest, and who does what in one iteration: (role's pid order, shape)."""
    store, seen, lock = FaultStore(), [], threading.Lock()

    def after(operation):
        match = EXCHANGE.match(operation.key)
        if match and int(match.group(1)) == RECORDED_ITERATION:
            with lock:
                seen.append((operation.key, shape(operation), operation.pid))
        return True

    store.after = after
    run = bench.run(*LENGTH, *store.options(), environment=CREDENTIALS)
    store.close()
    # GETs of one object come from several functions: number its readers. (A slow machine may have
    # made the run fall back: then the iteration was there twice, under other keys.)
    readers, steps = {}, set()
    for key, what, pid in seen:
        order = readers.setdefault((key, what), [])
        if pid not in order:
            order.append(pid)
            steps.add((what, len(order) - 1))
    return run.digest(), sorted(steps)


def strike(bench, steps, reference):
    """One run in which the functions are killed at each of the steps in turn."""
    store, lock = FaultStore(), threading.Lock()
    waiting = [(step, moment) for step in steps for moment in ("before", "after")]
    hit, readers, controller = [], {}, []

    def at(moment):
        def callback(operation):
            match = EXCHANGE.match(operation.key)
            # The controller deletes what an abandoned incarnation left: it is not struck here.
            if not match or operation.pid is None or operation.pid in controller:
                return True
            with lock:
                if not waiting:
                    return True
                (what, order), wanted = waiting[0]
                if wanted != moment or shape(operation) != what:
                    return True
                # The order-th process that has asked for this very object.
                pids = readers.setdefault((operation.key, operation.method, moment), [])
                if operation.pid not in pids:
                    pids.append(operation.pid)
                if pids.index(operation.pid) != order:
                    return True
                waiting.pop(0)
                hit.append((what, order, moment))
            os.kill(operation.pid, signal.SIGKILL)
            return False
        return callback

    store.before, store.after = at("before"), at("after")
    run = bench.start(*LENGTH, *store.options(), environment=CREDENTIALS)
    controller.append(run.process.pid)
    run.wait(timeout=600)
    store.close()
    assert run.digest() == reference, f"other bits after {hit}"
    assert run.functions() == {}, "processes were left behind"
    left = [key for key in store.keys() if "/results/" not in key]
    assert left == [], f"left behind after {hit}: {left}"
    return len(hit)


def main():
    bench = Bench(sys.argv[1])
    share, parts = (1, 1)
    if "--share" in sys.argv:
        share, parts = map(int, sys.argv[sys.argv.index("--share") + 1].split("/"))
    try:
        reference, steps = record(bench)
        assert steps, "no operation of the recorded iteration was seen"
        chosen = steps[share - 1::parts]
        print(f"{len(steps)} operations in an iteration, {len(chosen)} of them struck here")
        passed = 0
        for begin in range(0, len(chosen), STEPS_PER_RUN):
            group = chosen[begin:begin + STEPS_PER_RUN]
            hits = strike(bench, group, reference)
            assert hits == 2 * len(group), f"only {hits} of {2 * len(group)} strikes for {group}"
            passed += hits
            print(f"struck {group}: same bits", flush=True)
        print(f"{passed} passed, 0 failed")
    finally:
        bench.close()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Every store operation that functions make, per role: the function is killed -9 before and after
its effect, and the model's bits stay the same.

The operations are recorded from an undisturbed run (not listed by hand): those of one iteration, those
of checkpoints (parts, manifest, the search for old ones and their deletion, reading where a slice
starts) and the records at a slice's end. The job clips by global norm, so that norms are exchanged as
well. Each operation is hit once before and once after. --share I/N takes each N-th of each kind.
"""
import os
import re
import signal
import threading

import pytest

from fault_store import CREDENTIALS, FaultStore
from options import OPTIONS, shared
from run_support import Bench

EXCHANGE = re.compile(r".*/x/r\d+\.i\d+/(\d+)/(.*)$")
CHECKPOINT = re.compile(r".*/checkpoints/\d+/r\d+\.i\d+/(.*)$")
RECORD = re.compile(r".*/records/.*\.((?:worker|server)-\d+)\.f\d+\.a\d+\.json$")
RECORDED_ITERATION = 12
# The profile says that an iteration takes a third of a second, so that every third ends with a
# checkpoint: a strike costs that many, and the next checkpoint is never far.
LENGTH = ("--set", "spec.training.epochs=6", "--set", "spec.checkpoint.intervalSeconds=1",
          "--set", "spec.profile.trainingRate.slope=0.15",
          "--set", "spec.training.optimizer.clip.globalNorm=0.5")
# In this order: a slice's end comes after everything else.
KINDS = ("exchange", "checkpoint", "record")
# A few strikes a run: each costs the run a fall-back, and all must happen before its end.
STEPS_PER_RUN = 5


def shape(operation):
    """What stays the same in every iteration, checkpoint or slice: kind, verb and place. None: it is
    not struck."""
    if match := EXCHANGE.match(operation.key):
        return ("exchange", operation.method, match.group(2))
    if match := CHECKPOINT.match(operation.key):
        return ("checkpoint", operation.method, match.group(1))
    if operation.method == "LIST" and operation.key.endswith("/checkpoints/"):
        return ("checkpoint", operation.method, "")
    if operation.method == "PUT" and (match := RECORD.match(operation.key)):
        return ("record", operation.method, match.group(1))
    return None


def is_recorded(operation):
    match = EXCHANGE.match(operation.key)
    return shape(operation) and (not match or int(match.group(1)) == RECORDED_ITERATION)


def record(bench):
    """Undisturbed run: its digest, and who does what: (shape, which of the functions that do)."""
    store, seen, lock = FaultStore(), [], threading.Lock()

    def after(operation):
        if is_recorded(operation):
            with lock:
                seen.append((operation.key, shape(operation), operation.pid))
        return True

    store.after = after
    run = bench.start(*LENGTH, *store.options(), environment=CREDENTIALS)
    run.wait(timeout=600)
    store.close()
    # The controller lists checkpoints and cleans up: faults in its operations are tested elsewhere.
    seen = [entry for entry in seen if entry[2] not in (None, run.process.pid)]
    # GETs of one object come from several functions: number its readers. (A slow machine may have
    # made the run fall back: then the iteration was there twice, under other keys.) Listings have no
    # object: one of them stands for all.
    readers, steps = {}, set()
    for key, what, pid in seen:
        order = readers.setdefault((key, what), [])
        if pid not in order and (what[1] != "LIST" or not order):
            order.append(pid)
            steps.add((what, len(order) - 1))
    order = sorted(steps, key=lambda step: (KINDS.index(step[0][0]), step))
    return run.digest(), order


def strike(bench, steps, reference):
    """One run in which the functions are killed at each of the steps in turn."""
    store, lock = FaultStore(), threading.Lock()
    waiting = [(step, moment) for step in steps for moment in ("before", "after")]
    hit, readers, controller = [], {}, []

    def at(moment):
        def callback(operation):
            done = shape(operation)
            if done is None or operation.pid is None or operation.pid in controller:
                return True
            with lock:
                if not waiting:
                    return True
                (what, order), wanted = waiting[0]
                if wanted != moment or done != what:
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


@pytest.fixture(scope="module")
def bench():
    made = Bench(OPTIONS.bin)
    yield made
    made.close()


@pytest.fixture(scope="module")
def recorded(bench):
    """Digest and operations of an undisturbed run."""
    reference, steps = record(bench)
    print("\n".join(f"{what}, function {order}" for what, order in steps), flush=True)
    return reference, steps


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_killed_at_an_operation_changes_no_bit(bench, recorded, kind):
    reference, steps = recorded
    of_kind = [step for step in steps if step[0][0] == kind]
    assert of_kind, f"no {kind} operation was seen"
    chosen = shared(of_kind)
    print(f"struck here: {len(chosen)} of {len(of_kind)}", flush=True)
    # Some operations on checkpoints come only after a fall-back, so one is made first.
    opening = [next(step for step in steps if step[0][0] == "exchange")] if kind == "checkpoint" else []
    for begin in range(0, len(chosen), STEPS_PER_RUN):
        group = opening + chosen[begin:begin + STEPS_PER_RUN]
        hits = strike(bench, group, reference)
        assert hits == 2 * len(group), f"only {hits} of {2 * len(group)} strikes for {group}"
        print(f"struck {group}: same bits", flush=True)

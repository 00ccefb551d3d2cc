# SPDX-License-Identifier: Apache-2.0
"""The operator is killed (-9) before, after, and after with the reply lost of every write to the API
server in the lives of jobs: one that completes and is deleted by its time to live, one that is
suspended and resumed, one that is planned anew, one that fails, one that is deleted as it runs, one
under leaders that are elected; and before it posts the slice of each role, once the function has it,
and between lines of the answer. Each ends as if nothing had happened: same digest, no function and no
object left, no child twice.

What is written is taken from a recorded run of each life and must be in operator_writes.txt
(--record writes it anew); each event counts once, where it comes first, and so does each write of the
Lease. --share I/N takes each N-th row of the table. --clusters N runs N rows at once, each in a cluster of
its own: much of a row is waiting. --only TEXT takes rows that hold it.
"""
import collections
import concurrent.futures
import pathlib
import queue
import threading
import time

import pytest

from api_proxy import ApiProxy, Lost
from host_proxy import HostProxy
from operator_lives import JOB, LIVES, Lives, WriteLog
from operator_support import Cluster
from options import OPTIONS, shared

TABLE = pathlib.Path(__file__).parent / "operator_writes.txt"
MODES = ("before", "after", "reply lost")
# Of the slice of a role; the occurrence is the line of its answer that is not heard any more, 0 its head.
POST, LINE = "before its slice", "before a line"
LINES = 6  # of an answer, taken evenly

Row = collections.namedtuple("Row", "life write occurrence mode")


def text_of(row):
    return f"{row.life}: {row.write} #{row.occurrence}, killed {row.mode}"


class Worker:
    """A cluster with one operator, through whose proxies everything goes."""

    def __init__(self, programs):
        self.cluster = Cluster(programs)
        self.host = self.cluster.start_host()
        self.functions = HostProxy(self.host.socket, self.cluster.folder / "functions.sock")
        self.proxy = ApiProxy(self.cluster.plane, self.cluster.own_user())
        self.kubeconfig = self.proxy.kubeconfig(self.cluster.folder)
        self.operator, self.flags, self.starts = None, (), 0
        self.most = {}  # group -> functions of it at once, in an undisturbed life
        self.lives, self.log = Lives(self), None

    def close(self):
        self.proxy.close()
        self.functions.close()
        self.cluster.close()

    def operate(self):
        if self.operator is None or not self.operator.alive():
            self.starts += 1
            self.operator = self.cluster.start_operator(
                self.functions, "--enable-debug", *self.flags, name="operator",
                kubeconfig=self.kubeconfig)
        return self.operator

    def stop_operator(self):
        """In order, unless it is killed meanwhile."""
        if self.operator is not None and self.operator.alive():
            code = self.operator.stop()
            assert code == 0 or self.lives.struck(), f"exit code {code}"

    def replace_operator(self, *flags):
        self.operator.kill()
        self.flags = flags
        self.operate()

    def live(self, life, row=None):
        """One life, with the operator killed as the row says. The writes seen, and whether it was."""
        seen, struck = [], []
        strike = {}  # request number -> it is to be killed there
        self.lives.name = None
        self.log = log = WriteLog(lambda: self.lives.name)

        def before(request):
            changes = log.names(request)
            if changes:
                seen.append(changes)
            for name, occurrence in changes:
                if row and (name, occurrence) == (row.write, row.occurrence) and not struck:
                    struck.append(request.number)
                    strike[request.number] = True
                    if row.mode == "before":
                        self.operator.kill()
                        raise Lost()

        def after(request, _):
            if request.number in strike and row.mode == "reply lost":
                self.operator.kill()
                raise Lost()

        def done(request, _):
            if request.number in strike and row.mode == "after":
                self.operator.kill()

        def at_slice(mode):
            def hook(role, line=0):
                if row and (role, line, mode) == (row.write, row.occurrence, row.mode) and not struck:
                    struck.append(role)
                    self.operator.kill()
                    raise Lost()
            return hook

        self.proxy.reset()
        self.functions.reset()
        self.proxy.before, self.proxy.after, self.proxy.done = before, after, done
        self.functions.before, self.functions.line = at_slice(POST), at_slice(LINE)
        self.lives.struck = lambda: bool(struck)
        self.operate()
        getattr(self.lives, life)()
        self.lives.finish(wait=False)
        for group, count in self.functions.most.items():
            # A later revision's functions are as many: the lives change none of the numbers.
            most = self.most.setdefault(group.split("-r")[0], count)
            assert count <= most, f"{count} functions of group {group} at once, not {most}"
        return seen, bool(struck)


def share_out(workers, items, work):
    """work(worker, item) of each item, by whichever worker is free."""
    left = queue.SimpleQueue()
    for item in items:
        left.put(item)

    def run(worker):
        while True:
            try:
                item = left.get_nowait()
            except queue.Empty:
                return
            work(worker, item)
    with concurrent.futures.ThreadPoolExecutor(len(workers)) as pool:
        for done in [pool.submit(run, worker) for worker in workers]:
            done.result()


def record(workers):
    """A life of each kind, undisturbed: the rows of the table, and the names of all writes."""
    bench = workers[0].cluster.bench
    digest = bench.run(job=workers[0].cluster.manifest("reference", **JOB)).digest()
    lives = {}

    def one(worker, life):
        worker.lives.digest = digest
        seen, _ = worker.live(life)
        by_method = collections.Counter(
            "WATCH" if r.watch else r.method for r in worker.proxy.requests)
        print(f"{life}: {len(seen)} writes with {sum(map(len, seen))} changes; all requests: "
              f"{dict(by_method)}", flush=True)
        lives[life] = seen, dict(worker.functions.lines)
    # The longest first.
    share_out(workers, reversed(LIVES), one)
    most = {}
    for worker in workers:
        worker.lives.digest = digest
        for group, count in worker.most.items():
            assert most.setdefault(group, count) == count, f"{group}: {most[group]} and {count}"
        worker.most = most
    rows, writes = [], set()
    for life in LIVES:
        for changes in lives[life][0]:
            # Each write once, by the first of the changes that it carries.
            name, occurrence = changes[0]
            once = name.startswith(("event", "lease"))
            if (life == "lead" and not name.startswith("lease")) or (
                    once and (name in writes or occurrence > 1)):
                continue
            rows.extend(Row(life, name, occurrence, mode) for mode in MODES)
            writes.update(name for name, _ in changes)
    answers = lives["complete"][1]
    for role, lines in sorted(answers.items()):
        rows.append(Row("complete", role, 0, POST))
        taken = sorted({round(lines * number / (LINES - 1)) for number in range(LINES)})
        rows.extend(Row("complete", role, line, LINE) for line in taken)
    print(f"lines of the answers of each role: {answers}", flush=True)
    return rows, sorted(writes)


class Table:
    """How the rows that are run went."""

    def __init__(self):
        self.failed, self.missed, self.struck, self.seconds = [], [], 0, 0
        self.lock = threading.Lock()

    def fail(self, text, error):
        with self.lock:
            self.failed.append(text)
            print(f"FAILED {text}\n{str(error)[-9000:]}", flush=True)

    def run(self, worker, row):
        started = time.monotonic()
        try:
            _, was = worker.live(row.life, row)
        except Exception as error:  # whatever it is, the other rows are to be run
            worker.lives.ends.clear()
            return self.fail(text_of(row), error)
        took = time.monotonic() - started
        with self.lock:
            self.struck += was
            self.seconds += took
            if not was:
                self.missed.append(text_of(row))
            print(f"{text_of(row)}: {'right' if was else 'not struck'}, {took:.0f} s", flush=True)

    def finish(self, worker):
        try:
            worker.lives.finish()
        except AssertionError as error:
            self.fail("the ends of the last rows", error)


@pytest.fixture(scope="module")
def workers():
    made = []
    try:
        with concurrent.futures.ThreadPoolExecutor(OPTIONS.clusters) as pool:
            list(pool.map(lambda _: made.append(Worker(OPTIONS.bin)), range(OPTIONS.clusters)))
        yield made
    finally:
        for worker in made:
            worker.close()


@pytest.fixture(scope="module")
def recorded(workers):
    """Rows and writes."""
    begin = time.monotonic()
    found = record(workers)
    print(f"{time.monotonic() - begin:.0f} s for the table of {len(found[0])} rows", flush=True)
    return found


def test_every_write_is_in_the_list(recorded):
    _, writes = recorded
    if OPTIONS.record:
        TABLE.write_text("# What operators write in the lives of operator_kill_test.py.\n" +
                         "".join(f"{write}\n" for write in writes))
    new = set(writes) - set(TABLE.read_text().splitlines())
    assert not new, f"writes that are not in {TABLE.name}; add them with --record"


def test_each_row_ends_as_if_nothing_had_happened(workers, recorded):
    rows, _ = recorded
    chosen = [row for row in shared(rows) if OPTIONS.only in text_of(row)]
    table, begin = Table(), time.monotonic()
    share_out(workers, chosen, table.run)
    share_out(workers, workers, lambda _, worker: table.finish(worker))
    print(f"{len(rows)} rows, {len(chosen)} taken in {len(workers)} workers, operator killed in "
          f"{table.struck}, {sum(worker.starts for worker in workers)} starts, "
          f"{time.monotonic() - begin:.0f} s, a row {table.seconds / max(1, len(chosen)):.1f} s")
    for text in table.missed:
        print(f"not written again in this run: {text}")
    assert table.failed == []
    # A write that depends on timing may not come again, most must.
    assert table.struck >= 0.8 * len(chosen), "too few rows were struck"

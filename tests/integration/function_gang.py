# SPDX-License-Identifier: Apache-2.0
"""The functions of one job without an operator: the test starts the processes, posts the slices and
hears their streams, and so can do what an operator never would."""
import http.client
import json
import os
import pathlib
import re
import subprocess
import threading
import time

from run_support import files_like

HERE = pathlib.Path(__file__).parent
KEY = "gang-key"
GOLDEN = HERE.parent / "data/formats/slice_request.json"
WORKERS = 2
# Long enough for a gang to be stopped, replaced and woken meanwhile on any machine.
ITERATIONS, EPOCH, CHECKPOINT_EVERY = 408, 17, 17
MANIFEST = re.compile(r"checkpoints/(\d+)/r(\d+)\.i(\d+)/manifest\.json$")
PATIENCE_SECONDS = 300


def wait_until(what, condition):
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not after {PATIENCE_SECONDS} s")
        time.sleep(0.02)


class Job:
    """One job's place in a file store, and the slice requests of its roles."""

    def __init__(self, folder, data, name):
        self.store, self.prefix = pathlib.Path(folder) / "store", f"test/{name}"
        self.data = pathlib.Path(data)

    def path(self, key):
        return self.store / self.prefix / key

    def checkpoints(self):
        """Complete ones: iteration, revision, incarnation; the newest last."""
        manifests = files_like(self.path("checkpoints"), "*/*/manifest.json")
        found = [MANIFEST.search(str(path)) for path in manifests]
        return sorted(tuple(map(int, match.groups())) for match in found if match)

    def reference(self, checkpoint):
        iteration, revision, incarnation = checkpoint
        return {"prefix": self.prefix, "iteration": iteration, "planRevision": revision,
                "incarnation": incarnation}

    def request(self, role, incarnation=0, revision=1, epoch=1, start=None, uid="uid-gang"):
        request = json.loads(GOLDEN.read_text())
        first = start[0] if start else 0
        kind, rank = role
        request.update({
            "job": {"name": "gang", "namespace": "test", "uid": uid},
            "invocation": f"{uid}.r{revision}.i{incarnation}.{kind}-{rank}.f{first}.a1",
            "leaderEpoch": epoch, "incarnation": incarnation, "firstIteration": first,
            "checkpointKeep": 2, "budgetSeconds": 1800.0,
            "roles": [{"kind": "worker", "rank": rank} if kind == "worker" else
                      {"kind": "server", "rank": rank, "level": 1, "group": 0, "index": 0}]})
        request.pop("start")
        if start:
            request["start"] = self.reference(start)
        request["store"].update({"uri": f"file://{self.store}", "prefix": self.prefix})
        request["plan"].update({
            "revision": revision, "functions": WORKERS, "globalBatchSize": 60,
            "localBatchSize": 30, "iterations": ITERATIONS, "iterationsPerEpoch": EPOCH,
            "checkpointEvery": CHECKPOINT_EVERY, "parameters": 101770, "virtualPartitions": 64,
            "memory": "384Mi", "serverMemory": "128Mi", "isa": "", "libtorch": ""})
        request["plan"]["aggregation"].update({"layers": [1, WORKERS], "shards": 2, "spread": 1})
        training = request["training"]
        training.update({"epochs": ITERATIONS // EPOCH, "seed": 7, "trainingSamples": 1000,
                         "evaluateEachEpoch": False, "stopAtLoss": 0.0,
                         "model": {"name": "mlp", "parameters": {"hidden": [128]}}})
        training["dataset"].update({"uri": f"file://{self.data}", "format": "IDX"})
        training["optimizer"].update({"name": "SGD", "learningRate": 0.05, "momentum": 0.9})
        training["optimizer"].pop("clipGlobalNorm", None)
        # Of the example; this job has no test set, and takes batches as they are.
        for name in ("classWeights", "earlyStopping", "keepBest", "microBatchSize", "precision"):
            training.pop(name)
        return request


class Function:
    """One process of lambdadnn-worker or lambdadnn-server, and the stream of its newest slice."""

    def __init__(self, programs, folder, kind):
        self.kind = kind
        folder = pathlib.Path(folder)
        number = len(list(folder.glob("*.log")))
        self.log = folder / f"{kind}-{number}.log"
        port_file = folder / f"{kind}-{number}.port"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [str(pathlib.Path(programs) / f"lambdadnn-{kind}")], stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PORT": "0", "LAMBDADNN_PORT_FILE": str(port_file),
                     "LAMBDADNN_JOB_KEY": KEY})
        wait_until(f"{kind} serves", lambda: port_file.exists() and port_file.read_text().strip())
        self.port = int(port_file.read_text())
        self.lines, self.stream = [], None

    def ask(self, method, path, body=None, key=KEY):
        """Status and decoded body of a request that streams nothing."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        try:
            connection.request(method, path, body and json.dumps(body),
                               {"Authorization": f"Bearer {key}"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        finally:
            connection.close()

    def begin(self, request):
        self.lines = lines = []

        def hear():
            connection = http.client.HTTPConnection("127.0.0.1", self.port,
                                                    timeout=2 * PATIENCE_SECONDS)
            try:
                connection.request("POST", "/v1/slices", json.dumps(request),
                                   {"Authorization": f"Bearer {KEY}"})
                answer = connection.getresponse()
                for line in answer:
                    lines.append(json.loads(line))
            except (OSError, http.client.HTTPException, ValueError) as error:
                lines.append({"type": "lost", "error": repr(error)})
            finally:
                connection.close()

        self.stream = threading.Thread(target=hear, daemon=True)
        self.stream.start()

    def record(self):
        """The completion record; waits for it."""
        self.stream.join(PATIENCE_SECONDS)
        last = self.lines[-1] if self.lines else {}
        assert last.get("type") in ("completed", "failed"), (
            f"no record of {self.kind}: {last}\n{self.log.read_text()[-2000:]}")
        return last

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Gang:
    """Processes for all roles of a job, in the order worker-0 … server-0."""

    ROLES = [("worker", rank) for rank in range(WORKERS)] + [("server", 0)]

    def __init__(self, programs, folder, job):
        self.programs, self.folder, self.job = programs, folder, job
        self.functions = [Function(programs, folder, kind) for kind, _ in self.ROLES]

    def begin(self, roles=None, **named):
        for role, function in zip(self.ROLES, self.functions, strict=True):
            if roles is None or role in roles:
                function.begin(self.job.request(role, **named))
        return self

    def of(self, kind, rank):
        return self.functions[self.ROLES.index((kind, rank))]

    def replace(self, kind, rank):
        self.of(kind, rank).end()
        self.functions[self.ROLES.index((kind, rank))] = Function(self.programs, self.folder, kind)

    def wait_for_checkpoint(self, incarnation=0, after=0):
        """Until one of this incarnation is complete beyond iteration `after`. Progress lines come
        once in a while; a gang may be at its end before the next one."""
        wait_until(f"a checkpoint of incarnation {incarnation} after iteration {after}",
                   lambda: any(iteration > after and of == incarnation
                               for iteration, _, of in self.job.checkpoints()))

    def signal(self, number):
        for function in self.functions:
            if function.process.poll() is None:
                function.signal(number)

    def digest(self):
        """Of the workers' weights when all roles have finished."""
        records = [function.record() for function in self.functions]
        assert all(record["outcome"] == "finished" for record in records), records
        digests = {record["stateDigest"] for record in records[:WORKERS]}
        assert len(digests) == 1, digests
        return digests.pop()

    def end(self):
        for function in self.functions:
            function.end()

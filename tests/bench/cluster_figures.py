# SPDX-License-Identifier: Apache-2.0
"""Figures of jobs on pods of a real cluster, one line each: "figure: NAME: VALUES".

On a cluster of its own, or on the one that LAMBDADNN_CLUSTER_DIR names, which stays. The rest is
told by tests/cluster/on_pods.py. LAMBDADNN_FIGURES_EPOCHS=4,20 are the lengths of jobs that are
watched as they start, and of those whose iterations count. A machine that does something else
meanwhile gives figures of both. Reprint: scripts/bench.sh cluster
"""
import contextlib
import http.client
import json
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
import network
import on_pods
from cluster_api import condition
from on_pods import PODS, SERVICES, OnPods
from processes import resident_mib

SHORT, LONG = map(int, os.environ.get("LAMBDADNN_FIGURES_EPOCHS", "4,20").split(","))
POLL_SECONDS = 0.1
ROUNDS = 3
QUEUE, STRAIGHT = 8012, 8080
KEY = "figures"
BODY = b"x" * (2 << 20)  # no slice request: read whole, and refused
BODIES, QUESTIONS = 200, 2000
PLANS = ((1, 384), (2, 384), (4, 384), (2, 640), (4, 256), (8, 256))


def shape(functions, memory_mib):
    """What of a job says how many functions it has: these, and one server."""
    return {"objective": {"fixed": {"functions": functions, "memory": f"{memory_mib}Mi"}},
            "aggregation": {"shards": 1, "layers": [1, functions], "serverMemory": "128Mi"}}


def processor_seconds(pid):
    """In user and system mode, since the process began."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def iteration_times(report):
    """Seconds of an iteration: in all, of computing and of exchanging gradients."""
    times = [point["time"] for point in report["curves"]["iterations"]]
    count, phases = report["requests"]["iterations"], report["phases"]
    return ((times[-1] - times[0]) / (len(times) - 1), phases["computeSeconds"] / count,
            phases["communicationSeconds"] / count)


def prediction_errors(report):
    """Relative errors of the seconds in all; of the training alone, from the plan to the last slice's
    end, without the pods' end after it; of the cost."""
    predicted, actual = report["predicted"], report["actual"]
    before = report["beforePlan"]["seconds"]
    ended = max(part["end"] for function in report["timeline"] for part in function["slices"])
    return (predicted["seconds"] / actual["seconds"] - 1,
            (predicted["seconds"] - before) / (ended - before) - 1,
            predicted["cost"] / actual["cost"] - 1)


class ClusterFigures(OnPods):
    WAIT_SECONDS = 600

    def say(self, name, text):
        print(f"figure: {name}: {text}", flush=True)

    def since(self, begin, what, check, every=POLL_SECONDS):
        """Seconds from `begin` until check() holds."""
        self.wait(what, check, every=every)
        return time.time() - begin

    @contextlib.contextmanager
    def training(self, name, epochs, changes):
        """Such a job, as it was created; gone with all that it had at the end."""
        made = self.create(name, epochs, changes)
        try:
            yield made
        finally:
            self.remove(name)
            self.nothing_left()

    # --- Starts.

    def first_weights(self, uid):
        """(version, time) of the oldest weights that the store holds; a version lives for an iteration."""
        found = []
        # The functions delete objects while this reads.
        with contextlib.suppress(FileNotFoundError):
            for file in self.store_folder(uid).glob("x/*/*/w/s0/xl.meta"):
                found.append((int(file.parts[-4]), file.stat().st_mtime))
        return min(found, default=None)

    def start(self, name, functions):
        """Says how long a job's start and life take; seconds until its first iteration was done."""
        begin = time.time()
        with self.training(name, SHORT, shape(functions, 256)) as made:
            planned = self.since(begin, "a plan", lambda: "plan" in self.job(name).get("status", {}))
            ready = self.since(begin, "all pods ready", lambda: [
                condition(pod, "Ready") for pod in self.pods(name)] == ["True"] * (functions + 1))
            version, written = self.wait(
                "weights", lambda: self.first_weights(made["metadata"]["uid"]), every=0.02)
            self.complete(name)
            completed = time.time() - begin
        first = written - begin
        late = "" if version == 1 else f" (seen with iteration {version})"
        self.say("start", f"{name}: plan {planned:.2f} s, pods ready {ready:.2f} s, first iteration "
                 f"{first:.2f} s{late}, Complete {completed:.1f} s")
        return first

    def moulds(self):
        """{group: template of its Service}, as the operator makes them, without what belongs to a job."""
        with self.training("mould", LONG, shape(1, 256)):
            self.running("mould", 1)
            made = {group: self.kube.get(f"{SERVICES}/mould-{group}")["spec"]["template"]
                    for group in ("workers", "servers")}
        for template in made.values():
            del template["metadata"]["labels"]
            template["spec"].pop("serviceAccountName", None)
            container = template["spec"]["containers"][0]
            del container["envFrom"]
            container["env"].append({"name": "LAMBDADNN_JOB_KEY", "value": KEY})
        return made

    @contextlib.contextmanager
    def bare_service(self, template, count=1):
        """One of its `count` pods, with seconds from creating it until they and the Service were ready."""
        pods = f"{PODS}?labelSelector=serving.knative.dev/service=bare"
        template = json.loads(json.dumps(template))
        scales = template["metadata"]["annotations"]
        for each in ("min-scale", "max-scale", "initial-scale"):
            scales[f"autoscaling.knative.dev/{each}"] = str(count)

        def all_ready():
            ready = [pod for pod in self.kube.get(pods)["items"] if condition(pod, "Ready") == "True"]
            return ready if len(ready) == count else None
        begin = time.time()
        self.request("POST", SERVICES, {
            "apiVersion": "serving.knative.dev/v1", "kind": "Service",
            "metadata": {"name": "bare", "labels": {
                "networking.knative.dev/visibility": "cluster-local"}},
            "spec": {"template": template}})
        try:
            pods_ready = self.since(begin, "its pods ready", all_ready)
            ready = self.since(begin, "the Service ready", lambda: condition(
                self.kube.get(f"{SERVICES}/bare"), "Ready") == "True")
            yield all_ready()[0], pods_ready, ready
        finally:
            self.request("DELETE", f"{SERVICES}/bare", None)
            self.wait("no pod of it", lambda: not self.kube.get(pods)["items"])

    def test_1_starts(self):
        """The very first job is the first that runs the images since they were loaded."""
        warm = {}
        for functions in (1, 4, 8):
            for turn in ("cold" if functions == 1 else "first", "warm"):
                name = f"start-{functions}-{turn}"
                warm[functions] = self.start(name, functions)
        moulds = self.moulds()
        for group, functions in (("servers", 1), *(("workers", each) for each in warm)):
            times = []
            for _ in range(ROUNDS):
                with self.bare_service(moulds[group], functions) as (_, pods_ready, ready):
                    times.append((pods_ready, ready))
            pods_ready, usual = map(statistics.median, zip(*times, strict=True))
            self.say("bare ksvc", f"{functions} of {group}: pods ready {pods_ready:.2f} s, Ready "
                     f"{usual:.2f} s, median of {ROUNDS}")
            if group == "workers":
                self.say("start beyond a bare ksvc", f"{functions} functions and a server, warm: first "
                         f"iteration {warm[functions] - usual:+.2f} s after one with as many workers")

    # --- The way to a function.

    def ask(self, address, port, method, path, body, count, status):
        """Seconds of each of so many requests on one connection, made among the clients."""
        def requests():
            connection = http.client.HTTPConnection(address, port, timeout=60)
            seconds = []
            with contextlib.closing(connection):
                for _ in range(count):
                    begin = time.perf_counter()
                    connection.request(method, path, body, {"Authorization": f"Bearer {KEY}"})
                    answer = connection.getresponse()
                    text = answer.read()
                    seconds.append(time.perf_counter() - begin)
                    self.assertEqual(status, answer.status, text)
                    self.assertIsNotNone(connection.sock, "the connection was not kept")
            return seconds
        return self.cluster.network.call(network.LAB, requests)

    def test_2_queue_proxy(self):
        """Bodies that are refused after they have been read; probes. Without a quota of CPU, which
        would be what is measured; what the client takes is in both ways."""
        template = self.moulds()["servers"]
        for amounts in template["spec"]["containers"][0]["resources"].values():
            amounts.pop("cpu", None)
        kinds = {"bodies": ("POST", "/v1/slices", BODY, BODIES, 400),
                 "probes": ("GET", "/readyz", None, QUESTIONS, 200)}
        seconds = {(kind, port): [] for kind in kinds for port in (STRAIGHT, QUEUE)}
        with self.bare_service(template) as (pod, _, _):
            for _ in range(ROUNDS):
                for kind, port in seconds:
                    seconds[kind, port].append(self.ask(pod["status"]["podIP"], port, *kinds[kind]))

        def both(kind, of_round):
            return [statistics.median(map(of_round, seconds[kind, port]))
                    for port in (QUEUE, STRAIGHT)]
        through, straight = both("bodies", lambda times: len(BODY) * BODIES / sum(times) / 1e6)
        self.say("queue-proxy, bytes", f"{through:.0f} MB/s through it, {straight:.0f} MB/s straight, "
                 f"ratio {through / straight:.2f}; {BODIES} bodies of 2 MiB, median of {ROUNDS}")
        through, straight = both("probes", lambda times: QUESTIONS / sum(times))
        self.say("queue-proxy, requests", f"{through:.0f} a second through it, {straight:.0f} "
                 f"straight, ratio {through / straight:.2f}; {QUESTIONS} on one connection")
        through, straight = both("probes", lambda times: statistics.median(times) * 1e3)
        self.say("queue-proxy, latency", f"{through:.2f} ms through it, {straight:.2f} ms straight")

    # --- Iterations, the operator, predictions.

    def iterations(self, changes):
        """Of the same plan, to the same bits; on one machine with the cluster's store and with a folder."""
        wanted = {**on_pods.spec(LONG), **changes}
        platform = ("--platform", self.folder / "platform.yaml")
        reports = {}
        with self.training("iterations", LONG, changes):
            self.complete("iterations")
            reports["the cluster"] = self.report("iterations")
        reports["run, the cluster's store"] = self.run_in_lab("here", wanted, *platform)
        reports["run, a folder"] = self.run_here("folder", wanted, *platform)
        on_pods_seconds = iteration_times(reports["the cluster"])[0]
        for where, report in reports.items():
            whole, compute, communicate = iteration_times(report)
            self.say("iteration", f"{where}: {whole * 1e3:.0f} ms, of them compute "
                     f"{compute * 1e3:.0f}, communicate {communicate * 1e3:.0f}; the cluster's is "
                     f"{on_pods_seconds / whole:.2f} times as long")
        self.assertEqual(1, len({report["model"]["digest"] for report in reports.values()}))

    def test_3_iterations_against_one_machine(self):
        self.iterations({})

    def test_3_direct_iterations_against_one_machine(self):
        self.iterations({"aggregation": {"transport": "Direct", "placement": "Workers", "shards": 4, "layers": [1, 4]}})

    def test_4_the_operator(self):
        pid = self.operator.pid
        self.assertEqual("lambdadnn-operator"[:15], pathlib.Path(f"/proc/{pid}/comm").read_text().strip())
        idle = resident_mib([pid])
        resident = []
        with self.training("watched", LONG, shape(8, 256)):
            self.running("watched", 1)
            begin, used = time.monotonic(), processor_seconds(pid)

            def trained():
                resident.append(resident_mib([pid]))
                status = self.job("watched")["status"]
                return status["progress"]["iteration"] >= status["plan"]["iterations"]
            self.wait("all iterations", trained)
            seconds, used = time.monotonic() - begin, processor_seconds(pid) - used
        self.say("operator", f"{idle:.1f} MiB before the job, at most {max(resident):.1f} MiB and "
                 f"{used / seconds * 1e3:.1f} ms of CPU a second in {seconds:.0f} s of a job of 9 "
                 "functions")

    def test_5_predictions(self):
        """Of jobs without a profile: the operator measures one on the cluster, for each."""
        errors = []
        platform = self.measured_platform()
        self.say("platform", platform)
        with self.other_operator(platform):
            for functions, memory_mib in PLANS:
                name = f"predicted-{functions}-{memory_mib}"
                with self.training(name, LONG, {**shape(functions, memory_mib), "profile": None}):
                    self.complete(name)
                    report = self.report(name)
                predicted, actual = report["predicted"], report["actual"]
                errors.append(prediction_errors(report))
                whole, training, cost = errors[-1]
                self.say("prediction", f"{functions} x {memory_mib} MiB: predicted "
                         f"{predicted['seconds']:.1f} s, actual {actual['seconds']:.1f} s ({whole:+.1%}; "
                         f"{report['beforePlan']['seconds']:.1f} s of both were before the plan), training alone "
                         f"{training:+.1%}; ${predicted['cost']:.6f}, ${actual['cost']:.6f} "
                         f"({cost:+.1%}); residual "
                         f"{float(report['profile'].get('residual', 0)):.1%}")
        whole, training, cost = (statistics.median(map(abs, each)) for each in zip(*errors, strict=True))
        self.say("prediction", f"median error of {len(errors)} plans: {whole:.1%} of the seconds, "
                 f"{training:.1%} of the training alone, {cost:.1%} of the cost")

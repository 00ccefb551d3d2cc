# SPDX-License-Identifier: Apache-2.0
"""Jobs behind a real gateway of OpenFaaS: trained on the test cluster by a real operator, with the
bits that the same plan gives on one machine. openfaas_chaos_test.py disturbs such jobs.

On a cluster of its own, or on the one that LAMBDADNN_CLUSTER_DIR names, which stays.
"""
import base64
import http.client
import os
import statistics
import subprocess
import time
import urllib.parse

import cgroups
import network
import on_pods
import openfaas
import pod_processes
import settings
import watchdog_images
from cluster_api import condition
from cluster_case import jobs_in
from on_openfaas import DEPLOYMENTS, OnOpenFaas
from on_pods import JOBS, TAG
from training_test import SIZES

# Model, epochs, functions and their memory; each takes 20 to 40 seconds.
PREDICTED = (("mlp", 24, 1, "512Mi"), ("cnn", 12, 2, "768Mi"), ("cnn", 8, 4, "384Mi"))
RANKS = {*(f"worker-{rank}" for rank in range(4)), *(f"server-{rank}" for rank in range(3))}


class Trained(OnOpenFaas):
    def test_1_a_job_trains_to_the_bits_of_one_machine(self):
        self.create("plain", 4)
        self.running("plain", 1)
        self.assertEqual({f"plain-{rank}" for rank in RANKS}, set(self.functions()))
        for pod in self.pods("plain"):
            self.bounded(pod, *SIZES[pod["metadata"]["labels"]["lambdadnn.io/group"]])
        job = self.complete("plain")
        self.assertEqual(self.digest_on_one_machine(4), job["status"]["model"]["digest"])
        self.assertEqual("", condition(job, "PeersConnected"), "there is nothing to say")
        self.rung(self.report("plain"))
        self.nothing_left("plain")

    def bounded(self, pod, memory_mib, cores):
        memory, quota = cgroups.limits_of(pod_processes.function_of(self.cluster, pod["metadata"]["uid"]))
        self.assertEqual(memory_mib << 20, memory)
        self.assertAlmostEqual(cores, quota, delta=0.002)

    def test_2_the_key_is_in_a_file_and_in_no_deployment(self):
        self.create("secret", 4)
        self.running("secret", 1)
        pod = self.pods("secret")[0]
        (container,) = pod["spec"]["containers"]
        variables = {each["name"]: each["value"] for each in container["env"]}
        self.assertNotIn("LAMBDADNN_JOB_KEY", variables)
        self.assertIn("/var/openfaas/secrets/lambdadnn-", variables["LAMBDADNN_JOB_KEY_FILE"])
        self.assertFalse([name for name in variables if "SECRET_ACCESS_KEY" in name and not name.endswith("_FILE")])
        self.complete("secret")

    def test_3_suspended_and_resumed(self):
        self.create("paused", 10)
        self.running("paused", 5)
        self.request("PATCH", f"{JOBS}/paused", {"spec": {"suspend": True}})
        self.wait("it is suspended", lambda: condition(self.job("paused"), "Suspended") == "True")
        self.assertEqual({}, self.functions())
        self.request("PATCH", f"{JOBS}/paused", {"spec": {"suspend": False}})
        job = self.complete("paused")
        self.assertEqual(self.digest_on_one_machine(10), job["status"]["model"]["digest"])
        self.nothing_left("paused")

    def test_4_a_deleted_job_leaves_nothing(self):
        self.create("short-lived", 400)
        self.running("short-lived", 5)
        self.remove("short-lived")
        self.nothing_left()

    def test_5_names_that_are_taken(self):
        """By a user's function: it stays, and the job's function has another name."""
        status, text = self.gateway("POST", "/system/functions", {
            "service": "taken-worker-0", "image": "dev.local/test-function:1", "namespace": openfaas.FUNCTIONS})
        self.assertEqual(202, status, text)
        self.addCleanup(self.gateway, "DELETE", "/system/functions", {"functionName": "taken-worker-0"})
        self.create("taken", 4)
        self.running("taken", 1)
        names = {name for name, labels in self.functions().items()
                 if labels.get("lambdadnn.io/job-name") == "taken"}
        self.assertEqual(7, len(names))
        self.assertNotIn("taken-worker-0", names)
        self.assertTrue([name for name in names if name.startswith("taken-") and name.endswith("-worker-0")])
        job = self.complete("taken")
        self.assertEqual(self.digest_on_one_machine(4), job["status"]["model"]["digest"])
        self.wait("only the user's function is left", lambda: set(self.functions()) == {"taken-worker-0"})

    def test_6_two_operators_on_one_gateway(self):
        """Each has a job of the same name in its own namespace."""
        self.kube.apply_objects([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}])
        self.addCleanup(self.kube.kubectl, "delete", "namespace", "other", "--wait=false")
        self.make_store_secret("store", "other")
        path = f"{jobs_in('other')}/twin"
        with self.other_operator(flags=("--namespaces", "default")):
            second = self.start_operator("--namespaces", "other")
            self.addCleanup(self.stop, second)
            self.create("twin", 10)
            first = self.job("twin")
            self.request("POST", jobs_in("other"), {
                "apiVersion": first["apiVersion"], "kind": first["kind"], "metadata": {"name": "twin"},
                "spec": first["spec"]})

            def gone():
                self.kube.request("DELETE", path)
                self.wait("the other job is gone", lambda: self.kube.get(path) is None)
            self.addCleanup(gone)
            self.running("twin", 1)
            self.wait("both have functions", lambda: len(self.functions()) == 14)
            self.remove("twin")
            spaces = [labels["lambdadnn.io/job-namespace"] for labels in self.functions().values()]
            self.assertEqual(["other"] * 7, spaces)

            def complete():
                job = self.kube.get(path)
                self.fail_if_failed(job)
                return condition(job, "Complete") == "True" and job
            job = self.wait("the other job is complete", complete)
        self.assertEqual(self.digest_on_one_machine(10), job["status"]["model"]["digest"])

    def test_7_behind_the_watchdog_that_admits_one_request(self):
        """In http mode; what comes beside a slice's request is refused with 429 and asked again."""
        folder = self.folder / "watchdog"
        folder.mkdir()
        self.script("load-image", *map(str, watchdog_images.build(self.config, self.images, folder)))
        self.create("watched", 10, {"podTemplate": {"spec": {"containers": [
            {"name": program, "image": watchdog_images.name_of(program),
             "env": [{"name": "max_inflight", "value": "1"}]} for program in watchdog_images.PROGRAMS]}}})
        self.running("watched", 1)
        pod = self.pods("watched")[0]
        names = {each for pid in pod_processes.of_pod(self.cluster, pod["metadata"]["uid"])
                 for each in [open(f"/proc/{pid}/comm").read().strip()]}
        self.assertIn("fwatchdog", names)
        job = self.complete("watched")
        self.assertEqual(self.digest_on_one_machine(10), job["status"]["model"]["digest"])
        self.assertEqual(0, job["status"]["execution"]["incarnation"])
        self.nothing_left("watched")

    # --- What is wrong is told in one sentence, before anything starts.

    def check(self, *flags):
        """What `--check` misses."""
        done = subprocess.run(
            [*self.cluster.network.prefix(network.LAB), self.bin / "lambdadnn-operator", "--check", "--kubeconfig",
             self.config.kubeconfig(), "--backend", self.BACKEND, "--platform", self.folder / "platform.yaml", *flags],
            capture_output=True, text=True)
        self.assertNotEqual(0, done.returncode, done.stdout)
        return [line for line in done.stdout.splitlines() if line.startswith("missing")]

    def test_a_check_names_what_is_wrong_with_the_gateway(self):
        wrong = self.folder / "wrong"
        wrong.mkdir()
        for name, value in (("user", openfaas.USER), ("password", "guessed")):
            (wrong / f"basic-auth-{name}").write_text(value)
        right = ("--openfaas-auth-dir", self.folder / "gateway")
        for words, flags in (
                ("the gateway refuses the credentials", ("--openfaas-auth-dir", wrong)),
                ("time-out of OpenFaaS that was given is 1 s", (*right, "--openfaas-timeout-seconds", "1"))):
            (line,) = self.check("--openfaas-gateway", openfaas.address(), *flags)
            self.assertIn(words, line)
        (line,) = self.check("--openfaas-gateway", f"http://{settings.S3_ADDRESS}", *right)
        self.assertIn("is no gateway of OpenFaaS; set --openfaas-gateway to its URL", line)

    def refused(self, name, kind):
        """The message of the job's condition, which no function was made for."""
        def told():
            found = [each for each in self.job(name).get("status", {}).get("conditions", [])
                     if each["type"] == kind]
            return found and found[0]["message"]
        message = self.wait(f"{name} is refused", told)
        self.assertFalse(self.functions())
        return message

    def test_b_a_gateways_timeout_that_is_too_short(self):
        self.kube.apply_objects(openfaas.objects(timeout="1s"))
        self.addCleanup(self.until_it_answers)
        self.addCleanup(openfaas.restore, self.kube)
        openfaas.wait_ready(self.kube)
        with self.other_operator():
            self.create("cut-off", 4)
            self.assertRegex(self.refused("cut-off", "Accepted"),
                             r"_timeout of OpenFaaS' container \S+ is 1 s, and a request to a function takes up to 2 s")
            self.remove("cut-off")

    def test_d_more_functions_than_the_gateway_allows(self):
        with self.other_operator(flags=("--openfaas-max-functions", "3")):
            self.create("too-many", 4)
            self.assertIn("at most 3 functions (--openfaas-max-functions)", self.refused("too-many", "Provisioned"))
            self.remove("too-many")

    # --- Figures of docs/benchmarks.md.

    def deploy_bare(self, functions):
        """Seconds until functions that nobody asks anything are available; {name: more fields}."""
        began = time.monotonic()
        for name, more in functions.items():
            status, text = self.gateway("POST", "/system/functions", {
                "service": name, "namespace": openfaas.FUNCTIONS, **more})
            self.assertEqual(202, status, text)
            self.addCleanup(self.gateway, "DELETE", "/system/functions", {"functionName": name})
        path = f"{DEPLOYMENTS}?labelSelector=faas_function"
        self.wait("they are available", lambda: sum(
            each["metadata"]["name"] in functions and bool(each["status"].get("availableReplicas"))
            for each in self.kube.get(path)["items"]) == len(functions), every=0.05)
        seconds = time.monotonic() - began
        for name in functions:
            self.gateway("DELETE", "/system/functions", {"functionName": name})
        self.wait("they are gone", lambda: not self.kube.get(self.PODS)["items"])
        return seconds

    def bare_functions(self):
        """As many as the job has, of its images and with its quotas."""
        def function(program, memory_mib, cores):
            amounts = {"memory": f"{memory_mib}Mi", "cpu": f"{round(cores * 1000)}m"}
            return {"image": f"dev.local/lambdadnn-{program}:{TAG}", "limits": amounts, "requests": amounts,
                    "envVars": {"LAMBDADNN_JOB_KEY": "bare", "LAMBDADNN_BIND": "0.0.0.0"}}
        return {**{f"bare-worker-{rank}": function("worker", *SIZES["workers"]) for rank in range(4)},
                **{f"bare-server-{rank}": function("server", *SIZES["servers"]) for rank in range(3)}}

    def milestones(self, name):
        """Seconds from a job's creation until each is seen, in their order."""
        began, seen = time.monotonic(), {}
        self.create(name, 100)

        def look():
            pods = self.pods(name)
            status = self.job(name).get("status", {})
            reached = {
                "accepted": condition({"status": status}, "Accepted") == "True",
                "planned": bool(status.get("plan")),
                "functions there": len(pods) == len(RANKS),
                "functions ready": len(pods) == len(RANKS) and all(
                    condition(pod, "Ready") == "True" for pod in pods),
                "slices asked for": bool(status.get("execution", {}).get("functions")),
                "first iteration": status.get("progress", {}).get("iteration", 0) >= 1}
            for what, there in reached.items():
                if there:
                    seen.setdefault(what, time.monotonic() - began)
            return reached["first iteration"]
        self.wait("the first iteration", look, every=0.02)
        return seen

    def test_c_from_creation_to_the_first_iteration(self):
        """Beside as many bare functions of the same images and quotas, by turns."""
        bare, jobs = [], []
        for turn in range(3):
            bare.append(self.deploy_bare(self.bare_functions()))
            name = f"started-{turn}"
            jobs.append(self.milestones(name))
            self.remove(name)
            self.nothing_left()
            print(f"figures: bare functions available after {bare[-1]:.2f} s; job: "
                  + ", ".join(f"{what} {seconds:.2f}" for what, seconds in jobs[-1].items())
                  + f" s; load {os.getloadavg()[0]:.1f}", flush=True)
        first = statistics.median(each["first iteration"] for each in jobs)
        print(f"figures: created to first iteration {first:.2f} s, bare functions {statistics.median(bare):.2f} s",
              flush=True)
        self.assertLess(first, 3 * statistics.median(bare) + 3)

    def key_of(self, name):
        """What a job's functions want to be shown."""
        (secret,) = [each for each in self.kube.get(f"/api/v1/namespaces/{openfaas.FUNCTIONS}/secrets")["items"]
                     if each["metadata"]["name"].endswith("-workers-job-key")]
        (value,) = secret["data"].values()
        return base64.b64decode(value).decode()

    def test_8_what_the_hops_cost(self):
        bare = self.deploy_bare({"bare": {"image": "dev.local/test-function:1"}})
        print(f"figures: a function that does nothing is available after {bare:.1f} s", flush=True)
        self.create("started", 100)
        self.running("started", 1)
        pod = self.pods("started")[0]
        function, key = pod["metadata"]["labels"]["faas_function"], self.key_of("started")
        ways = {"gateway and provider": (openfaas.address(), f"/function/{function}"),
                "the pod itself": (f"http://{pod['status']['podIP']}:8080", "")}

        def seconds(way, size):
            """Of a request that the function reads whole and refuses."""
            address, prefix = ways[way]

            def ask():
                began = time.monotonic()
                connection = http.client.HTTPConnection(urllib.parse.urlsplit(address).netloc, timeout=20)
                connection.request("POST", f"{prefix}/v1/slices", bytes(size), {"Authorization": f"Bearer {key}"})
                self.assertEqual(400, connection.getresponse().status)
                connection.close()
                return time.monotonic() - began
            return statistics.median(self.cluster.network.call(network.LAB, ask) for _ in range(15))
        for size in (2 << 10, 2 << 20):
            times = ", ".join(f"{way} {seconds(way, size) * 1000:.1f} ms" for way in ways)
            print(f"figures: a request of {size >> 10} KiB: {times}", flush=True)

    def trained(self, name, model, epochs, functions, memory):
        """The report of a job with such a plan that knows of no others."""
        wanted = {**on_pods.spec(epochs), "model": {"builtin": {"name": model}},
                  "objective": {"fixed": {"functions": functions, "memory": memory}}}
        wanted["dataset"]["renderedDigits"]["train"] = 3000
        del wanted["aggregation"], wanted["profile"]
        # What others measured lies below another prefix.
        self.create_of(name, wanted, prefix=f"{name}-{time.time_ns()}")
        self.complete(name)
        report = self.report(name)
        self.remove(name)
        return report

    def terms_of(self, report):
        """Predicted and actual seconds of each."""
        iterations, terms = report["requests"]["iterations"], report["plan"]["predicted"]
        times = {"computeSeconds": iterations, "communicationSeconds": iterations}
        return ", ".join(f"{term.removesuffix('Seconds')} {float(terms[term]) * times.get(term, 1):.2f}/{actual:.2f}"
                         for term, actual in report["phases"].items() if term in terms)

    def test_9_predicted_and_actual(self):
        """Of three plans, several runs of each, on the measured platform; without what was before the plan."""
        with self.other_operator(self.measured_platform()):
            for model, epochs, functions, memory in PREDICTED:
                errors, actual = [], []
                for run in range(3):
                    report = self.trained(f"predicted-{functions}-{run}", model, epochs, functions, memory)
                    before = report["beforePlan"]["seconds"]
                    predicted = report["predicted"]["seconds"] - before
                    actual.append(report["actual"]["seconds"] - before)
                    errors.append(predicted / actual[-1] - 1)
                    print(f"figures: {functions} x {memory}: predicted {predicted:.1f} s, actual {actual[-1]:.1f} s; "
                          f"{self.terms_of(report)}", flush=True)
                middle = statistics.median(actual)
                print(f"figures: {functions} x {memory}: predicted / actual - 1: median "
                      f"{statistics.median(errors):+.0%}, worst {max(errors, key=abs):+.0%} of {len(errors)} runs; "
                      f"these differ from their median by {min(actual) / middle - 1:+.0%} to "
                      f"{max(actual) / middle - 1:+.0%}",
                      flush=True)
                # Far outside of what repeats differ by.
                self.assertLess(abs(statistics.median(errors)), 1)

# SPDX-License-Identifier: Apache-2.0
"""lambdadnn-operator at a real kube-apiserver: a job that kubectl applies is trained by functions
of a host that outlives the operator, to the bits of `lambdadnn run` of the same file."""
import json
import pathlib
import re
import socket
import subprocess
import time
import unittest

from memory import mebibytes
from operator_support import Cluster, program
from options import OPTIONS
from trace_collector import Collector

EPOCHS = {"epochs": 4}
QUICKSTART = pathlib.Path(__file__).parent.parent.parent / "examples/quickstart/no-files.yaml"


class WithHost(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(OPTIONS.bin)
        cls.addClassCleanup(cls.cluster.close)
        cls.host = cls.cluster.start_host()


class OperatorRun(WithHost):
    def test_an_applied_job_completes_with_the_digest_of_lambdadnn_run(self):
        cluster = self.cluster
        kubeconfig = cluster.operator_user()
        check = subprocess.run(
            [cluster.programs / "lambdadnn-operator", "--check", "--leader-elect", "--kubeconfig",
             kubeconfig, "--host-socket", self.host.socket, "--check-store",
             f"file://{cluster.folder}/store"], capture_output=True, text=True)
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        self.assertNotIn("warning", check.stdout)
        collector = Collector()
        self.addCleanup(collector.close)
        operator = cluster.start_operator(self.host, "--leader-elect", kubeconfig=kubeconfig, environment={
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SERVICE_NAME": "traced",
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20t0ken",
            "OTEL_RESOURCE_ATTRIBUTES": "k8s.pod.name=here"})
        path = cluster.manifest("first", training=EPOCHS)
        cluster.kubectl("apply", "-f", path)
        job = cluster.wait_complete("first")
        reference = cluster.bench.run(job=path)
        self.assertEqual(job["status"]["model"]["digest"], reference.digest())
        self.assertEqual(job["status"]["phase"], "Complete")

        # Nothing is left but results, and the key of the job is gone.
        self.assertEqual(cluster.functions(), {})
        keys = cluster.store_keys(job)
        self.assertTrue(keys)
        self.assertEqual([key for key in keys if "/results/" not in key], [])
        secrets = cluster.kubectl("get", "secrets", "-o", "name").stdout
        self.assertNotIn("first-lambdadnn-key", secrets)

        # People see what happened without logs.
        described = cluster.kubectl("describe", "stj", "first").stdout
        for word in ("Complete", "Planned", "Events:"):
            self.assertIn(word, described)
        self.assertEqual(operator.stop(), 0)
        self.is_traced(job, collector)
        self.assertNotIn("t0ken", operator.text())

    def is_traced(self, job, collector):
        """The operator sent one trace of the job, whose id is the job's uid, with every part once."""
        path, headers, _ = collector.requests[0]
        self.assertEqual(path, "/v1/traces")
        self.assertEqual(headers["authorization"], "Bearer t0ken")
        self.assertEqual(headers["Content-Type"], "application/json")
        trace = job["metadata"]["uid"].replace("-", "")
        # Jobs of other tests that ended just before are told of again.
        spans = [told for told in collector.spans() if told[1]["traceId"] == trace]
        ids = [span["spanId"] for _, span, _ in spans]
        self.assertEqual(len(ids), len(set(ids)))
        for resource, span, _ in spans:
            self.assertEqual((resource["service.name"], resource["k8s.pod.name"]), ("traced", "here"))
            self.assertLessEqual(int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"]))
            if "parentSpanId" in span:
                self.assertIn(span["parentSpanId"], ids)
        [root] = [of for _, span, of in spans if "parentSpanId" not in span]
        self.assertEqual((root["lambdadnn.job.name"], root["lambdadnn.job.outcome"]), ("first", "Complete"))
        slices = [of for _, span, of in spans if span["name"] == "slice"]
        self.assertEqual(len(slices), job["status"]["usage"]["slices"])

    def test_a_collector_that_hangs_or_is_away_delays_no_job(self):
        cluster = self.cluster
        with socket.create_server(("127.0.0.1", 0)) as hangs:
            for name, url in (("hangs", f"http://127.0.0.1:{hangs.getsockname()[1]}"),
                              ("away", "http://127.0.0.1:1")):
                operator = cluster.start_operator(
                    self.host, kubeconfig=cluster.operator_user(name),
                    environment={"OTEL_EXPORTER_OTLP_ENDPOINT": url})
                cluster.create_job(cluster.manifest(name, training={"epochs": 1}))
                cluster.wait_complete(name, seconds=60)
                self.assertEqual(operator.series("lambdadnn_spans_exported_total"), [])
                self.assertEqual(operator.stop(), 0)

    def test_what_is_wrong_with_the_variables_of_traces_is_said_at_the_start(self):
        operator = self.cluster.start_operator(
            self.host, environment={"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"})
        self.assertNotEqual(operator.process.wait(20), 0)
        self.assertIn("OTEL_EXPORTER_OTLP_ENDPOINT: is no URL of a collector", operator.text())

    def test_a_check_names_what_is_missing(self):
        cluster = self.cluster
        kubeconfig = cluster.operator_user("nobody", sets=("jobs",), without=("jobs", 1, "patch"))
        check = subprocess.run(
            [cluster.programs / "lambdadnn-operator", "--check", "--leader-elect", "--kubeconfig",
             kubeconfig, "--host-socket", "/nowhere/host.sock"], capture_output=True, text=True)
        self.assertEqual(check.returncode, 4, check.stdout)
        for words in ("may not patch serverlesstrainingjobs/status in lambdadnn.io",
                      "may not update leases", "missing  function host", "warning  CRD"):
            self.assertIn(words, check.stdout)

    def test_in_named_namespaces_with_roles_alone(self):
        """No right in the whole cluster; the jobs of other namespaces are left alone."""
        cluster = self.cluster
        for name in ("team-a", "team-b", "other"):
            cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        kubeconfig = cluster.operator_user("teams", sets=("jobs", "lease"),
                                           namespaces=("team-a", "team-b"))
        operator = cluster.start_operator(
            self.host, "--namespaces", "team-a,team-b", "--leader-elect", "--lease-namespace",
            "team-a", "--lease-name", "teams", kubeconfig=kubeconfig)
        cluster.create_job(cluster.manifest("mine", namespace="other", training={"epochs": 1}))
        for name in ("team-a", "team-b"):
            cluster.create_job(cluster.manifest("mine", namespace=name, training={"epochs": 1}))
            cluster.wait_complete("mine", namespace=name)
        self.assertEqual(cluster.get("mine", "other")["status"], {"observedGeneration": -1})
        self.assertEqual(operator.stop(), 0)


class Measured(WithHost):
    def test_the_quickstart_job_is_measured_planned_for_its_deadline_and_trained(self):
        """Nothing of it is pinned. A run of the same file with the plan that the operator chose ends
        with the same bits. Its deadline is ten times the file's: others use this machine, and
        whether the job is in time is for the timing tier."""
        cluster = self.cluster
        operator = cluster.start_operator(self.host, "--leader-elect",
                                          kubeconfig=cluster.operator_user("quickstart"))
        text, found = re.subn("(deadlineSeconds: .*)", r"\g<1>0", QUICKSTART.read_text())
        self.assertEqual(found, 1)
        manifest = cluster.folder / "quickstart.yaml"
        manifest.write_text(text)
        cluster.kubectl("apply", "-f", manifest)
        job = cluster.wait_complete("digits-drawn", seconds=240)
        status = job["status"]
        self.assertIn("trainingRate", status["profile"])
        metrics = {told["name"]: float(told["value"]) for told in status["progress"]["metrics"]}
        self.assertGreaterEqual(metrics["testAccuracy"], 0.97)
        plan = status["plan"]
        self.assertLessEqual(float(plan["predicted"]["seconds"]),
                             job["spec"]["objective"]["deadlineSeconds"])
        tree = plan["aggregation"]
        reference = cluster.bench.run(
            "--set", f"spec.objective={{fixed: {{functions: {plan['functions']}, "
            f"memory: {plan['memory']}}}}}",
            "--set", f"spec.aggregation={{shards: {tree['shards']}, spread: {tree['spread']}, "
            f"layers: {json.dumps(tree['layers'])}}}", job=QUICKSTART)
        self.assertEqual(reference.code, 0, reference.text())
        self.assertEqual(status["model"]["digest"], reference.digest())
        self.assertEqual(operator.stop(), 0)

    def test_it_is_small_and_quick(self):
        """Also prints the figures of docs/benchmarks.md."""
        cluster = self.cluster
        binary = cluster.programs / "lambdadnn-operator"
        stripped = cluster.folder / "stripped"
        subprocess.run(["strip", "-o", stripped, binary], check=True)
        megabytes = stripped.stat().st_size / 1e6
        operator = cluster.start_operator(self.host)
        cluster.wait_for("ready", lambda: operator.page("health", "/readyz") == (200, "ok\n"))
        time.sleep(2)
        idle = operator.metric("process_resident_memory_bytes") / 1e6
        times = []
        for number in range(5):
            name = f"quick-{number}"
            path = cluster.manifest(name, training={"epochs": 1})
            begin = time.monotonic()
            cluster.create_job(path)
            cluster.wait_for("the first slice", lambda: cluster.condition(
                cluster.get(name), "Running") or cluster.condition(cluster.get(name), "Complete"),
                every=0.02)
            times.append(time.monotonic() - begin)
            cluster.wait_complete(name)
        writes = sum(value for labels, value in operator.series("rest_client_requests_total")
                     if 'method="GET"' not in labels)
        print(f"\noperator: {megabytes:.1f} MB stripped, {idle:.0f} MB resident when idle, "
              f"{operator.metric('process_resident_memory_bytes') / 1e6:.0f} MB after 5 jobs; "
              f"apply to first slice {sorted(times)[2]:.2f} s (median of 5, "
              f"{min(times):.2f} to {max(times):.2f}); {writes / 5:.0f} writes a job, events "
              f"included", flush=True)
        self.assertLess(megabytes, 40)
        self.assertLess(idle, 50)
        text = operator.page("metrics", "/metrics")[1]
        self.assertIn('lambdadnn_jobs{phase="Complete"}', text)
        self.assertIn('lambdadnn_job_slices_total{name="quick-0",namespace="default"} 6', text)
        self.assertIn('controller_runtime_reconcile_total{controller="serverlesstrainingjob"', text)
        self.shows_what_status_says(operator, "quick-0")
        check = subprocess.run([program("promtool"), "check", "metrics"], input=text,
                               capture_output=True, text=True)
        self.assertEqual((check.returncode, check.stderr), (0, ""))
        cluster.api("DELETE", cluster.job_path("quick-0"))
        cluster.wait_for("its series end with the job", lambda: 'name="quick-0"' not in
                         operator.page("metrics", "/metrics")[1])
        self.assertEqual(operator.stop(), 0)

    def shows_what_status_says(self, operator, name):
        status = self.cluster.get(name)["status"]
        plan, usage = status["plan"], status["usage"]
        said = {"plan_revision": plan["revision"], "functions": plan["functions"],
                "function_memory_bytes": mebibytes(plan["memory"]) << 20, "ready_functions": 0,
                "iterations": plan["iterations"], "iteration": plan["iterations"],
                "predicted_seconds": float(plan["predicted"]["seconds"]),
                "predicted_cost_dollars": float(plan["predicted"]["cost"]),
                "loss": status["progress"]["loss"], "cost_dollars": usage["cost"],
                "billed_gib_seconds_total": usage["billedGiBSeconds"],
                "slices_total": usage["slices"], "restarts_total": usage["restarts"],
                "cold_starts_total": usage["coldStarts"],
                "store_requests_total": usage["storeRequests"],
                "store_bytes_total": usage["storeBytes"]}
        for metric, value in said.items():
            with self.subTest(metric):
                shown = [value for labels, value in operator.series(f"lambdadnn_job_{metric}")
                         if f'name="{name}"' in labels]
                self.assertEqual(len(shown), 1)
                self.assertAlmostEqual(shown[0] / (float(value) or 1), 1 if float(value) else 0, 5)

# SPDX-License-Identifier: Apache-2.0
"""`kubectl lambdadnn` as people use it, on a real API server. No operator runs: the test writes the
status that one would."""
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

from bad_manifests import bad_manifests
from kube_api import JOBS, ClusterTest, condition, job_id, job_path
from options import OPTIONS

ROOT = pathlib.Path(__file__).resolve().parents[2]
MINIMAL = ROOT / "tests/data/good/minimal.yaml"
COMPLETE, FAILED, USAGE, INFEASIBLE, ENVIRONMENT, INTERRUPTED = 0, 1, 2, 3, 4, 130


class KubectlLambdadnn(ClusterTest):
    own_plane = "kube-apiserver"  # one test restarts it

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # kubectl finds its plugins on the PATH.
        cls.kubectl.environment["PATH"] = f"{OPTIONS.bin}:{os.environ['PATH']}"

    def tearDown(self):
        for namespace in ("default", "team"):
            self.api.call("DELETE", JOBS.format(namespace))

    def command(self, *words, program="kubectl-lambdadnn", environment=None, stdin=None):
        done = subprocess.run([OPTIONS.bin / program, *map(str, words)], capture_output=True, text=True,
                              env={**self.kubectl.environment, **(environment or {})},
                              cwd=self.folder, timeout=60, input=stdin)
        self.assertNotIn("\x1b", done.stdout + done.stderr, "colour without a terminal")
        return done

    def says(self, done, code, *parts):
        """The exit code, and all of the parts in what was printed."""
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for part in parts:
            self.assertIn(part, done.stdout + done.stderr)
        if code not in (COMPLETE, INTERRUPTED):
            self.assertEqual(done.stderr.count("error: "), 1, done.stderr)

    def begin(self, *words):
        return subprocess.Popen([OPTIONS.bin / "kubectl-lambdadnn", *map(str, words)], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.kubectl.environment, cwd=self.folder)

    def line(self, process, part):
        """The next line of output with this in it."""
        for line in process.stdout:
            if part in line:
                return line
        self.fail(f"{part} never came; it said {process.stderr.read()}")

    def delete(self, name, namespace="default"):
        self.api.call("DELETE", job_path(name, namespace))

    def test_submit_makes_the_job_and_says_what_is_wrong(self):
        done = self.command("submit", "-f", MINIMAL, "-n", "team")
        self.says(done, COMPLETE)
        self.assertEqual(done.stdout, "serverlesstrainingjob.lambdadnn.io/digits created\n")
        self.assertEqual(self.api.get(job_path("digits", "team"))["spec"]["training"]["loss"],
                         "CrossEntropy")
        self.says(self.command("submit", "-f", MINIMAL, "-n", "team"), USAGE,
                  "there is a job digits in namespace team already")
        other = self.command("submit", "-f", MINIMAL, "-n", "team", "--set",
                             "metadata.name=others", "--set", "spec.training.epochs=7", "-o", "json")
        self.says(other, COMPLETE)
        self.assertEqual(json.loads(other.stdout)["spec"]["training"]["epochs"], 7)
        bad = self.folder / "epochs-zero.yaml"
        bad.write_text(bad_manifests()["epochs-zero"].text)
        self.says(self.command("submit", "-f", bad), USAGE,
                  "epochs-zero.yaml:12: spec.training.epochs: 0 is too small")
        self.says(self.command("submit", "-f", MINIMAL, "-n", "nowhere"), ENVIRONMENT, "nowhere")
        self.says(self.command("submit", "-f", "-", "-n", "team", stdin="{"), USAGE)

    def test_status_shows_tables_words_and_objects(self):
        path = self.minimal("shown")
        self.minimal("fresh", "team")
        self.write_status(
            path, phase="Running",
            progress={"iteration": 120, "iterations": 300, "loss": "0.3125",
                      "progressPercentage": 40, "estimatedRemainingSeconds": 41},
            summary={"functions": "4/4", "memory": "1728Mi", "epoch": "2/3", "loss": "0.3125",
                     "eta": "41s", "cost": "$0.0042", "reason": "Training", "plan": "4 x 1728Mi"},
            conditions=[condition("Running", "Training", "slices are under way")])
        table = self.command("status").stdout.splitlines()
        self.assertEqual(table[0].split(), ["NAME", "STATE", "FUNCTIONS", "MEMORY", "EPOCH", "LOSS",
                                            "ETA", "COST", "AGE"])
        self.assertRegex(table[1], r"^shown +Running +4/4 +1728Mi +2/3 +0.3125 +41s +\$0.0042 +\d+s$")
        everywhere = self.command("status", "-A", "-o", "wide")
        self.says(everywhere, COMPLETE, "NAMESPACE", "REASON", "RESTARTS", "team", "fresh", "<none>")
        self.assertEqual(self.command("status", "-o", "name").stdout,
                         "serverlesstrainingjob.lambdadnn.io/shown\n")
        self.assertEqual(json.loads(self.command("status", "-o", "json").stdout)["kind"], "List")
        self.says(self.command("status", "shown", "-o", "yaml"), COMPLETE, 'phase: "Running"')
        self.says(self.command("status", "shown"), COMPLETE, "shown (namespace default): Running",
                  "slices are under way", "iteration 120/300")
        self.says(self.command("status", "nobody"), ENVIRONMENT,
                  "there is no job nobody in namespace default; lambdadnn status -A lists them all")
        self.says(self.command("status", "-n", "empty"), COMPLETE, "no jobs in namespace empty")
        # As kubectl finds it.
        plugin = self.kubectl.run("lambdadnn", "status", "shown", "-o", "name")
        self.assertEqual(plugin.stdout, "serverlesstrainingjob.lambdadnn.io/shown\n")

    def test_a_watched_table_grows_with_each_change(self):
        path = self.minimal("watched")
        process = self.begin("status", "-w")
        try:
            self.line(process, "watched   <none>")
            self.write_status(path, phase="Planning")
            self.line(process, "Planning")
            self.write_status(path, phase="Running")
            self.line(process, "Running")
            self.delete("watched")
            self.line(process, "Deleted")
        finally:
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(20), INTERRUPTED, process.stderr.read())
            process.stdout.close()
            process.stderr.close()

    def wait_for(self, file_name, *statuses):
        """submit --wait, with the statuses written one after the other: (exit code, output)."""
        process = self.begin("submit", "-f", MINIMAL, "--wait", "--set",
                             f"metadata.name={file_name}")
        self.line(process, "created")
        for status in statuses:
            self.write_status(job_path(file_name), **status)
            time.sleep(0.3)
        output, errors = process.communicate(timeout=30)
        self.delete(file_name)
        return process.returncode, output + errors

    def test_submit_waits_with_the_exit_codes_of_run(self):
        running = {"phase": "Running", "conditions": [condition("Running", "Training")]}
        provisioned = {"phase": "Planning", "conditions": [
            condition("Provisioned", "Planned", "4 functions of 1728 MiB")]}
        code, output = self.wait_for("complete", provisioned, running, {
            "phase": "Complete", "conditions": [condition("Complete", "Trained", "all is done")]})
        self.assertEqual(code, COMPLETE, output)
        self.assertIn("Planned: 4 functions of 1728 MiB", output)
        self.assertIn("Trained: all is done", output)
        for reason, expected in (("BackoffLimitExceeded", FAILED), ("Infeasible", INFEASIBLE),
                                 ("InvalidSpec", USAGE), ("FunctionStartFailed", ENVIRONMENT)):
            with self.subTest(reason):
                code, output = self.wait_for("failed", {
                    "phase": "Failed", "conditions": [condition("Failed", reason, "that is why")]})
                self.assertEqual(code, expected, output)
                self.assertIn(f"error: job failed failed: {reason}: that is why", output)

    def test_an_interrupt_ends_the_waiting_alone(self):
        process = self.begin("submit", "-f", MINIMAL, "-w")
        self.line(process, "created")
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=20)
        self.assertEqual(process.returncode, INTERRUPTED)
        self.assertIn("the job runs on", output)
        self.assertFalse(self.api.get(job_path("digits"))["spec"]["suspend"])

    def test_a_job_that_is_deleted_under_the_watcher(self):
        process = self.begin("submit", "-f", MINIMAL, "-w")
        self.line(process, "created")
        self.delete("digits")
        _, errors = process.communicate(timeout=20)
        self.assertEqual(process.returncode, ENVIRONMENT)
        self.assertIn("error: job digits in namespace default was deleted", errors)

    def test_waiting_survives_a_restart_of_the_api_server(self):
        process = self.begin("submit", "-f", MINIMAL, "-w")
        self.line(process, "created")
        self.plane.kill("kube-apiserver")
        time.sleep(1)
        self.plane.start("kube-apiserver")
        self.plane.wait_ready()
        self.api.close()  # connects again
        self.write_status(job_path("digits"), phase="Complete",
                          conditions=[condition("Complete", "Trained", "all is done")])
        output, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, COMPLETE, output + errors)

    def test_suspend_and_resume(self):
        path = self.minimal("digits")
        self.says(self.command("suspend", "digits"), COMPLETE, "lambdadnn.io/digits suspended")
        self.assertTrue(self.api.get(path)["spec"]["suspend"])
        self.says(self.command("suspend", "digits"), COMPLETE, "is suspended already")
        self.says(self.command("resume", "digits"), COMPLETE, "resumed")
        self.assertFalse(self.api.get(path)["spec"]["suspend"])
        named = "serverlesstrainingjob.lambdadnn.io/digits\n"
        self.assertEqual(self.command("suspend", "digits", "-o", "name").stdout, named)
        done = self.command("resume", "digits", "-o", "json")
        self.assertFalse(json.loads(done.stdout)["spec"]["suspend"])
        self.says(self.command("resume", "nobody"), ENVIRONMENT, "there is no job nobody")
        self.write_status(path, conditions=[condition("Complete", "Trained")])
        self.says(self.command("suspend", "digits"), ENVIRONMENT,
                  "job digits is complete and cannot be suspended")

    def test_delete_waits_for_the_clean_up(self):
        path = self.minimal("digits")
        self.says(self.command("delete", "digits"), COMPLETE, "lambdadnn.io/digits deleted")
        self.assertEqual(self.api.call("GET", path)[0], 404)
        path = self.minimal("digits")
        self.api.patch(path, {"metadata": {"finalizers": ["lambdadnn.io/cleanup"]}})
        self.says(self.command("delete", "digits", "--timeout", "1"), ENVIRONMENT,
                  "job digits is being deleted still; its clean-up waits for the operator")
        self.says(self.command("delete", "digits", "--no-wait"), COMPLETE, "is being deleted")
        self.assertEqual(self.command("delete", "digits", "--no-wait", "-o", "name").stdout,
                         "serverlesstrainingjob.lambdadnn.io/digits\n")
        self.says(self.command("status"), COMPLETE, "Terminating")
        cleaned = threading.Timer(1, lambda: self.kubectl.ok(
            "patch", "stj", "digits", "--type=merge", "-p", '{"metadata":{"finalizers":null}}'))
        cleaned.start()
        self.says(self.command("delete", "digits"), COMPLETE, "deleted")
        cleaned.join()
        self.says(self.command("delete", "digits"), ENVIRONMENT, "there is no job digits")

    def test_events_are_those_of_the_job(self):
        uid = self.api.get(self.minimal("digits"))["metadata"]["uid"]
        for number, name in enumerate(("digits", "other")):
            code, answer = self.api.create("/apis/events.k8s.io/v1/namespaces/default/events", {
                "apiVersion": "events.k8s.io/v1", "kind": "Event",
                "metadata": {"name": f"e{number}"}, "eventTime": "2026-01-31T12:00:00.000000Z",
                "reportingController": "lambdadnn.io/controller", "reportingInstance": "test",
                "action": "Provisioned", "reason": "Planned", "type": "Normal",
                "note": f"4 functions for {name}",
                "regarding": {"apiVersion": "lambdadnn.io/v1alpha1", "uid": uid, "name": name,
                              "kind": "ServerlessTrainingJob", "namespace": "default"}})
            self.assertEqual(code, 201, answer)
        done = self.command("events", "digits")
        self.says(done, COMPLETE, "LAST SEEN", "Planned", "4 functions for digits")
        self.assertNotIn("other", done.stdout)
        self.says(self.command("events"), COMPLETE, "4 functions for other")
        self.says(self.command("events", "-n", "team"), COMPLETE, "no events about jobs")
        self.says(self.command("events", "-A", "-o", "wide"), COMPLETE, "NAMESPACE", "default",
                  "JOB", "lambdadnn.io/controller", "4 functions for other")
        self.says(self.command("events", "digits", "-o", "name"), COMPLETE,
                  "event.events.k8s.io/e0\n")
        self.says(self.command("events", "digits", "-A"), USAGE, "-A is for all jobs")

    def test_plan_asks_the_cluster(self):
        job = ROOT / "tests/data/good/given-profile.yaml"
        self.says(self.command("plan", "-f", job), ENVIRONMENT, "does not publish its platform")
        self.api.create("/api/v1/namespaces", {"metadata": {"name": "lambdadnn-system"}})
        platform = (ROOT / "examples/platforms/lambda.yaml").read_text()
        code, answer = self.api.create("/api/v1/namespaces/lambdadnn-system/configmaps", {
            "metadata": {"name": "lambdadnn-platform"}, "data": {"platform.yaml": platform}})
        self.assertEqual(code, 201, answer)
        # The cluster's own limits are not asked for.
        of_cluster = self.command("plan", "-f", job, "-o", "json", "--set", "spec.backend=Local")
        of_file = self.command("plan", "-f", job, "-o", "json", "--platform",
                               ROOT / "examples/platforms/lambda.yaml", program="lambdadnn")
        plans = [json.loads(of.stdout) for of in (of_cluster, of_file)]
        for plan in plans:
            del plan["search"]["seconds"]  # on the clock
        self.assertEqual(*plans)
        self.assertIn(of_cluster.returncode, (COMPLETE, INFEASIBLE))
        # A job without a profile: the cluster has measured it.
        self.says(self.command("plan", "-f", MINIMAL), USAGE, "spec.profile is missing")
        self.command("submit", "-f", MINIMAL)
        self.write_status(job_path("digits"), profile={
            "trainingSamples": 12000, "trainingBytes": 9408000, "modelBytes": 200000,
            "trainingRate": {"slope": "1", "intercept": "10"}})
        planned = self.command("plan", "-f", MINIMAL)
        self.assertIn(planned.returncode, (COMPLETE, INFEASIBLE), planned.stderr)

    def test_report_fetches_results_from_the_store(self):
        store = self.folder / "store"
        path = self.minimal("digits", objectStore={"uri": f"file://{store}"})
        place = job_id(self.api.get(path))
        self.says(self.command("report", "digits"), ENVIRONMENT, "has no report before its end")
        self.write_status(path, conditions=[condition("Complete", "Trained")])
        self.says(self.command("report", "digits"), ENVIRONMENT, "no results could be read")
        results = store / f"lambdadnn/default/{place}/results"
        results.mkdir(parents=True)
        (results / "report.json").write_text(json.dumps({
            "job": {"name": "digits"}, "predicted": {"seconds": 10, "cost": 0.001},
            "actual": {"seconds": 11, "cost": 0.0011}}))
        (results / "model.safetensors").write_bytes(b"model")
        out = self.folder / "fetched"
        self.says(self.command("report", "digits", "--out", out), COMPLETE, "predicted",
                  f"model:  {out}/model.safetensors")
        self.assertEqual((out / "model.safetensors").read_bytes(), b"model")
        self.assertIn("<html", (out / "report.html").read_text())
        # The name is a job's also for `lambdadnn`, unless there is such a folder here.
        self.says(self.command("report", "digits", "-o", "json", program="lambdadnn"), COMPLETE)
        self.says(self.command("report", "nobody", program="lambdadnn"), ENVIRONMENT,
                  "there is no job nobody")

    def test_logs_say_where_they_are(self):
        self.minimal("digits", backend="Local")
        self.says(self.command("logs", "digits"), USAGE, "name its socket with --host-socket")
        self.minimal("pods", backend="Knative")
        # There are none yet.
        self.assertEqual(self.command("logs", "pods").stdout, "")
        self.says(self.command("logs", "digits", "--host-socket", "/nowhere.sock"), ENVIRONMENT,
                  "/nowhere.sock")
        # Which backend its operator runs, the object does not tell: pods, until functions run and
        # none is a pod.
        path = self.minimal("either")
        self.assertEqual(self.command("logs", "either").stdout, "")
        self.write_status(path, workers={"desired": 2, "ready": 2})
        self.says(self.command("logs", "either"), USAGE, "name its socket with --host-socket")
        self.says(self.command("logs", "either", "--host-socket", "/nowhere.sock"), ENVIRONMENT,
                  "/nowhere.sock")

    def test_clusters_that_are_not_there(self):
        self.says(self.command("status", environment={"KUBECONFIG": "/nowhere/config"}),
                  ENVIRONMENT, "no cluster is configured")
        self.says(self.command("status", "--context", "mars"), USAGE, "mars")
        config = json.loads(pathlib.Path(self.plane.kubeconfig).read_text())
        config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
        dead = self.folder / "dead.conf"
        dead.write_text(json.dumps(config))
        self.says(self.command("status", "--kubeconfig", dead), ENVIRONMENT,
                  "the API server https://127.0.0.1:1 does not answer")

    def test_who_may_not_is_told_so(self):
        user = self.plane.user("reader", "/CN=reader")
        self.says(self.command("status", "--kubeconfig", user), ENVIRONMENT,
                  'User "reader" cannot list resource "serverlesstrainingjobs"')

    def test_zz_a_cluster_that_knows_no_jobs(self):
        self.kubectl.ok("delete", "crd", "serverlesstrainingjobs.lambdadnn.io", "--timeout=30s")
        done = self.command("doctor")
        self.assertEqual(done.returncode, ENVIRONMENT, done.stdout)
        self.assertIn("CRD", done.stdout)
        self.says(self.command("status"), ENVIRONMENT,
                  "knows no ServerlessTrainingJobs; install their definition")

    def test_doctor_says_what_is_missing(self):
        done = self.command("doctor", "--store", f"file://{self.folder}/probed")
        self.says(done, COMPLETE, "CRD", "operator", "cannot be judged", "platform", "object store")
        user = self.plane.user("visitor", "/CN=visitor")
        done = self.command("doctor", "--kubeconfig", user)
        self.assertEqual(done.returncode, ENVIRONMENT, done.stdout)
        self.assertIn("missing", done.stdout)

    def test_help_and_completion(self):
        done = self.command("--help")
        self.says(done, COMPLETE, "kubectl lambdadnn", "submit")
        self.says(self.command("sttus"), USAGE, 'did you mean "status"?; see kubectl lambdadnn')
        self.minimal("digits")
        script = self.command("completion", "bash").stdout
        probe = script + (
            "complete_words() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=();\n"
            "  _lambdadnn; printf '%s\\n' \"${COMPREPLY[@]}\"; }\n"
            "complete_words lambdadnn sus\ncomplete_words lambdadnn status --wa\n"
            "complete_words lambdadnn delete dig\n")
        done = subprocess.run(["bash", "-c", probe], capture_output=True, text=True,
                              env=self.kubectl.environment, cwd=self.folder)
        self.assertEqual(done.stdout.split(), ["suspend", "--watch", "digits"], done.stderr)
        self.says(self.command("completion", "tcsh"), USAGE, "tcsh")

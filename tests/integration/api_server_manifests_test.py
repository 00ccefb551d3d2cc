# SPDX-License-Identifier: Apache-2.0
"""The CRD on a real API server: what it refuses and with which sentence, what it keeps, what it
lets change, what kubectl shows of it.

--oldest asks the oldest Kubernetes that docs/operations.md names.

tests/data/bad_manifests.yaml holds what `lambdadnn` says of each. Where an API server says the same, nothing
more is needed; where it says it in other words these stand beside it, as `server`.
"""
import concurrent.futures
import copy
import json
import pathlib
import re
import subprocess
import time

from bad_manifests import write_bad_manifests
from kube_api import JOBS, ClusterTest, condition
from options import OPTIONS

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOOD = ROOT / "tests/data/good"
# What an API server cannot see, and why; `lambdadnn` refuses it.
BEYOND_THE_SERVER = {
    "duplicate-key": "kubectl reads the last of two equal keys",
    "epochs-octal": "kubectl reads YAML 1.1, where 010 is 8",
    "merge-key": "kubectl merges <<; the server sees the result",
    "model-parameter-float": "CEL cannot look into the free fields of model.builtin.parameters",
    "model-parameter-text": "CEL cannot look into the free fields of model.builtin.parameters",
    "profile-table-order": "the operator refuses it; comparing neighbours is beyond CEL's lists",
    "two-jobs": "two jobs in one file are two objects",
}
# Good ones that are for the command line alone.
FOR_FILES_ONLY = {"relative-paths": "paths relative to the job file"}


def server_lines(text, folder):
    """The API server's problems, each as "field: sentence", in order."""
    text = re.sub(r'^The ServerlessTrainingJob "[^"]*" is invalid: *\n?', "", text.strip())
    lines = []
    for line in text.replace(f"{folder}/", "").splitlines():
        line = line.removeprefix("* ").rstrip()
        # What is wrong is repeated in front of the sentence of a rule: null, or a quoted value.
        line = re.sub(r': Invalid value: (?:"(?:[^"\\]|\\.)*": )?(?![\d"-]|null)', ": ", line)
        if line and not re.match("<nil>: .*some validation rules were not checked", line):
            lines.append(line)
    return sorted(lines)


def fields(lines):
    """What the problems are about."""
    return {line.split(":")[0] for line in lines} - {"<nil>"}


def our_lines(error):
    return sorted(re.sub(r"; found .*", "", re.sub(r"^error: [^:]*:\d*:? ", "", line))
                  for line in error.splitlines())


class OnAnApiServer(ClusterTest):
    @classmethod
    def setUpClass(cls):
        cls.own_plane = "kube-apiserver-oldest" if OPTIONS.oldest else None
        super().setUpClass()

    def dry_run(self, file):
        return self.kubectl.run("apply", "--server-side", "--dry-run=server", "-f", file)

    # ---- bad ones

    def test_bad_manifests_are_refused_with_the_sentences_written_down(self):
        folder = self.folder / "bad"
        manifests = write_bad_manifests(folder)
        self.assertGreaterEqual(len(manifests), 135)
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            said = pool.map(lambda name: self.dry_run(folder / f"{name}.yaml"), manifests)
            answers = dict(zip(manifests, said, strict=True))
        same = 0
        for name, answer in answers.items():
            with self.subTest(name):
                bad = manifests[name]
                if name in BEYOND_THE_SERVER:
                    self.assertEqual(answer.returncode, 0, f"refused by now: {answer.stderr}")
                    self.refused_offline(name, folder, bad)
                    continue
                self.assertNotEqual(answer.returncode, 0, answer.stdout)
                said = server_lines(answer.stderr, folder)
                if said == our_lines(bad.error):
                    if self.own_plane is None:  # an older one may leave out what ours repeats
                        self.assertEqual(bad.server, [], f"{name}: `server` is not needed")
                    same += 1
                elif self.own_plane is None:
                    self.assertEqual(said, bad.server)
                else:  # which has words of its own
                    self.assertEqual(fields(said), fields(bad.server))
        print(f"{len(manifests)} bad manifests: {same} with our sentence, "
              f"{len(manifests) - same - len(BEYOND_THE_SERVER)} with another, "
              f"{len(BEYOND_THE_SERVER)} seen by us alone")

    def refused_offline(self, name, folder, bad):
        ours = subprocess.run([OPTIONS.bin / "lambdadnn", "plan", "-f", f"{name}.yaml"], cwd=folder,
                              capture_output=True, text=True)
        self.assertEqual(ours.returncode, 2)
        self.assertEqual(ours.stderr, bad.error)

    # ---- good ones

    def test_good_manifests_round_trip(self):
        files = [f for f in sorted(GOOD.glob("*.yaml")) if f.stem not in FOR_FILES_ONLY]
        self.assertGreaterEqual(len(files), 20)
        written = self.kubectl.ok("create", "--dry-run=client", "--validate=false", "-o", "json",
                                  *[word for f in files for word in ("-f", f)])
        decoder, objects, at = json.JSONDecoder(), [], 0
        while at < len(written):
            value, at = decoder.raw_decode(written, at)
            objects += value["items"] if value["kind"] == "List" else [value]
            at += len(written[at:]) - len(written[at:].lstrip())
        jobs = [o for o in objects if o["kind"] == "ServerlessTrainingJob"]
        self.assertEqual(len(jobs), len(files))
        for number, job in enumerate(jobs):  # all are called digits
            job["metadata"] = {**job["metadata"], "name": f"good-{number}", "namespace": "team"}
        self.kubectl.ok("apply", "--server-side", "-f", "-",
                        stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": jobs}))
        kept = {job["metadata"]["name"]: job for job in self.api.get(JOBS.format("team"))["items"]}
        for file, job in zip(files, jobs, strict=True):
            with self.subTest(file.stem):
                self.holds_all(kept[job["metadata"]["name"]], job, "")
                # The rules about changes take each for what it was before.
                path = JOBS.format("team") + "/" + job["metadata"]["name"]
                for query, change in (("", {"spec": {"backoffLimit": 9}}),
                                      ("/status", {"status": {"phase": "Running"}})):
                    code, answer = self.api.patch(path + query, change)
                    self.assertEqual(code, 200, answer)
        for name in FOR_FILES_ONLY:
            self.assertNotEqual(self.dry_run(GOOD / f"{name}.yaml").returncode, 0)

    def holds_all(self, kept, given, path):
        if isinstance(given, dict):
            for key, value in given.items():
                if key in ("creationTimestamp", "status"):
                    continue
                self.assertIn(key, kept, path)
                self.holds_all(kept[key], value, f"{path}.{key}")
        else:
            self.assertEqual(kept, given, path)

    # ---- changes

    def test_what_a_running_job_lets_change(self):
        path = self.minimal("running")
        code, _ = self.api.patch(path + "/status", {"status": {"phase": "Running"}})
        self.assertEqual(code, 200)
        runs = "cannot be changed while the job runs; set spec.suspend to true first"
        never = "cannot be changed once the job exists; create another job"
        refused = {
            "model": ({"builtin": {"name": "cnn"}}, never), "dataset": ({"classes": 3}, never),
            "functions": ({"min": 2}, runs), "aggregation": ({"shards": 2}, runs),
            "backend": ("Knative", never),
            "podTemplate": ({"spec": {"nodeSelector": {"disk": "ssd"}}}, runs),
            "addressing": ("Service", runs), "managedBy": ("me", never),
            "profile": ({"trainingSamples": 9000, "modelBytes": 4, "trainingRate": {}}, never)}
        for field, (value, sentence) in refused.items():
            with self.subTest(field):
                code, answer = self.api.patch(path, {"spec": {field: value}}, "?dryRun=All")
                self.assertEqual(code, 422)
                self.assertIn(f"spec.{field}: Invalid value: ", answer["message"])
                self.assertIn(sentence, answer["message"])
        for field, value in {"objective": {"deadlineSeconds": 91},
                             "training": {"epochs": 4}, "checkpoint": {"keep": 9, "intervalSeconds": 5},
                             "suspend": True,
                             "ttlSecondsAfterFinished": 5, "activeDeadlineSeconds": 5,
                             "backoffLimit": 1, "cleanupPolicy": "Never"}.items():
            with self.subTest(field):
                code, answer = self.api.patch(path, {"spec": {field: value}})
                self.assertEqual(code, 200, answer)
        # It is suspended now.
        for field in ("functions", "aggregation", "podTemplate", "addressing"):
            with self.subTest(field + " while suspended"):
                code, answer = self.api.patch(path, {"spec": {field: refused[field][0]}})
                self.assertEqual(code, 200, answer)
        for field, value in {"containers": [{"name": "worker", "image": "other"}],
                             "serviceAccountName": "other",
                             "imagePullSecrets": [{"name": "other"}]}.items():
            with self.subTest(f"{field} of pods while suspended"):
                code, answer = self.api.patch(path, {"spec": {"podTemplate": {"spec": {field: value}}}})
                self.assertEqual((code, never in answer["message"]), (422, True))
                self.assertIn(f"spec.podTemplate.spec.{field}: Invalid value: ", answer["message"])
        for field, value in {"tolerations": [{"key": "gpu"}], "priorityClassName": "low",
                             "volumes": [{"name": "scratch", "emptyDir": {}}]}.items():
            with self.subTest(f"{field} of pods while suspended"):
                code, answer = self.api.patch(path, {"spec": {"podTemplate": {"spec": {field: value}}}})
                self.assertEqual(code, 200, answer)
        code, _ = self.api.patch(path, {"spec": {"suspend": False}})
        self.assertEqual(code, 200)
        # Rules about changes do not stand in the way of writing status.
        code, answer = self.api.patch(path + "/status", {"status": {"phase": "Suspended"}})
        self.assertEqual((code, answer["status"]["phase"]), (200, "Suspended"))

    def test_of_training_store_and_checkpoints_some_fields_may_change(self):
        path = self.minimal(
            "parts", objectStore={"bucket": "runs", "prefix": "team", "endpoint": "http://minio",
                                  "credentialsSecretRef": {"name": "s3"}, "caSecretRef": {"name": "ca"}},
            checkpoint={"resumeFrom": "s3://runs/other"})
        never = "cannot be changed once the job exists; create another job"
        there = "cannot be added or removed once the job exists; create another job"
        for field, (value, sentence) in {
                "training.globalBatchSize": (60, never), "training.seed": (4, never),
                "training.localBatchSize": (8, never), "training.loss": ("MSE", never),
                "training.optimizer": ({"learningRate": "0.5"}, never),
                "training.stopAt": ({"loss": "0.1"}, never),
                "objectStore.bucket": ("other", never), "objectStore.prefix": (None, never),
                "objectStore.region": ("other", never), "objectStore.pathStyle": (False, never),
                "objectStore.endpoint": (None, there), "objectStore.caSecretRef": (None, there),
                "objectStore.credentialsSecretRef": (None, there),
                "checkpoint.resumeFrom": (None, never)}.items():
            parent, name = field.split(".")
            with self.subTest(field):
                code, answer = self.api.patch(path, {"spec": {parent: {name: value}}}, "?dryRun=All")
                self.assertEqual(code, 422, answer)
                self.assertIn(f"spec.{field}: Invalid value: ", answer["message"])
                self.assertIn(sentence, answer["message"])
        code, answer = self.api.patch(path, {"spec": {
            "training": {"epochs": 5}, "checkpoint": {"keep": 7, "intervalSeconds": 9},
            "objectStore": {"endpoint": "http://other", "caSecretRef": {"name": "next"},
                            "credentialsSecretRef": {"name": "next"}}}})
        self.assertEqual(code, 200, answer)

    def test_a_job_from_before_with_a_removed_field_can_still_end(self):
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
        crd = crds + "serverlesstrainingjobs.lambdadnn.io"
        versions = self.api.get(crd)["spec"]["versions"]
        before = copy.deepcopy(versions)
        spec = before[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        del spec["runtime"]["x-kubernetes-validations"]
        old = {"image": "worker:1", "env": [{"name": "A", "valueFrom": {"fieldRef": {"a": "b"}}}],
               "affinity": {"nodeAffinity": {}}}
        self.assertEqual(self.api.patch(crd, {"spec": {"versions": before}})[0], 200)
        try:
            self.until(lambda: self.asked_with(old, "from-before", ""), 201)
        finally:
            self.assertEqual(self.api.patch(crd, {"spec": {"versions": versions}})[0], 200)
        answer = self.until(lambda: self.asked_with(old, "new", "?dryRun=All"), 422)
        self.assertIn("is now spec.podTemplate", answer["message"])
        path = JOBS.format("default") + "/from-before"
        for change in ({"metadata": {"finalizers": ["lambdadnn.io/cleanup"]}}, {"spec": {"suspend": True}},
                       {"metadata": {"finalizers": None}}):
            code, answer = self.api.patch(path, change)
            self.assertEqual(code, 200, answer)
        code, answer = self.api.patch(path + "/status", {"status": {"phase": "Failed"}})
        self.assertEqual(code, 200, answer)
        code, answer = self.api.patch(path, {"spec": {"runtime": None}})
        self.assertEqual(code, 200, answer)

    def asked_with(self, runtime, name, query):
        return self.api.call("POST", JOBS.format("default") + query, {
            "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
            "metadata": {"name": name}, "spec": {
                "model": {"builtin": {"name": "mlp"}}, "dataset": {"renderedDigits": {}},
                "training": {"epochs": 3, "globalBatchSize": 120},
                "objective": {"deadlineSeconds": 90}, "runtime": runtime}})

    def until(self, ask, wanted):
        """The server learns of a changed CRD a moment later."""
        deadline = time.monotonic() + 60
        while True:
            code, answer = ask()
            if code == wanted:
                return answer
            self.assertLess(time.monotonic(), deadline, answer)
            time.sleep(0.1)

    def test_status_is_written_through_its_subresource_alone(self):
        path = self.minimal("status")
        code, answer = self.api.patch(path, {"status": {"phase": "Complete"}})
        self.assertEqual((code, answer["status"]), (200, {"observedGeneration": -1}))
        code, answer = self.api.patch(path + "/status", {"spec": {"suspend": True},
                                                         "status": {"phase": "Running"}})
        self.assertEqual((code, answer["spec"]["suspend"]), (200, False))
        self.assertEqual(answer["metadata"]["generation"], 1)
        # A field of a later version: pruned in silence, refused where strictness is asked for.
        later = {"status": {"ofALaterVersion": 1}}
        code, answer = self.api.patch(path + "/status", later)
        self.assertEqual((code, answer["status"]),
                         (200, {"observedGeneration": -1, "phase": "Running"}))
        code, answer = self.api.patch(path + "/status", later, "?fieldValidation=Strict")
        self.assertEqual(code, 422)
        self.assertIn('unknown field "status.ofALaterVersion"', answer["message"])
        # Where status is open it keeps what it does not know.
        opened = {"status": {"execution": {"startCheckpoint": {"ofALaterVersion": 1}}}}
        code, answer = self.api.patch(path + "/status", opened, "?fieldValidation=Strict")
        self.assertEqual((code, answer["status"]["execution"]), (200, opened["status"]["execution"]))

    def test_conditions_are_a_map_by_type(self):
        path = self.minimal("conditions")
        accepted = condition("Accepted", "A")
        code, answer = self.api.patch(path + "/status",
                                      {"status": {"conditions": [accepted, accepted]}})
        self.assertEqual(code, 422)
        self.assertIn("Duplicate value", answer["message"])

    # ---- server-side apply

    def apply_as(self, manager, name, spec):
        job = {"apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
               "metadata": {"name": name}, "spec": spec}
        return self.kubectl.run("apply", "--server-side", "--field-manager", manager, "-f", "-",
                                stdin=json.dumps(job))

    def test_two_managers_apply_their_own_parts_of_a_job(self):
        whole = {"model": {"builtin": {"name": "mlp"}}, "dataset": {"renderedDigits": {}},
                 "training": {"epochs": 3, "globalBatchSize": 120},
                 "objective": {"deadlineSeconds": 90}, "suspend": True, "checkpoint": {"keep": 3},
                 "podTemplate": {"spec": {"volumes": [{"name": "scratch", "emptyDir": {}}]}}}
        platform = {"priority": 5, "podTemplate": {
            "metadata": {"labels": {"cost-center": "7"}},
            "spec": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "d"}}],
                     "tolerations": [{"key": "gpu", "operator": "Exists"}]}}}
        for manager, spec in (("team", whole), ("platform", platform), ("team", whole)):
            done = self.apply_as(manager, "shared", spec)
            self.assertEqual(done.returncode, 0, done.stderr)
        spec = self.api.get(JOBS.format("default") + "/shared")["spec"]
        # A list that is a map has the items of both.
        self.assertEqual({each["name"] for each in spec["podTemplate"]["spec"]["volumes"]},
                         {"scratch", "data"})
        self.assertEqual((spec["priority"], spec["checkpoint"]["keep"]), (5, 3))
        self.assertEqual(spec["podTemplate"]["metadata"]["labels"], {"cost-center": "7"})
        # What one owns the other does not take without saying so, by name.
        done = self.apply_as("platform", "shared", {**platform, "checkpoint": {"keep": 9}})
        self.assertEqual(done.returncode, 1)
        self.assertIn('conflict with "team"', done.stderr)
        self.assertIn(".spec.checkpoint.keep", done.stderr)
        # What a manager no longer applies goes.
        done = self.apply_as("platform", "shared", {"priority": 5})
        self.assertEqual(done.returncode, 0, done.stderr)
        spec = self.api.get(JOBS.format("default") + "/shared")["spec"]
        self.assertEqual([each["name"] for each in spec["podTemplate"]["spec"]["volumes"]], ["scratch"])
        self.assertNotIn("tolerations", spec["podTemplate"]["spec"])

    # ---- what kubectl shows

    def test_kubectl_shows_the_job(self):
        path = self.minimal("shown", suspend=True, backend="Local")
        self.write_status(
            path, phase="Running", usage={"restarts": 1}, observedGeneration=1,
            summary={"functions": "4/4", "memory": "1728Mi", "epoch": "2/3", "loss": "0.31",
                     "eta": "41s", "cost": "$0.0042", "reason": "Training", "plan": "4 x 1728Mi"},
            conditions=[condition("Complete", "Trained", "all epochs are done")])
        table = self.kubectl.ok("get", "stj", "shown", "-o", "wide").splitlines()
        self.assertEqual(table[0].split(), ["NAME", "STATE", "FUNCTIONS", "MEMORY", "EPOCH", "LOSS",
                                            "ETA", "COST", "AGE", "REASON", "PLAN", "TRANSPORT", "PLACEMENT",
                                            "RESTARTS"])
        self.assertRegex(table[1], r"^shown +Running +4/4 +1728Mi +2/3 +0.31 +41s +\$0.0042 +\d+s "
                                   r"+Training +4 x 1728Mi +1$")
        narrow = self.kubectl.ok("get", "stj", "shown").splitlines()[0].split()
        self.assertEqual(narrow[-1], "AGE")
        self.assertIn("/shown", self.kubectl.ok("get", "training", "-o", "name"))
        self.assertNotIn("/shown", self.kubectl.ok("get", "all", "-o", "name"))
        chosen = self.kubectl.ok(
            "get", "stj", "-o", "name", "--field-selector",
            "status.phase=Running,spec.suspend=true,spec.backend=Local")
        self.assertEqual(chosen, "serverlesstrainingjob.lambdadnn.io/shown\n")
        self.kubectl.ok("wait", "--for=condition=Complete", "--timeout=10s", "stj/shown")
        told = self.kubectl.ok("describe", "stj", "shown")
        for part in ("Trained", "all epochs are done", "Deadline Seconds:  90"):
            self.assertIn(part, told)

    def test_kubectl_explains(self):
        told = self.kubectl.ok("explain", "stj.spec.aggregation")
        for part in ("How gradients are merged", "transport", "How gradients and weights travel",
                     "enum: Auto, ObjectStore", "Ranges into which the parameters are cut"):
            self.assertIn(part, told)

# SPDX-License-Identifier: Apache-2.0
"""The chart's ValidatingAdmissionPolicy at a real API server: what it refuses at apply is what the
operator refuses (tests/data/pod_rules.yaml), with the same sentence. --oldest asks the oldest Kubernetes that
docs/operations.md names.

Needs scripts/test_servers.sh build helm etcd kubernetes.
"""
import time

import yaml

from chart_support import ROOT, objects
from kube_api import JOBS, ClusterTest
from options import OPTIONS

SETS = yaml.safe_load((ROOT / "tests/data/pod_rules.yaml").read_text())
GROUP = "/apis/admissionregistration.k8s.io/v1/"
PLURALS = {"ValidatingAdmissionPolicy": "validatingadmissionpolicies",
           "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings"}
WAIT_SECONDS = 60
LISTS = ("images", "serviceAccounts", "priorityClasses", "tolerationKeys", "nodeLabels",
         "affinityNamespaces", "secrets", "runtimeClasses", "schedulers", "volumeTypes", "resources")


class JobPolicy(ClusterTest):
    """One release for each set of lists, in a namespace of its own."""

    @classmethod
    def setUpClass(cls):
        cls.own_plane = "kube-apiserver-oldest" if OPTIONS.oldest else None
        super().setUpClass()
        for number, rules in enumerate(SETS):
            cls.api.create("/api/v1/namespaces", {"metadata": {"name": f"set-{number}"}})
            cls.install(number, rules["allowed"])
        for number, rules in enumerate(SETS):
            refused = [job["pod"] for job in rules["jobs"] if "refused" in job and "pod" in job]
            if refused:
                cls.until_refused(number, refused[0])

    @classmethod
    def install(cls, number, allowed):
        values = {"fullnameOverride": f"rules-{number}", "watchNamespaces": [f"set-{number}"],
                  "jobs": {"allowed": dict.fromkeys(LISTS) | allowed}}
        made = {kind: each for (kind, _, _), each in objects(values).items() if kind in PLURALS}
        for kind, each in made.items():
            code, answer = cls.api.create(GROUP + PLURALS[kind], each)
            assert code == 201, answer

    @classmethod
    def submit(cls, namespace, pod, name="asked", query="&dryRun=All", **more):
        return cls.api.call("POST", f"{JOBS.format(namespace)}?fieldValidation=Strict{query}", {
            "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
            "metadata": {"name": name}, "spec": {
                "model": {"builtin": {"name": "mlp"}}, "dataset": {"renderedDigits": {}},
                "training": {"epochs": 3, "globalBatchSize": 120},
                "objective": {"deadlineSeconds": 90}, "podTemplate": {"spec": pod, **more}}})

    @classmethod
    def submit_row(cls, namespace, job):
        """A job of the table."""
        return cls.submit(namespace, job.get("pod", {}),
                          **{part: job[part] for part in ("workers",) if part in job})

    @classmethod
    def until_refused(cls, number, pod):
        """The API server learns of its policies a moment later."""
        deadline = time.monotonic() + WAIT_SECONDS
        while cls.submit(f"set-{number}", pod)[0] != 403:
            assert time.monotonic() < deadline, f"set {number} refuses nothing"
            time.sleep(0.1)

    @staticmethod
    def worker(**settings):
        return {"containers": [{"name": "worker", **settings}]}

    def test_it_says_what_the_operator_says(self):
        for number, rules in enumerate(SETS):
            for job in rules["jobs"]:
                with self.subTest(allowed=rules["allowed"], job=job):
                    code, answer = self.submit_row(f"set-{number}", job)
                    if "refused" not in job:
                        self.assertEqual(code, 201, answer)
                        continue
                    self.assertEqual(code, 403, answer)
                    name = f"rules-{number}-jobs"
                    self.assertEqual(
                        answer["message"].partition("denied request: ")[2], job["refused"], answer)
                    self.assertIn(f"ValidatingAdmissionPolicy '{name}'", answer["message"])

    def test_other_namespaces_are_free(self):
        for rules in SETS:
            for job in rules["jobs"]:
                self.assertEqual(self.submit_row("default", job)[0], 201, job)

    def test_shapes_that_nobody_understands_are_refused(self):
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        for pod in ({"affinity": {"nodeAffinity": None}},
                        {"affinity": {"nodeAffinity": {required: 7}}},
                        {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": 7}}}},
                        {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": [7]}}}},
                        {"affinity": {"podAffinity": None}},
                        {"affinity": {"podAntiAffinity": {required: 7}}},
                        {"affinity": {"podAntiAffinity": {required: [7]}}},
                        {"affinity": {"podAntiAffinity": {required: [{"namespaces": None}]}}},
                        {"affinity": {"podAntiAffinity": {required: [{"namespaces": "set-3"}]}}},
                        {"affinity": {"podAntiAffinity": {required: [{"namespaceSelector": None}]}}},
                        self.worker(env=[{"name": "A", "valueFrom": {"secretKeyRef": "tokens"}}]),
                        self.worker(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": 7}}}]),
                        self.worker(env=[{"name": "A", "valueFrom": {"secretKeyRef": None}}]),
                        {"volumes": [{"name": "a", "secret": "tokens"}]},
                        {"volumes": [{"name": "a", "secret": {"secretName": 7}}]},
                        {"volumes": [{"name": "a", "projected": None}]},
                        {"volumes": [{"name": "a", "projected": {"sources": 7}}]},
                        {"volumes": [{"name": "a", "projected": {"sources": [7]}}]}):
            code, answer = self.submit("set-3", pod)
            self.assertIn(code, (403, 422), answer)
            self.assertIn("rules-3-jobs", answer["message"])

    def test_large_jobs_are_within_the_servers_budget(self):
        names = [f"name-{number}" for number in range(64)]
        pod = {
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "team.example/" + name} for name in names],
            **self.worker(env=[
                {"name": name, "valueFrom": {"secretKeyRef": {"name": "job-" + name, "key": "k"}}}
                for name in names]),
            "volumes": [{"name": name, "projected": {"sources": [{"secret": {"name": "tokens"}}] * 16}}
                        for name in names[:32]],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}] * 8}
                                      for _ in names]}},
                         "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                             {"topologyKey": "zone", "namespaces": ["set-3", "shared"] * 4} for _ in names]}}}
        code, answer = self.submit("set-3", pod)
        self.assertEqual(code, 201, answer)

    def test_jobs_from_before_can_end_and_only_their_pods_are_bounded(self):
        space = "later"
        self.api.create("/api/v1/namespaces", {"metadata": {"name": space}})
        old = {"tolerations": [{"operator": "Exists"}]}
        self.assertEqual(self.submit(space, old, "old", "")[0], 201)
        path = JOBS.format(space) + "/old"
        self.api.patch(path, {"metadata": {"finalizers": ["lambdadnn.io/cleanup"]}})
        # From here on the namespace is one of the first set with a list of tolerations.
        binding = GROUP + PLURALS["ValidatingAdmissionPolicyBinding"] + "/rules-1-jobs"
        code, answer = self.api.patch(binding, {"spec": {"matchResources": {"namespaceSelector": {
            "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In",
                                  "values": ["set-1", space]}]}}}})
        self.assertEqual(code, 200, answer)
        deadline = time.monotonic() + WAIT_SECONDS
        while self.submit(space, old)[0] != 403:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        for spec in ({"suspend": True}, {"backoffLimit": 2}):
            code, answer = self.api.patch(path, {"spec": spec})
            self.assertEqual(code, 200, answer)
        code, answer = self.api.patch(path, {"spec": {"podTemplate": {"spec": {"priorityClassName": "high"}}}})
        self.assertEqual(code, 403, answer)
        code, answer = self.api.patch(path + "/status", {"status": {"phase": "Suspended"}})
        self.assertEqual(code, 200, answer)
        code, answer = self.api.patch(path, {"spec": {"podTemplate": {"spec": {"tolerations": None}}}})
        self.assertEqual(code, 200, answer)
        self.api.call("DELETE", path)
        code, answer = self.api.patch(path, {"metadata": {"finalizers": None}})
        self.assertEqual(code, 200, answer)
        self.assertEqual(self.api.call("GET", path)[0], 404)

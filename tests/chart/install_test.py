# SPDX-License-Identifier: Apache-2.0
"""The chart at a real API server (no nodes) whose CRD came by kubectl: every object is taken, the
operator's program finds its rights with the account that the chart made, which may do nothing else
(docs/security.md), an upgrade changes them, and `helm uninstall` with its hook leaves jobs and CRD behind
that nothing holds.

Needs scripts/test_servers.sh build helm etcd kubernetes. What nodes would run is run here: the
hook's pod as a process with the pod's arguments and the pod's account.
"""
import json
import os
import pathlib
import re
import subprocess
import threading
import time

import yaml

import kubernetes_schemas
from chart_support import (
    CHART,
    EVERYTHING,
    NAME,
    NAMESPACE,
    RELEASE,
    documented_rights,
    program,
    rights,
)
from kube_api import JOBS, ClusterTest
from options import OPTIONS

FINALIZER = "lambdadnn.io/cleanup"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/serverlesstrainingjobs.lambdadnn.io"
ACCOUNT = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAME}"
HOOK = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{NAME}-uninstall"
WAIT_SECONDS = 300


class Install(ClusterTest):
    own_plane = "kube-apiserver"  # the chart takes the CRD over

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        crds = kubernetes_schemas.source("prometheus-operator") / "example/prometheus-operator-crd"
        for name in ("servicemonitors", "prometheusrules"):
            cls.kubectl.ok("apply", "--server-side", "-f",
                           crds / f"monitoring.coreos.com_{name}.yaml")
        for space in (NAMESPACE, "team-a", "team-b"):
            cls.api.create("/api/v1/namespaces", {"metadata": {"name": space}})

    def helm(self, *words, values=None):
        command = [program("helm"), *map(str, words), "--namespace", NAMESPACE]
        if values is not None:
            command += ["--values", "-"]
        done = subprocess.run(
            command, input=None if values is None else yaml.safe_dump(values), text=True,
            capture_output=True, timeout=WAIT_SECONDS,
            env={**os.environ, "KUBECONFIG": str(self.plane.kubeconfig), "HOME": str(self.folder)})
        self.assertEqual(done.returncode, 0, f"helm {words}: {done.stdout}{done.stderr}")
        return done.stdout

    def account_kubeconfig(self):
        """As a pod of the operator's account has it."""
        code, answer = self.api.call("POST", ACCOUNT + "/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
        self.assertEqual(code, 201, answer)
        config = json.loads(pathlib.Path(self.plane.kubeconfig).read_text())
        config["users"][0]["user"] = {"token": answer["status"]["token"]}
        path = self.folder / "account.conf"
        path.write_text(json.dumps(config))
        return path

    def operator(self, *arguments):
        return subprocess.run(
            [OPTIONS.bin / "lambdadnn-operator", "--kubeconfig", self.account_kubeconfig(), *arguments],
            capture_output=True, text=True, timeout=WAIT_SECONDS)

    def checked(self):
        """What `--check` says with the arguments of the Deployment, but for what only pods reach."""
        deployment = self.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}")
        arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        files = []
        for flag, name in (("platform", "lambdadnn-platform"),
                           ("network-policies", f"{NAME}-network-policies"),
                           ("store-endpoints", f"{NAME}-store-endpoints"),
                           ("pod-rules", f"{NAME}-pod-rules")):
            config = self.api.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{name}")
            file = self.folder / f"{flag}.yaml"
            file.write_text(config["data"][file.name])
            files += [f"--{flag}", file]
        kept = [word for word in arguments if not word.startswith(
            ("--platform=", "--network-policies=", "--store-endpoints=", "--pod-rules=", "--store=",
             "--store-ca-file="))]
        return self.operator("--check", *files, *kept)

    def allowed(self, account, namespace):
        """What `kubectl auth can-i --list` says of an account of the operator's namespace."""
        printed = self.kubectl.ok("auth", "can-i", "--list", "--no-headers", "--namespace", namespace,
                                  "--as", f"system:serviceaccount:{NAMESPACE}:{account}")
        rules = []
        for line in printed.splitlines():
            resource, paths, names, verbs = re.fullmatch(
                r"(\S*)\s+\[(.*?)\]\s+\[(.*?)\]\s+\[(.*?)\]\s*", line).groups()
            if resource:
                rules.append({"apiGroups": [""], "resources": [resource],
                              "resourceNames": names.split(), "verbs": verbs.split()})
            else:
                rules.append({"apiGroups": [""], "resources": [paths], "verbs": verbs.split()})
        return rights(rules)

    def check_rights(self, **sets):
        """The account may do what docs/security.md says of the sets, beside what every account may."""
        documented = documented_rights()
        for namespace, names in sets.items():
            expected = self.allowed("of-nobody", namespace)
            for name in names:
                for right, verbs in documented[name].items():
                    expected.setdefault(right, set()).update(verbs)
            self.assertEqual(self.allowed(NAME, namespace), expected, namespace)

    def job(self, name, namespace):
        path = JOBS.format(namespace)
        code, answer = self.api.create(path, {
            "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
            "metadata": {"name": name, "finalizers": [FINALIZER]},
            "spec": {"model": {"builtin": {"name": "mlp"}}, "dataset": {"renderedDigits": {}},
                     "training": {"epochs": 3, "globalBatchSize": 120},
                     "objective": {"deadlineSeconds": 90}}})
        self.assertEqual(code, 201, answer)
        return f"{path}/{name}"

    def until(self, what, check):
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            value = check()
            if value:
                return value
            time.sleep(0.1)
        self.fail(f"{what}: not within {WAIT_SECONDS} s")

    def uninstall(self):
        """helm uninstall, with the hook's pod run here; what the pod printed."""
        failures = []

        def uninstalled():
            try:
                self.helm("uninstall", RELEASE)
            except (AssertionError, subprocess.TimeoutExpired) as failure:
                failures.append(failure)
        helm = threading.Thread(target=uninstalled)
        helm.start()
        try:
            hook = self.until("the hook", lambda: failures or (
                lambda answer: answer[1] if answer[0] == 200 else None)(
                    self.api.call("GET", HOOK)))
            self.assertFalse(failures, failures)
            pod = hook["spec"]["template"]["spec"]
            self.assertEqual(pod["serviceAccountName"], NAME)
            done = self.operator(*pod["containers"][0]["args"])
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            conditions = [{"type": kind, "status": "True", "lastTransitionTime": now}
                          for kind in ("SuccessCriteriaMet", "Complete")]
            code, answer = self.api.patch(HOOK + "/status", {"status": {
                "conditions": conditions, "succeeded": 1, "startTime": now,
                "completionTime": now}})
            self.assertEqual(code, 200, answer)
        finally:
            helm.join()
        self.assertFalse(failures, failures)
        return done.stdout

    def left(self):
        """Objects that still say that they are the release's."""
        kinds = ("deployments,statefulsets,services,configmaps,secrets,serviceaccounts,roles,"
                 "rolebindings,clusterroles,clusterrolebindings,networkpolicies,jobs,"
                 "poddisruptionbudgets,validatingadmissionpolicies,"
                 "validatingadmissionpolicybindings")
        return self.kubectl.ok("get", kinds, "-A", "-o", "name", "-l",
                               f"app.kubernetes.io/instance={RELEASE}").split()

    def test_from_the_installation_to_its_end(self):
        # The CRD is there, from kubectl.
        self.helm("install", RELEASE, CHART, "--take-ownership", values={})
        done = self.checked()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for line in ("CRD: ", "rules for jobs hold in all namespaces",
                     "rules for knative hold in all namespaces",
                     f"rules for the Lease hold in namespace {NAMESPACE}"):
            self.assertIn(line, done.stdout)
        self.assertNotIn("warning", done.stdout)
        everywhere = ["jobs", "knative", "isolation", "limits", "optional"]
        self.check_rights(**{"team-a": everywhere, "kube-system": everywhere,
                             NAMESPACE: [*everywhere, "lease"]})

        # People may do with jobs what their role in a namespace says.
        view = self.kubectl.ok("get", "clusterroles", "-o", "name", "-l",
                               "rbac.authorization.k8s.io/aggregate-to-view=true")
        self.assertIn(f"{NAME}-view", view)

        # Everything switched on, and from the whole cluster to two namespaces.
        self.helm("upgrade", RELEASE, CHART, values=EVERYTHING)
        done = self.checked()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for space in ("team-a", "team-b"):
            self.assertIn(f"rules for jobs hold in namespace {space}", done.stdout)
        self.check_rights(**{"team-a": everywhere, "team-b": everywhere, "kube-system": ["optional"],
                             NAMESPACE: ["lease", "optional"]})
        self.assertNotEqual(self.operator(
            "--check", "--backend", "Knative", "--platform", self.folder / "platform.yaml",
            "--namespaces", "default").returncode, 0)
        self.helm("rollback", RELEASE, "1")
        self.assertIn("hold in all namespaces", self.checked().stdout)

        self.helm("upgrade", RELEASE, CHART, values=EVERYTHING)
        running, deleted = self.job("runs", "team-a"), self.job("goes", "team-b")
        others = self.job("others", "default")
        self.api.call("DELETE", deleted)
        self.assertIn("1 jobs suspended, 0 groups of functions deleted, 2 finalizers",
                      self.uninstall())
        job = self.api.get(running)
        self.assertTrue(job["spec"]["suspend"])
        self.assertNotIn("finalizers", job["metadata"])
        self.assertEqual(self.api.call("GET", deleted)[0], 404)
        self.assertFalse(self.api.get(others)["spec"]["suspend"])
        self.assertEqual(self.api.call("GET", CRD)[0], 200)
        # Once more, over what was kept.
        self.assertEqual(self.left(), [])
        self.helm("install", RELEASE, CHART, values={})
        self.assertIn("1 jobs suspended", self.uninstall())
        self.api.call("DELETE", running)
        self.assertEqual(self.api.call("GET", running)[0], 404)

# SPDX-License-Identifier: Apache-2.0
"""Tenants of one operator on a real API server and MinIO: what the operator's own credentials are not
for is refused without the user's Secret, a Secret that may use only its own folder is enough, a user
of one namespace reads nothing of another's, and the key of one job opens no function of another."""
import base64
import http.client
import json
import os
import stat
import subprocess
import unittest

from kube_api import job_id
from operator_support import Cluster
from options import OPTIONS
from s3_servers import BUCKET, CREDENTIALS, RealServer
from unix_connection import UnixConnection

ROOT_URI = f"s3://{BUCKET}/runs"


class Tenants(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(OPTIONS.bin)
        cls.addClassCleanup(cls.cluster.close)
        cls.minio = RealServer("minio")
        cls.addClassCleanup(cls.minio.close)
        cls.endpoint = f"http://127.0.0.1:{cls.minio.port}"
        for name in ("team-a", "team-b"):
            cls.cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        cls.host = cls.cluster.start_host()
        cls.operator = cls.cluster.start_operator(
            cls.host, "--store", ROOT_URI, environment={
                **CREDENTIALS, "LAMBDADNN_S3_ENDPOINT": cls.endpoint},
            kubeconfig=cls.cluster.operator_user())
        cls.operator.wait_for_line("leading")

    def create(self, name, namespace="team-a", store=None, **spec):
        path = self.cluster.manifest(name, namespace, **{"training": {"epochs": 2}, **spec})
        job = json.loads(path.read_text())
        job["spec"]["objectStore"] = store or {}
        for field in {"dataset", "model"} & spec.keys():
            job["spec"][field] = spec[field]
        path.write_text(json.dumps(job))
        return self.cluster.create_job(path)

    def condition(self, name, kind, reason, namespace="team-a", seconds=60):
        """Waits for a condition of this reason; its message."""
        def found():
            for seen in (self.cluster.get(name, namespace).get("status") or {}).get(
                    "conditions", []):
                if seen["type"] == kind and seen["reason"] == reason:
                    return seen["message"]
            return None
        return self.cluster.wait_for(f"{kind} {reason} of {name}", found, seconds)

    def own_store(self, folder, secret):
        return {"endpoint": self.endpoint, "bucket": BUCKET, "prefix": folder,
                "credentialsSecretRef": {"name": secret}}

    def test_what_the_operators_credentials_are_not_for(self):
        foreign = f"{ROOT_URI}/lambdadnn/team-b/0"
        idx = {"format": "IDX", "classes": 10}
        for name, field, spec in (
                ("prefix", "spec.objectStore", {"store": {
                    "bucket": BUCKET, "prefix": "runs/lambdadnn/team-b"}}),
                ("bucket", "spec.objectStore", {"store": {"bucket": "another-bucket"}}),
                ("endpoint", "spec.objectStore", {"store": {
                    "endpoint": "http://127.0.0.1:9", "bucket": BUCKET,
                    "prefix": "runs/lambdadnn"}}),
                ("folder", "spec.objectStore.uri", {"store": {"uri": "file:///tmp"}}),
                ("data", "spec.dataset.uri", {"dataset": {"uri": foreign, **idx}}),
                ("file", "spec.dataset.uri", {"dataset": {"uri": "file:///etc", **idx}}),
                ("up", "spec.dataset.uri", {"dataset": {
                    "uri": f"file://{self.cluster.folder}/digits/../store", **idx}}),
                ("model", "spec.model.torchScript.uri", {"model": {
                    "torchScript": {"uri": f"{foreign}/model.pt"}}}),
                ("checkpoint", "spec.checkpoint.resumeFrom", {"checkpoint": {
                    "resumeFrom": foreign}})):
            with self.subTest(name):
                self.create(name, **spec)
                message = self.condition(name, "Failed", "StoreNotAllowed")
                self.assertTrue(message.startswith(f"{field}: "), message)
                uid = self.cluster.get(name, "team-a")["metadata"]["uid"]
                place = job_id(self.cluster.get(name, "team-a"))
                self.assertEqual([key for key in self.minio.keys() if place in key], [])
                listed = self.functions_of({"metadata": {"uid": uid}})
                self.assertEqual(listed, [])

    def test_its_own_place_and_a_secret_for_one_folder_are_enough(self):
        plain = self.create("plain", "team-b")
        self.cluster.create_secret("wrong", "team-a", accessKeyId="nobody",
                                   secretAccessKey="nothing")
        theirs = self.create("theirs", store=self.own_store("team-a", "wrong"))
        message = self.condition("theirs", "Accepted", "StoreNotUsable")
        self.assertIn("the access key is unknown", message)
        # The running operator sees that the Secret has changed.
        right = self.minio.limited_to("team-a")
        status, _ = self.cluster.api(
            "PATCH", "/api/v1/namespaces/team-a/secrets/wrong",
            {"data": {k: base64.b64encode(v.encode()).decode() for k, v in right.items()}})
        self.assertEqual(status, 200)
        # The same user, and a folder that is not theirs.
        self.create("beyond", store=self.own_store("team-b", "wrong"))
        self.assertIn("is not allowed", self.condition("beyond", "Accepted", "StoreNotUsable"))

        done = self.cluster.wait_complete("theirs", "team-a", 120)
        self.assertEqual(done["status"]["model"]["uri"].split("/")[:4],
                         ["s3:", "", BUCKET, "team-a"])
        done = self.cluster.wait_complete("plain", "team-b", 120)
        self.assertTrue(done["status"]["model"]["uri"].startswith(
            f"{ROOT_URI}/lambdadnn/team-b/{job_id(plain)}/"), done["status"]["model"])
        places = {key.split("/results/")[0] for key in self.minio.keys() if "/results/" in key}
        self.assertEqual(places, {f"runs/lambdadnn/team-b/{job_id(plain)}",
                                  f"team-a/team-a/{job_id(theirs)}"})
        out = self.cluster.folder / "fetched"
        fetched = subprocess.run(
            [self.cluster.programs / "lambdadnn", "report", "plain", "-n", "team-b", "--out", out,
             "--kubeconfig", self.cluster.plane.kubeconfig], capture_output=True, text=True,
            env={**os.environ, **CREDENTIALS, "LAMBDADNN_S3_ENDPOINT": self.endpoint})
        self.assertEqual(fetched.returncode, 0, fetched.stderr)
        self.assertTrue((out / "model.safetensors").stat().st_size > 0)
        shown = json.dumps(self.cluster.get("theirs", "team-a")) + self.operator.text()
        for value in right.values():
            self.assertNotIn(value, shown)

    def user_of(self, namespace):
        """A kubeconfig of a user who may do everything with jobs and Secrets there."""
        name = f"user-of-{namespace}"
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/"
        rules = [{"apiGroups": ["lambdadnn.io"], "resources": ["*"], "verbs": ["*"]},
                 {"apiGroups": ["", "events.k8s.io"], "resources": ["secrets", "events"],
                  "verbs": ["*"]}]
        for resource, body in (
                ("roles", {"rules": rules}),
                ("rolebindings", {
                    "subjects": [{"kind": "User", "name": name,
                                  "apiGroup": "rbac.authorization.k8s.io"}],
                    "roleRef": {"kind": "Role", "name": name,
                                "apiGroup": "rbac.authorization.k8s.io"}})):
            status, made = self.cluster.api("POST", path + resource,
                                            {"metadata": {"name": name}, **body})
            self.assertEqual(status, 201, made)
        return self.cluster.plane.user(name, f"/CN={name}")

    def key_of(self, name, namespace):
        _, secret = self.cluster.api(
            "GET", f"/api/v1/namespaces/{namespace}/secrets/{name}-lambdadnn-key")
        return base64.b64decode(secret["data"]["key"]).decode()

    def functions_of(self, job):
        connection = UnixConnection(self.host.socket, timeout=10)
        connection.request("GET", f"/v1/functions?jobUid={job['metadata']['uid']}")
        listed = json.loads(connection.getresponse().read())["functions"]
        connection.close()
        return [f["address"].removeprefix("http://") for f in listed if f["phase"] == "Ready"]

    def ask(self, address, method, path, key, body=None):
        connection = http.client.HTTPConnection(address, timeout=10)
        try:
            connection.request(method, path, body,
                               {"Authorization": f"Bearer {key}"} if key else {})
            return connection.getresponse().status
        finally:
            connection.close()

    def test_a_user_of_one_namespace_reaches_nothing_of_another(self):
        cluster = self.cluster
        long = {"training": {"epochs": 200}}
        jobs = {space: self.create("kept", space, **long) for space in ("team-a", "team-b")}
        addresses = {space: cluster.wait_for(
            "functions", lambda job=job: self.functions_of(job), 60) for space, job in jobs.items()}
        mine, theirs = self.key_of("kept", "team-a"), self.key_of("kept", "team-b")
        self.assertNotEqual(mine, theirs)

        kubeconfig = self.user_of("team-a")

        def as_user(*arguments):
            return cluster.kubectl(*arguments, kubeconfig=kubeconfig, check=False)
        self.assertEqual(as_user("get", "secret", "kept-lambdadnn-key", "-n", "team-a").returncode, 0)
        for arguments in (("get", "secret", "kept-lambdadnn-key", "-n", "team-b"),
                          ("get", "secrets", "-n", "team-b"), ("get", "secrets", "-A"),
                          ("get", "stj", "kept", "-n", "team-b"),
                          ("delete", "stj", "kept", "-n", "team-b")):
            refused = as_user(*arguments)
            self.assertNotEqual(refused.returncode, 0, arguments)
            self.assertIn("Forbidden", refused.stderr)
        # Nor through a job: Secrets are those of the job's own namespace.
        cluster.create_secret("theirs", "team-b", **self.minio.limited_to("team-b"))
        self.create("borrows", "team-a", store=self.own_store("team-b", "theirs"))
        self.assertIn("no Secret 'theirs' in namespace team-a",
                      self.condition("borrows", "Accepted", "StoreNotUsable"))

        before = cluster.get("kept", "team-b")["metadata"]["uid"]
        for address in addresses["team-b"]:
            for method, path in (("POST", "/v1/slices"), ("GET", "/v1/slices"),
                                 ("DELETE", "/v1/slices/any"), ("GET", "/metrics")):
                for key in (mine, "", theirs[:-1], theirs + "0"):
                    self.assertEqual(self.ask(address, method, path, key, "{}"), 401,
                                     (method, path))
            self.assertEqual(self.ask(address, "GET", "/metrics", theirs), 200)
        self.assertEqual(cluster.get("kept", "team-b")["metadata"]["uid"], before)

        socket_mode = os.stat(self.host.socket).st_mode
        self.assertEqual(stat.S_IMODE(socket_mode), 0o600)
        made = cluster.folder / "made/for/it"
        cluster.start("other-host", [cluster.programs / "lambdadnn", "host", "--socket",
                                     made / "host.sock", "--dir",
                                     cluster.folder / "other"]).wait_for_line("serving")
        self.assertEqual(stat.S_IMODE(os.stat(made / "host.sock").st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(made).st_mode), 0o700)
        for space in jobs:
            cluster.api("DELETE", cluster.job_path("kept", space))
        cluster.wait_for("both are gone", lambda: not any(
            cluster.get("kept", space) for space in jobs), 60)

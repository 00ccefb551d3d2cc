# SPDX-License-Identifier: Apache-2.0
"""Credentials of a store for one job alone, on a real API server, MinIO and versitygw: who gets them,
what they reach, that jobs need no more, and that they are never disclosed."""
import base64
import ctypes
import ctypes.util
import hashlib
import json
import os
import unittest
import urllib.parse

from kube_api import job_id
from operator_support import Cluster
from options import OPTIONS
from run_support import files_like
from s3_servers import BUCKET, ROOT_SECRET, CountingProxy, RealServer

LONG = 400  # a busy machine starts nine functions in half a minute
KEPT = "kept-jobs"
USER = {"accessKeyId": "plain-user", "secretAccessKey": "plain-user-secret"}
SERVICE = {"accessKeyId": "service-account", "secretAccessKey": "service-account-secret"}
ROLE = "arn:aws:iam::123456789012:role/jobs"


class WantsRole(CountingProxy):
    """A store whose AssumeRole wants a role, as those of Ceph and AWS do."""

    def instead(self, request, body):
        form = urllib.parse.parse_qs(body.decode()) if request.path == "/" else {}
        asked = {"RoleArn", "RoleSessionName"} & set(form)
        if "Action" not in form or (len(asked) == 2 and form["RoleArn"] == [ROLE]):
            return None
        return 400, ("<ErrorResponse><Error><Code>ValidationError</Code><Message>RoleArn</Message>"
                     "</Error></ErrorResponse>")


def sealed(password, text):
    """As MinIO's administration wants its bodies: AES-256-GCM in one fragment, with a key of
    PBKDF2."""
    crypto = ctypes.CDLL(ctypes.util.find_library("crypto"))
    for name in ("EVP_CIPHER_CTX_new", "EVP_aes_256_gcm"):
        getattr(crypto, name).restype = ctypes.c_void_p

    def seal(key, nonce, beside, plain):
        context = ctypes.c_void_p(crypto.EVP_CIPHER_CTX_new())
        out, tag = ctypes.create_string_buffer(len(plain) + 16), ctypes.create_string_buffer(16)
        length = ctypes.c_int()
        cipher = ctypes.c_void_p(crypto.EVP_aes_256_gcm())
        assert crypto.EVP_EncryptInit_ex(context, cipher, None, key, nonce) == 1
        assert crypto.EVP_EncryptUpdate(context, None, ctypes.byref(length), beside,
                                        len(beside)) == 1
        assert crypto.EVP_EncryptUpdate(context, out, ctypes.byref(length), plain, len(plain)) == 1
        assert crypto.EVP_EncryptFinal_ex(context, out, ctypes.byref(length)) == 1
        assert crypto.EVP_CIPHER_CTX_ctrl(context, 0x10, 16, tag) == 1
        crypto.EVP_CIPHER_CTX_free(context)
        return out.raw[:len(plain)] + tag.raw

    salt, nonce = os.urandom(32), os.urandom(8)
    key = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 8192)
    first = seal(key, nonce + bytes(4), b"", b"")
    sealed_text = seal(key, nonce + (1).to_bytes(4, "little"), b"\x80" + first, text.encode())
    return salt + b"\x02" + nonce + sealed_text


class Credentials(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(OPTIONS.bin)
        cls.addClassCleanup(cls.cluster.close)
        cls.minio = RealServer("minio")
        cls.addClassCleanup(cls.minio.close)
        cls.root = ROOT_SECRET
        cls.add_user(USER)
        # Of the root user, so that it may do everything but this.
        cls.administer("PUT", "add-service-account", "", json.dumps(
            {"accessKey": SERVICE["accessKeyId"], "secretKey": SERVICE["secretAccessKey"]}))
        cls.cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": KEPT}})
        cls.host = cls.cluster.start_host()
        cls.operator = cls.cluster.start_operator(cls.host, "--namespaces", "default")
        cls.operator.wait_for_line("leading")
        cls.requests = cls.cluster.folder / "requests"
        cls.requests.mkdir()
        socket = cls.cluster.folder / "stub.sock"
        stub = cls.cluster.start("stub", [cls.cluster.programs / "stub-function-host", socket,
                                          cls.requests])
        stub.socket = socket
        stub.wait_for_line("serving")
        cls.keeper = cls.cluster.start_operator(stub, "--namespaces", KEPT, "--enable-debug")
        cls.keeper.wait_for_line("leading")

    @classmethod
    def administer(cls, method, path, query, text=""):
        body = sealed(cls.root["secretAccessKey"], text) if text else ""
        status, told = cls.minio.request(method, f"/minio/admin/v3/{path}", body, query=query)
        assert status == 200, (path, status, told)

    @classmethod
    def add_user(cls, user):
        name = user["accessKeyId"]
        cls.administer("PUT", "add-user", f"accessKey={name}", json.dumps(
            {"secretKey": user["secretAccessKey"], "status": "enabled"}))
        cls.administer("PUT", "set-user-or-group-policy",
                       f"isGroup=false&policyName=readwrite&userOrGroup={name}")

    def create(self, name, values, server=None, namespace="default", **spec):
        self.cluster.create_secret(f"of-{name}", namespace, **values)
        path = self.cluster.manifest(name, namespace, minio=server or self.minio, **spec)
        job = json.loads(path.read_text())
        job["spec"]["objectStore"]["credentialsSecretRef"]["name"] = f"of-{name}"
        path.write_text(json.dumps(job))
        return self.cluster.create_job(path)

    def given_to(self, job):
        """The credentials in the request of a slice of the job."""
        uid = job["metadata"]["uid"]
        for file in self.requests.glob(f"{uid}*worker-0*"):
            return json.loads(file.read_text())["credentials"]
        return None

    def test_what_slices_bring_reaches_their_job_and_nothing_else(self):
        """The function is one that trains nothing, and keeps what it was asked."""
        other = self.create("other", self.root)
        self.cluster.wait_complete("other", seconds=LONG)
        others = [key for key in self.minio.keys() if job_id(other) in key]
        self.assertTrue(others)
        job = self.create("kept", USER, namespace=KEPT)
        given = self.cluster.wait_for("a slice begins", lambda: self.given_to(job))
        self.assertEqual(set(given), {"accessKeyId", "secretAccessKey", "sessionToken"})
        self.assertNotIn(given["accessKeyId"], (USER["accessKeyId"], self.root["accessKeyId"]))
        own = f"lambdadnn/{KEPT}/{job_id(job)}"

        def status(method, key, query="", body=""):
            path = f"/{BUCKET}/{key}" if key else f"/{BUCKET}"
            return self.minio.request(method, path, body, given, query)[0]

        def listing(prefix):
            return f"list-type=2&prefix={urllib.parse.quote(prefix, safe='')}"
        self.assertEqual(status("PUT", f"{own}/results/by-hand", body="x"), 200)
        self.assertEqual(status("GET", f"{own}/results/by-hand"), 200)
        self.assertEqual(status("DELETE", f"{own}/results/by-hand"), 204)
        self.assertEqual(status("GET", f"{own}/results/by-hand"), 404)
        self.assertEqual(status("GET", "", listing(f"{own}/")), 200)
        for method, key in (("GET", others[0]), ("HEAD", others[0]), ("PUT", others[0]),
                            ("DELETE", others[0]), ("PUT", "anywhere"), ("PUT", f"{own}x"),
                            ("GET", f"{own}x/y"), ("GET", f"lambdadnn/{KEPT}/none")):
            self.assertEqual(status(method, key), 403, (method, key))
        for query in ("list-type=2", listing("lambdadnn/"), listing(own),
                      listing(os.path.dirname(others[0]))):
            self.assertEqual(status("GET", "", query), 403, query)
        # The Secret's own may go to every bucket.
        self.assertEqual(self.minio.request("PUT", "/another-bucket", "", USER)[0], 200)
        for method, path in (("PUT", "/another-bucket/x"), ("GET", "/another-bucket/x"),
                             ("PUT", "/a-third-bucket"), ("GET", "/another-bucket")):
            self.assertEqual(self.minio.request(method, path, "", given)[0], 403, path)

        done = self.cluster.get("kept", KEPT)
        self.assertEqual(done["status"]["objectStore"]["credentials"], "PerJob")
        self.assertNotIn("credentialsMessage", done["status"]["objectStore"])
        page = self.keeper.described(f"{KEPT}/kept")
        self.assertEqual(page[0], 200)
        _, events = self.cluster.api("GET", f"/apis/events.k8s.io/v1/namespaces/{KEPT}/events")
        _, secrets = self.cluster.api("GET", f"/api/v1/namespaces/{KEPT}/secrets")
        told = "\n".join([json.dumps(done), page[1], json.dumps(events), self.keeper.text(),
                          self.operator.text(), self.host.text(), *self.logs_of_functions()])
        for name, value in [*given.items(), *USER.items(), *self.root.items()]:
            self.assertNotIn(value, told, name)
            encoded = base64.b64encode(value.encode()).decode()
            kept = [s["metadata"]["name"] for s in secrets["items"] if encoded in json.dumps(s)]
            self.assertLessEqual(set(kept), {"of-kept"})
        self.cluster.api("DELETE", self.cluster.job_path("kept", KEPT))
        self.cluster.wait_for("it is gone", lambda: self.cluster.get("kept", KEPT) is None)
        self.assertEqual([k for k in self.minio.keys() if job_id(job) in k], [])

    def logs_of_functions(self):
        return [file.read_text(errors="replace") for file in files_like(
            self.cluster.folder / "host", "**/*.log")]

    def test_who_may_not_ask_gets_the_secrets_and_the_same_bits(self):
        """Root, a service account, a server that gives none, and one that wants a role, all to the
        same end."""
        server = RealServer("versitygw")
        self.addCleanup(server.close)
        roles = WantsRole(self.minio.port)
        self.addCleanup(roles.close)
        digests, told = set(), {}
        for name, values, store in (("by-root", self.root, self.minio),
                                    ("by-service", SERVICE, self.minio),
                                    ("by-versity", self.root, server),
                                    ("without-role", USER, roles),
                                    ("by-role", {**USER, "roleArn": ROLE}, roles)):
            self.create(name, values, store)
            status = self.cluster.wait_complete(name, seconds=LONG)["status"]
            digests.add(status["model"]["digest"])
            told[name] = status["objectStore"]
        self.assertEqual(len(digests), 1)
        self.assertEqual(told["by-root"]["credentials"], "PerJob")
        self.assertEqual(told["by-service"]["credentials"], "Secret")
        self.assertIn("service account", told["by-service"]["credentialsMessage"])
        self.assertEqual(told["by-versity"]["credentials"], "Secret")
        self.assertIn("has no AssumeRole", told["by-versity"]["credentialsMessage"])
        self.assertEqual(told["without-role"]["credentials"], "Secret")
        self.assertIn("ValidationError: RoleArn", told["without-role"]["credentialsMessage"])
        self.assertEqual(told["by-role"]["credentials"], "PerJob")

    def test_the_operators_own_credentials_reach_no_tenant(self):
        """Jobs without a Secret in the operator's store: one that may ask for credentials of a job,
        and one that may not, as a service account; and names that no policy can hold."""
        for file in (self.cluster.folder / "digits").iterdir():
            for data in ("digits", "dig%2A"):
                self.assertEqual(self.minio.request(
                    "PUT", f"/{BUCKET}/data/{data}/{file.name}", file.read_bytes(), self.root)[0], 200)
        cases = (("asks", self.root, "digits", None),
                 ("names", self.root, "dig*", "has one of * ? $ in its name"),
                 ("may-not", SERVICE, "digits", "service account"))
        for name, key, data, why in cases:
            namespace = f"tenant-{name}"
            self.cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
            operator = self.cluster.start_operator(
                self.host, "--namespaces", namespace, "--store", f"s3://{BUCKET}/own",
                "--readable", f"s3://{BUCKET}/data", environment={
                    "LAMBDADNN_S3_ENDPOINT": f"http://127.0.0.1:{self.minio.port}",
                    "LAMBDADNN_S3_ACCESS_KEY_ID": key["accessKeyId"],
                    "LAMBDADNN_S3_SECRET_ACCESS_KEY": key["secretAccessKey"]})
            operator.wait_for_line("leading")
            path = self.cluster.manifest(name, namespace, training={"epochs": 1},
                                         dataset={"uri": f"s3://{BUCKET}/data/{data}"})
            job = json.loads(path.read_text())
            del job["spec"]["objectStore"]
            path.write_text(json.dumps(job))
            self.cluster.create_job(path)
            if why is None:
                status = self.cluster.wait_complete(name, namespace, seconds=LONG)["status"]
                self.assertEqual(status["objectStore"]["credentials"], "PerJob")
            else:
                failed = self.cluster.wait_for(f"{name} fails", lambda: self.cluster.condition(
                    self.cluster.get(name, namespace), "Failed"))
                self.assertEqual(failed["reason"], "NoJobCredentials")
                self.assertIn(why, failed["message"])
            _, secrets = self.cluster.api("GET", f"/api/v1/namespaces/{namespace}/secrets")
            told = json.dumps([secrets, self.cluster.get(name, namespace)]) + "\n".join(
                [operator.text(), self.host.text(), *self.logs_of_functions()])
            encoded = base64.b64encode(key["secretAccessKey"].encode()).decode()
            self.assertNotIn(key["secretAccessKey"], told)
            self.assertNotIn(encoded, told)
            operator.stop()

    def test_a_data_set_of_the_store_can_be_read(self):
        folder = self.cluster.folder / "digits"
        for file in folder.iterdir():
            self.assertEqual(self.minio.request(
                "PUT", f"/{BUCKET}/data/digits/{file.name}", file.read_bytes(), self.root)[0], 200)
        digests = {}
        for name, fields in (("reads", {"dataset": {"uri": f"s3://{BUCKET}/data/digits"}}),
                             ("reads-files", {})):
            self.create(name, USER, **fields)
            status = self.cluster.wait_complete(name, seconds=LONG)["status"]
            self.assertEqual(status["objectStore"]["credentials"], "PerJob")
            digests[name] = status["model"]["digest"]
        self.assertEqual(digests["reads"], digests["reads-files"])

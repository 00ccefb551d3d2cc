# SPDX-License-Identifier: Apache-2.0
"""Real S3 servers for training runs, and a proxy before them that counts what crosses it."""
import collections
import http.client
import json
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.parse

import boto3
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.httpsession import URLLib3Session

from loopback_server import Handler, LoopbackServer
from ports import reserve_port

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUCKET, REGION = "training", "us-east-1"
ACCESS_KEY, SECRET_KEY = "test-access-key", "test-secret-key"
CREDENTIALS = {"LAMBDADNN_S3_ACCESS_KEY_ID": ACCESS_KEY,
               "LAMBDADNN_S3_SECRET_ACCESS_KEY": SECRET_KEY}
ROOT_SECRET = {"accessKeyId": ACCESS_KEY, "secretAccessKey": SECRET_KEY}
START_SECONDS = 60


class RealServer:
    """MinIO or versitygw, as scripts/test_servers.sh built it, on a folder of its own; over TLS
    with `certificate`, the path of a pair less .crt and .key (MinIO only). At an address of `host`."""

    def __init__(self, name, certificate=None, host="127.0.0.1"):
        self.name, self.host = name, host
        self.tls = ssl._create_unverified_context() if certificate else None
        found = subprocess.run([ROOT / "scripts/test_servers.sh", "path", name],
                               capture_output=True, text=True)
        if found.returncode != 0:
            raise RuntimeError(f"{name} is not built; run scripts/test_servers.sh build {name}")
        program = found.stdout.strip()
        self.scratch = tempfile.TemporaryDirectory(prefix=f"lambdadnn-{name}-")
        folder = pathlib.Path(self.scratch.name)
        self.data, self.log = folder / "data", folder / "log"
        (self.data / BUCKET).mkdir(parents=True)  # both take a folder for a bucket
        (folder / "metadata").mkdir()
        self.port = reserve_port()
        address = f"{host}:{self.port}"
        if name == "minio":
            self.command = [program, "server", "--quiet", "--address", address, self.data]
            if certificate:
                (folder / "certificates").mkdir()
                for made, wanted in (("crt", "public.crt"), ("key", "private.key")):
                    shutil.copy(f"{certificate}.{made}", folder / "certificates" / wanted)
                self.command[2:2] = ["--certs-dir", folder / "certificates"]
        else:
            self.command = [program, "--quiet", "--keep-alive", "--port", address, "--access",
                            ACCESS_KEY, "--secret", SECRET_KEY, "posix", "--sidecar",
                            folder / "metadata", self.data]
        self.environment = {
            "HOME": str(folder), "PATH": "/usr/bin:/bin", "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off", "MINIO_CI_CD": "1", "MINIO_ROOT_USER": ACCESS_KEY,
            "MINIO_ROOT_PASSWORD": SECRET_KEY}
        self.start()

    def start(self):
        """Also after a kill, on the same port and folder."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log,
                                            env=self.environment)
        self.await_answer()

    def await_answer(self):
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            connection = (
                http.client.HTTPSConnection(self.host, self.port, timeout=2, context=self.tls)
                if self.tls else http.client.HTTPConnection(self.host, self.port, timeout=2))
            try:
                connection.request("GET", f"/{BUCKET}/none")
                if connection.getresponse().status in (403, 404):
                    return
            except OSError:
                pass
            finally:
                connection.close()
            time.sleep(0.1)
        text = self.log.read_text(errors="replace")
        self.close()
        raise RuntimeError(f"{self.name} did not start; it said: {text[-2000:]}")

    def keys(self):
        """The objects of the bucket, read from the server's folder."""
        bucket = self.data / BUCKET
        files = [str(f.relative_to(bucket)) for f in bucket.rglob("*") if f.is_file()]
        if self.name == "minio":
            files = [f.removesuffix("/xl.meta") for f in files if f.endswith("/xl.meta")]
        return sorted(files)

    def limited_to(self, prefix):
        """What the Secret of a user holds that may use the folder `prefix` of the bucket alone:
        temporary credentials with the policy of docs/operations.md (MinIO only)."""
        policy = {"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject",
                                           "s3:AbortMultipartUpload"],
             "Resource": [f"arn:aws:s3:::{BUCKET}/{prefix}/*"]},
            {"Effect": "Allow", "Action": ["s3:ListBucket"],
             "Resource": [f"arn:aws:s3:::{BUCKET}"],
             "Condition": {"StringLike": {"s3:prefix": [f"{prefix}/*"]}}}]}
        sts = boto3.client("sts", endpoint_url=f"http://{self.host}:{self.port}", region_name=REGION,
                           aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET_KEY)
        made = sts.assume_role(RoleArn="arn:aws:iam::000000000000:role/ignored",
                               RoleSessionName="test", DurationSeconds=3600,
                               Policy=json.dumps(policy))["Credentials"]
        return {"accessKeyId": made["AccessKeyId"], "secretAccessKey": made["SecretAccessKey"],
                "sessionToken": made["SessionToken"]}

    def request(self, method, path, body="", credentials=None, query=""):
        """(HTTP status, text) of a signed request; `credentials` as a Secret has them, else root's.
        `query` is encoded and sorted. Also what is no S3, as MinIO's administration."""
        credentials = credentials or ROOT_SECRET
        request = AWSRequest(method, f"http://{self.host}:{self.port}{path}" +
                             (f"?{query}" if query else ""), data=body)
        S3SigV4Auth(Credentials(credentials["accessKeyId"], credentials["secretAccessKey"],
                                credentials.get("sessionToken")), "s3", REGION).add_auth(request)
        answer = URLLib3Session(proxies={}, timeout=20).send(request.prepare())
        return answer.status_code, answer.content.decode(errors="replace")

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.scratch.cleanup()


Request = collections.namedtuple("Request", "method key status bytes_in bytes_out")
EXCHANGE = re.compile(r".*/x/r\d+\.i\d+/(\d+)/(.+)$")


class CountingProxy:
    """Passes every request on as it is (signatures hold) and keeps a list of what was answered.

    A bulk delete is listed as one Request("DELETE", …) for each of its keys.
    """

    def __init__(self, port, host="127.0.0.1"):
        """Before the store at host:port, and at an address of the same host."""
        self.requests, self.lock = [], threading.Lock()
        proxy = self

        class ProxyHandler(Handler):
            wbufsize = 1 << 16

            def setup(self):
                super().setup()
                self.upstream = http.client.HTTPConnection(host, port, timeout=60)

            def finish(self):
                self.upstream.close()
                super().finish()

            def serve(self):
                proxy.serve(self)

        self.server = LoopbackServer(ProxyHandler, host)
        self.port = self.server.server_address[1]
        self.endpoint = self.server.url

    def options(self):
        """What makes `lambdadnn run` use this store."""
        return ["--set", f"spec.objectStore.endpoint={self.endpoint}",
                "--set", f"spec.objectStore.bucket={BUCKET}"]

    def close(self):
        self.server.close()

    def exchanged(self):
        """{iteration: successful requests and payload bytes of its exchange}."""
        counts = collections.defaultdict(collections.Counter)
        with self.lock:
            requests = list(self.requests)
        for request in requests:
            match = EXCHANGE.match(request.key)
            if match is None or not 200 <= request.status < 300:
                continue
            # Weights are named after the iteration that starts from them.
            iteration = int(match.group(1)) - (1 if match.group(2).startswith("w/") else 0)
            count = counts[iteration]
            count[{"PUT": "puts", "GET": "gets", "DELETE": "deletes"}[request.method]] += 1
            if request.method == "PUT":
                count["bytesIn"] += request.bytes_in
            if request.method == "GET":
                count["bytesOut"] += request.bytes_out
        return {iteration: dict(count) for iteration, count in counts.items()}

    def instead(self, request, body):
        """(HTTP status, text) of an answer that the store is not asked for; None: it is."""

    def serve(self, request):
        length = int(request.headers.get("Content-Length", 0))
        body = request.rfile.read(length) if length else b""
        own = self.instead(request, body)
        if own is not None:
            status, text = own
            request.send_response_only(status)
            request.send_header("Content-Length", str(len(text)))
            request.end_headers()
            request.wfile.write(text.encode())
            return
        request.upstream.putrequest(request.command, request.path, skip_host=True,
                                    skip_accept_encoding=True)
        for name, value in request.headers.items():
            if name.lower() != "connection":
                request.upstream.putheader(name, value)
        request.upstream.endheaders(body)
        answer = request.upstream.getresponse()
        data = answer.read()
        self.note(request, answer.status, body, data)
        request.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                request.send_header(name, value)
        head = request.command == "HEAD"
        size = answer.getheader("Content-Length", "0") if head else str(len(data))
        request.send_header("Content-Length", size)
        request.end_headers()
        request.wfile.write(data)
        request.wfile.flush()

    def note(self, request, status, body, data):
        url = urllib.parse.urlsplit(request.path)
        key = urllib.parse.unquote(url.path).removeprefix(f"/{BUCKET}").removeprefix("/")
        entries = [Request(request.command, key, status, len(body), len(data))]
        if request.command == "POST" and "delete" in url.query and status == 200:
            entries = [Request("DELETE", name, 204, 0, 0)
                       for name in re.findall(r"<Key>(.*?)</Key>", body.decode())]
        with self.lock:
            self.requests.extend(entries)

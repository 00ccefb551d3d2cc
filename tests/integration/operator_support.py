# SPDX-License-Identifier: Apache-2.0
"""A cluster without nodes for the integration tests: a real control plane, function hosts and
operators as processes, jobs by kubectl."""
import base64
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import shared_planes
from kube_api import job_id
from kube_client import KubeApi
from kube_control_plane import program
from run_support import FUNCTION_PROGRAMS, HERE, Bench, files_like, processes
from s3_servers import BUCKET

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "charts/lambdadnn-operator/files/rbac-rules.yaml"


def access_rules():
    """The sets of rbac-rules.yaml: {"jobs": [PolicyRule, ...], ...}."""
    sets, current = {}, None
    for line in RULES.read_text().splitlines():
        line = line.split("#")[0].rstrip()
        if re.fullmatch(r"  \w+:", line):
            current = sets.setdefault(line.strip(" :"), [])
        elif match := re.fullmatch(r"  (-| ) (\w+): \[(.*)\]", line):
            if match.group(1) == "-":
                current.append({})
            words = [word.strip().strip('"') for word in match.group(3).split(",")]
            current[-1][match.group(2)] = words
    assert sets["jobs"] and sets["lease"], sets
    return sets


class Process:
    """One of our programs with its log."""

    def __init__(self, cluster, name, arguments, environment=None):
        self.log = cluster.folder / f"{name}.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [str(word) for word in arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=cluster.folder, env={**os.environ, **(environment or {})})
        self.pid = self.process.pid

    def text(self):
        return self.log.read_text(errors="replace")

    def alive(self):
        return self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        return self.process.wait()

    def stop(self, seconds=20):
        """SIGTERM; the exit code."""
        self.process.terminate()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.log.name} did not end on SIGTERM:\n{self.text()[-3000:]}") from None

    def wait_for_line(self, pattern, seconds=30):
        """The match of a line of the log."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            match = re.search(pattern, self.text())
            if match:
                return match
            if not self.alive():
                break
            time.sleep(0.05)
        raise AssertionError(f"{self.log.name} never said {pattern}:\n{self.text()[-3000:]}")


class Operator(Process):
    def page(self, server, path):
        """GET of a path of the "health" or "metrics" server: (HTTP status, text)."""
        port = self.wait_for_line(rf"flag=--{server}-address .*port=(\d+)").group(1)
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def described(self, job):
        """/debug/jobs of NAMESPACE/NAME: (HTTP status, text). Asked again where a pass over the job is
        under way, as the answer says."""
        deadline = time.monotonic() + 30
        while True:
            status, text = self.page("metrics", f"/debug/jobs/{job}")
            if not (status == 503 and "ask again" in text) or time.monotonic() > deadline:
                return status, text
            time.sleep(0.05)

    def series(self, name):
        """[(labels, value)] of a metric."""
        return [(match.group(1), float(match.group(2))) for match in re.finditer(
            rf"^{name}(\{{.*\}})? (\S+)$", self.page("metrics", "/metrics")[1], re.MULTILINE)]

    def metric(self, name):
        return self.series(name)[0][1]


class Cluster:
    """A control plane with the CRD, and what of ours was started in it; close() ends all. Who stops
    the plane's servers, or asks for its processes, needs an own one."""

    def __init__(self, programs, train=1000, test=200, own_plane=False):
        self.bench = Bench(programs, train=train, test=test)
        self.folder = self.bench.folder
        self.programs = self.bench.programs
        self.kubectl_program = program("kubectl")
        self.started = []
        self.rules_user = None
        self.plane = shared_planes.with_jobs(self.folder / "plane",
                                             "kube-apiserver" if own_plane else None)
        self.admin = KubeApi(self.plane.kubeconfig, seconds=20)
        try:
            # kubectl reads YAML for us.
            self.digits = json.loads(self.kubectl(
                "create", "--dry-run=client", "--validate=false", "-o", "json", "-f",
                HERE / "jobs/digits.yaml").stdout)
            self.wait_for("the default service account", lambda: self.kubectl(
                "get", "serviceaccount", "default", check=False).returncode == 0)
        except BaseException:
            self.close()
            raise

    def close(self):
        for process in reversed(self.started):
            if process.alive():
                process.signal(signal.SIGCONT)
                process.process.terminate()
        for process in self.started:
            try:
                process.process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        self.admin.close()
        self.plane.down()
        self.bench.close()

    def kubectl(self, *arguments, check=True, kubeconfig=None, stdin=None):
        done = subprocess.run(
            [self.kubectl_program, "--kubeconfig", kubeconfig or self.plane.kubeconfig,
             *(str(word) for word in arguments)], capture_output=True, text=True, input=stdin,
            env={**os.environ, "HOME": str(self.folder)})
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(map(str, arguments))}: {done.stderr}")
        return done

    def own_user(self):
        """The user with exactly the access rules, as whom operators of this test file run."""
        if self.rules_user is None:
            # FILE::CLASS::TEST (when)
            file = os.environ["PYTEST_CURRENT_TEST"].split("::")[0]
            name = pathlib.Path(file).stem.replace("_", "-")
            self.operator_user(name)
            self.rules_user = name
        return self.rules_user

    def operator_user(self, name="operator", sets=("jobs", "lease", "optional"), without=None,
                      namespaces=()):
        """A kubeconfig for a user that has exactly the access rules (but `without` (set, index,
        verb)): in the whole cluster, or with Roles in `namespaces`."""
        self.grant(name, sets, without, namespaces)
        return self.plane.user(name, f"/CN={name}")

    def grant(self, name, sets, without=None, namespaces=()):
        rules = []
        for which in sets:
            for index, rule in enumerate(access_rules()[which]):
                verbs = [verb for verb in rule["verbs"] if (which, index, verb) != without]
                if verbs:
                    rules.append({**rule, "verbs": verbs})
        subject = [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}]
        for kind, space in ([("Role", n) for n in namespaces] or [("ClusterRole", "")]):
            path = "/apis/rbac.authorization.k8s.io/v1/" + (f"namespaces/{space}/" if space else "")
            for resource, body in (
                    (kind, {"rules": rules}),
                    (f"{kind}Binding", {"subjects": subject, "roleRef": {
                        "kind": kind, "name": name, "apiGroup": "rbac.authorization.k8s.io"}})):
                status, made = self.api("POST", f"{path}{resource.lower()}s",
                                        {"metadata": {"name": name}, **body})
                assert status == 201, made

    def api(self, method, path, body=None):
        """A request as the administrator: (HTTP status, JSON). Cheaper than kubectl."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        return self.admin.call(method, path, body, kind)

    def job_path(self, name="", namespace="default"):
        return f"/apis/lambdadnn.io/v1alpha1/namespaces/{namespace}/serverlesstrainingjobs/{name}"

    def create_job(self, path):
        job = json.loads(pathlib.Path(path).read_text())
        status, created = self.api("POST", self.job_path("", job["metadata"]["namespace"]), job)
        assert status == 201, created
        return created

    def patch_job(self, name, patch, namespace="default"):
        status, job = self.api("PATCH", self.job_path(name, namespace), patch)
        assert status == 200, job
        return job

    def wait_for(self, what, condition, seconds=60, every=0.1):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            value = condition()
            if value:
                return value
            time.sleep(every)
        raise AssertionError(f"{what}: not within {seconds} s; {self.tails()}")

    def tails(self):
        return "\n".join(f"--- {p.log.name}{'' if p.alive() else f', ended: {p.process.returncode}'}\n"
                         f"{p.text()[-2500:]}" for p in self.started)

    def start(self, name, arguments, environment=None, kind=Process):
        process = kind(self, name, arguments, environment)
        self.started.append(process)
        return process

    def start_host(self, name="host", *flags, environment=None):
        socket = self.folder / f"{name}.sock"
        host = self.start(name, [self.programs / "lambdadnn", "host", "--socket", socket, "--dir",
                                 self.folder / name, *flags], environment)
        host.socket = socket
        host.wait_for_line("serving")
        return host

    def start_operator(self, host, *flags, name=None, kubeconfig=None, environment=None):
        """As a user with exactly the operator's rules. Its own store is the folder "store", if the
        flags name none; jobs may read the digits."""
        store = [] if "--store" in flags else ["--store", f"file://{self.folder}/store"]
        count = sum(p.log.name.startswith("operator") for p in self.started)
        operator = self.start(name or f"operator-{count}", [
            self.programs / "lambdadnn-operator", "--kubeconfig",
            kubeconfig or self.plane.folder / f"{self.own_user()}.conf", *(
                ["--host-socket", host.socket] if host else []),
            *store, "--readable", f"file://{self.folder}/digits,file:///nowhere",
            "--metrics-address", "127.0.0.1:0", "--health-address", "127.0.0.1:0", *flags],
            environment, kind=Operator)
        return operator

    def manifest(self, name, namespace="default", minio=None, **spec):
        """The job of jobs/digits.yaml on this cluster's folder, with fields of spec replaced. Its
        store is a folder, or the bucket of `minio` with the keys in Secret s3."""
        job = json.loads(json.dumps(self.digits))
        job["metadata"] = {"name": name, "namespace": namespace}
        job["spec"]["dataset"]["uri"] = f"file://{self.folder}/digits"
        job["spec"]["objectStore"] = {"uri": f"file://{self.folder}/store"} if minio is None else {
            "endpoint": f"http://127.0.0.1:{minio.port}", "bucket": BUCKET,
            "credentialsSecretRef": {"name": "s3"}}
        for field, value in spec.items():
            if isinstance(value, dict) and isinstance(job["spec"].get(field), dict):
                job["spec"][field].update(value)
            else:
                job["spec"][field] = value
        path = self.folder / f"{namespace}-{name}.json"
        path.write_text(json.dumps(job))
        return path

    def create_secret(self, name, namespace="default", **values):
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        status, made = self.api("POST", f"/api/v1/namespaces/{namespace}/secrets",
                                {"metadata": {"name": name}, "data": data})
        assert status == 201, made

    def get(self, name, namespace="default"):
        """The job as the server has it; None when it is gone."""
        status, job = self.api("GET", self.job_path(name, namespace))
        if status == 404:
            return None
        assert status == 200, job
        return job

    def condition(self, job, kind):
        """The condition of this type when it is True, else None."""
        for condition in job.get("status", {}).get("conditions", []):
            if condition["type"] == kind and condition["status"] == "True":
                return condition
        return None

    def wait_complete(self, name, namespace="default", seconds=120):
        deadline = time.monotonic() + seconds
        while True:
            job = self.get(name, namespace)
            if job and self.condition(job, "Complete"):
                return job
            failed = job and self.condition(job, "Failed")
            if failed or time.monotonic() > deadline:
                raise AssertionError(
                    f"{name} {failed['message'] if failed else f'is not Complete in {seconds} s'}\n"
                    f"{json.dumps(job and job.get('status'), indent=1)[-3000:]}\n{self.tails()}")
            time.sleep(0.1)

    def functions(self):
        return processes(*FUNCTION_PROGRAMS, mark=str(self.folder))

    def store_keys(self, job):
        """Objects below the job's prefix."""
        place = job_id(job)
        store = self.folder / "store"
        return sorted(str(f.relative_to(store)) for f in files_like(store, "**/*")
                      if f.is_file() and f"/{place}/" in str(f))

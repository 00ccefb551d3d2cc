# SPDX-License-Identifier: Apache-2.0
"""A cluster without nodes for the integration tests: a real control plane, function hosts and
operators as processes, jobs by kubectl."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

from kube_control_plane import ControlPlane, program  # noqa: E402
from run_support import HERE, Bench, FUNCTION_PROGRAMS, processes  # noqa: E402

CRD = ROOT / "crds/lambdadnn.io_serverlesstrainingjobs.yaml"


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
            raise AssertionError(f"{self.log.name} did not end on SIGTERM:\n{self.text()[-3000:]}")

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


class Cluster:
    """A control plane with the CRD, and what of ours was started in it; close() ends all."""

    def __init__(self, programs, train=1000, test=200):
        self.bench = Bench(programs, train=train, test=test)
        self.folder = self.bench.folder
        self.programs = self.bench.programs
        self.kubectl_program = program("kubectl")
        self.started = []
        self.plane = ControlPlane(self.folder / "plane")
        try:
            self.plane.up()
            self.kubectl("apply", "--server-side", "-f", CRD)
            self.kubectl("wait", "--for=condition=Established", "--timeout=30s",
                         "crd/serverlesstrainingjobs.lambdadnn.io")
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

    def wait_for(self, what, condition, seconds=60, every=0.1):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            value = condition()
            if value:
                return value
            time.sleep(every)
        raise AssertionError(f"{what}: not within {seconds} s; {self.tails()}")

    def tails(self):
        return "\n".join(f"--- {p.log.name}\n{p.text()[-2500:]}" for p in self.started)

    def start(self, name, arguments, environment=None):
        process = Process(self, name, arguments, environment)
        self.started.append(process)
        return process

    def start_host(self, name="host"):
        socket = self.folder / f"{name}.sock"
        host = self.start(name, [self.programs / "lambdadnn", "host", "--socket", socket, "--dir",
                                 self.folder / name])
        host.socket = socket
        host.wait_for_line("serving")
        return host

    def start_operator(self, host, *flags, name=None, kubeconfig=None, environment=None):
        count = sum(p.log.name.startswith("operator") for p in self.started)
        operator = self.start(name or f"operator-{count}", [
            self.programs / "lambdadnn-operator", "--kubeconfig",
            kubeconfig or self.plane.kubeconfig, "--host-socket", host.socket, *flags],
            environment)
        return operator

    def manifest(self, name, namespace="default", **spec):
        """The job of jobs/digits.yaml on this cluster's folder, with fields of spec replaced."""
        job = json.loads(json.dumps(self.digits))
        job["metadata"] = {"name": name, "namespace": namespace}
        job["spec"]["dataset"]["uri"] = f"file://{self.folder}/digits"
        job["spec"]["objectStore"] = {"uri": f"file://{self.folder}/store"}
        for field, value in spec.items():
            if isinstance(value, dict) and isinstance(job["spec"].get(field), dict):
                job["spec"][field].update(value)
            else:
                job["spec"][field] = value
        path = self.folder / f"{namespace}-{name}.json"
        path.write_text(json.dumps(job))
        return path

    def get(self, name, namespace="default"):
        """The job as the server has it; None when it is gone."""
        done = self.kubectl("get", "stj", name, "-n", namespace, "-o", "json", check=False)
        if done.returncode != 0:
            if "NotFound" in done.stderr:
                return None
            raise AssertionError(done.stderr)
        return json.loads(done.stdout)

    def condition(self, job, kind):
        """The condition of this type when it is True, else None."""
        for condition in job.get("status", {}).get("conditions", []):
            if condition["type"] == kind and condition["status"] == "True":
                return condition
        return None

    def wait_complete(self, name, namespace="default", seconds=120):
        done = self.kubectl("wait", "--for=condition=Complete", f"stj/{name}", "-n", namespace,
                            f"--timeout={seconds}s", check=False)
        if done.returncode != 0:
            job = self.get(name, namespace)
            raise AssertionError(f"{name} is not Complete: {done.stderr}\n"
                                 f"{json.dumps(job and job.get('status'), indent=1)[-3000:]}\n"
                                 f"{self.tails()}")
        return self.get(name, namespace)

    def functions(self):
        return processes(*FUNCTION_PROGRAMS, mark=str(self.folder))

    def store_keys(self, job):
        """Objects below the job's prefix."""
        uid = job["metadata"]["uid"]
        store = self.folder / "store"
        return sorted(str(f.relative_to(store)) for f in store.rglob("*")
                      if f.is_file() and f"/{uid}/" in str(f))

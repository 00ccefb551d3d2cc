# SPDX-License-Identifier: Apache-2.0
"""Runs of the real `lambdadnn` program for the integration tests: start, watch, kill, resume."""
import json
import os
import pathlib
import signal
import struct
import subprocess
import tempfile
import time
import zlib

HERE = pathlib.Path(__file__).parent
FUNCTION_PROGRAMS = ("lambdadnn-worker", "lambdadnn-server")


def processes(*programs, mark=""):
    """Pids and command lines of the programs that run with `mark` in their environment or arguments."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if os.path.basename(command[0].decode()) not in programs:
                continue
            environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
            if mark.encode() in environment or mark.encode() in b" ".join(command):
                found[int(pid)] = b" ".join(command).decode()
        except OSError:
            continue  # it ended meanwhile
    return found


def files_like(folder, pattern):
    """Files below a folder from which others delete meanwhile."""
    while True:
        try:
            return sorted(pathlib.Path(folder).glob(pattern))
        except FileNotFoundError:
            continue  # a folder went between its listing and its reading


def read_idx(path):
    """An array of bytes as an IDX file has it. Needs PyTorch."""
    import numpy
    import torch

    data = pathlib.Path(path).read_bytes()
    dimensions = data[3]
    shape = struct.unpack(f">{dimensions}I", data[4:4 + 4 * dimensions])
    return torch.tensor(numpy.frombuffer(data[4 + 4 * dimensions:], "u1").copy()).reshape(shape)


def grey_png(pixels):
    """A greyscale PNG of a matrix of bytes."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width = pixels.shape
    rows = b"".join(b"\0" + row.astype("uint8").tobytes() for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


NUMPY_TYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8"}


def read_safetensors(path):
    """Tensors by name, read by hand (8 bytes of length, a JSON header, the tensors' bytes). Needs
    PyTorch, which the tests that start no model do without."""
    import numpy
    import torch

    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        values = numpy.frombuffer(data[8 + length + begin:8 + length + end], NUMPY_TYPES[entry["dtype"]])
        tensors[name] = torch.tensor(values).reshape(entry["shape"])
    return tensors


class Bench:
    """A folder with rendered digits (unless train is 0) and a job file, and the program under test.
    """

    def __init__(self, programs, train=1000, test=200):
        self.programs = pathlib.Path(programs).resolve()
        self.lambdadnn = str(self.programs / "lambdadnn")
        self.scratch = tempfile.TemporaryDirectory(prefix="lambdadnn-test-")
        self.folder = pathlib.Path(self.scratch.name)
        self.job = self.folder / "digits.yaml"
        self.job.write_text((HERE / "jobs/digits.yaml").read_text())
        if train > 0:
            self.render_digits("digits", train, test)
        self.count = 0

    def render_digits(self, name, train, test, seed=1):
        subprocess.run([self.lambdadnn, "dataset", "render-digits", "--out", self.folder / name,
                        "--train", str(train), "--test", str(test), "--seed", str(seed)],
                       check=True, capture_output=True)

    def close(self):
        self.scratch.cleanup()

    def platform(self, **fields):
        """A platform file: what lambdadnn would measure, with these fields changed."""
        path = self.folder / f"platform-{len(list(self.folder.glob('platform-*')))}.yaml"
        base = {"memory": {"min": "128Mi", "max": "1024Mi", "step": "64Mi"},
                "milliCpuPerGiB": 1000, "maxFunctions": 8, "functionTimeoutSeconds": 600,
                "function": {"networkBytesPerSecond": 5e8, "storeBytesPerSecond": 5e8},
                "parameterServer": {"networkBytesPerSecond": 1e9, "pricePerSecond": "0"},
                "store": {"bytesPerSecond": 1e9, "requestSeconds": "0.001"},
                "prices": {"currency": "USD", "gibSecond": "0.0000166667"}}
        base.update(fields)
        path.write_text(json.dumps(base))
        return str(path)

    def next_out(self):
        """A folder for another run."""
        self.count += 1
        return self.folder / f"run-{self.count}"

    def start(self, *options, job=None, out=None, environment=None):
        out = out or self.next_out()
        return Run(self, pathlib.Path(out), [str(job or self.job), "--out", str(out), *options],
                   environment)

    def run(self, *options, **named):
        return self.start(*options, **named).wait()

    def resume(self, run, *options, job=None, environment=None):
        """With the job's file; job="" = none, the run has its own."""
        file = [str(self.job if job is None else job)] if job != "" else []
        return Run(self, run.out, [*file, "--resume", str(run.out), *options], environment)


class Run:
    def __init__(self, bench, out, arguments, environment=None):
        self.bench, self.out = bench, out
        self.log = bench.folder / f"{out.name}.{time.monotonic_ns()}.log"
        self.begin, self.end = time.monotonic(), None
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [bench.lambdadnn, "run", *arguments], stdout=log, stderr=subprocess.STDOUT,
                cwd=bench.folder, env={**os.environ, **(environment or {})})

    def wait(self, timeout=240):
        try:
            self.code = self.process.wait(timeout)
            self.end = self.end or time.monotonic()
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"no end after {timeout} s:\n{self.text()[-4000:]}") from None
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.end = time.monotonic()

    def kill_and_await_its_host(self):
        """As kill(); its function host notices by itself, and kills all functions."""
        self.kill()
        deadline = time.monotonic() + 10
        while left := processes(*FUNCTION_PROGRAMS, "lambdadnn", mark=str(self.out)):
            assert time.monotonic() < deadline, f"kill -9 of run left processes behind: {left}"
            time.sleep(0.05)

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def wall_seconds(self):
        return self.end - self.begin

    def text(self):
        return self.log.read_text(errors="replace")

    def report(self):
        return json.loads((self.out / "report.json").read_text())

    def digest(self):
        assert self.code == 0, f"exit code {self.code}:\n{self.text()[-4000:]}"
        return self.report()["model"]["digest"]

    def functions(self):
        return processes(*FUNCTION_PROGRAMS, mark=str(self.out))

    def roles(self):
        """What each of its functions does, by pid: "worker", "leaf server" (whose children are
        workers) or "root server". Functions that are not bound to a role yet are left out."""
        state = self.out / "state.json"
        if not state.exists():
            return {}  # it has hardly begun
        objects = json.loads(state.read_text())["objects"]
        status = next(o for o in objects if o["kind"] == "ServerlessTrainingJob").get("status", {})
        bound = status.get("execution", {}).get("functions", [])
        if not bound:
            return {}
        aggregation = status["plan"]["aggregation"]
        # Servers are numbered from the layer above the workers up.
        leaves = 0 if len(aggregation["layers"]) == 2 else aggregation["layers"][-2] * aggregation["spread"]
        kinds = {}
        for function in bound:
            kind, rank = function["role"].rsplit("-", 1)
            kinds[function["uid"]] = (kind if kind != "server" else
                                      "leaf server" if int(rank) < leaves else "root server")
        found = {}
        for pid in self.functions():
            try:
                environment = pathlib.Path(f"/proc/{pid}/environ").read_text(errors="replace")
            except OSError:
                continue  # it ended meanwhile
            for uid, kind in kinds.items():
                if f"{uid}.port" in environment:
                    found[pid] = kind
        return found

    def events(self):
        path = self.out / "events.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def wait_for_iteration(self, iteration, timeout=60):
        """Waits until the run has said that it completed this iteration."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self.process.poll() is not None:
                return False
            if any(e.get("iteration", 0) >= iteration for e in self.events()):
                return True
            time.sleep(0.05)
        raise AssertionError(f"iteration {iteration} not reached:\n{self.text()[-3000:]}")

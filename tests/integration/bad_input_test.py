# SPDX-License-Identifier: Apache-2.0
"""Bad input of every kind given to the real programs: one sentence that names what is wrong and what
to do, the documented exit code, no process and no half-made thing left."""
import gzip
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import time
import unittest

from bad_manifests import write_bad_manifests
from loopback_server import Handler, LoopbackServer
from options import OPTIONS
from ports import reserve_port  # s3_servers says where
from run_support import Bench
from s3_servers import BUCKET, CREDENTIALS, RealServer

SAMPLES = 300
USAGE, FAILED, INFEASIBLE, ENVIRONMENT = 2, 1, 3, 4


def job(**changes):
    """One worker, one server and a given profile: what starts fastest. Changes are of the spec."""
    spec = {"model": {"builtin": {"name": "logistic"}},
            "dataset": {"uri": "digits", "format": "IDX", "classes": 10},
            "training": {"epochs": 2, "globalBatchSize": 30, "seed": 1,
                         "optimizer": {"name": "SGD", "learningRate": "0.05"}},
            "objective": {"fixed": {"functions": 1, "memory": "512Mi"}},
            "aggregation": {"placement": "Dedicated", "shards": 1, "layers": [1, 1]},
            "profile": {"trainingSamples": SAMPLES, "trainingBytes": 235200, "modelBytes": 31400,
                        "trainingRate": {"slope": "2", "intercept": "0"}},
            "checkpoint": {"intervalSeconds": 1, "keep": 2}, "backend": "Local"}
    for path, value in changes.items():
        *folders, name = path.split("__")
        at = spec
        for folder in folders:
            at = at[folder]
        if value is None:
            del at[name]
        else:
            at[name] = value
    return {"apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
            "metadata": {"name": "bad"}, "spec": spec}


class BadInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bench = Bench(OPTIONS.bin, train=SAMPLES, test=60)
        cls.addClassCleanup(cls.bench.close)
        cls.folder = cls.bench.folder

    def out(self):
        self.bench.count += 1
        return self.folder / f"out-{self.bench.count}"

    def says(self, run, code, sentence):
        """The exit code, and one line of error with this in it."""
        self.assertEqual(run.code, code, run.text())
        errors = [line for line in run.text().splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, run.text())
        self.assertRegex(errors[0], sentence)
        self.assertEqual(run.functions(), {}, "processes were left behind")

    def train(self, spec, *options, environment=None):
        path = self.folder / "job.yaml"
        path.write_text(json.dumps(spec))
        return self.bench.run(*options, job=path, out=self.out(), environment=environment)


class JobFiles(BadInput):
    def test_each_bad_file_says_its_sentence_and_leaves_nothing(self):
        folder, out = self.folder / "bad", self.out()
        manifests = write_bad_manifests(folder)
        self.assertGreaterEqual(len(manifests), 128)
        for name, bad in manifests.items():
            with self.subTest(name):
                done = subprocess.run([self.bench.lambdadnn, "run", f"{name}.yaml", "--out", out],
                                      cwd=folder, capture_output=True, text=True)
                self.assertEqual(done.stderr, bad.error)
                self.assertEqual(done.returncode, USAGE)
                self.assertFalse(out.exists())

    def test_a_file_that_is_not_there(self):
        run = self.bench.run(job="nowhere.yaml", out=self.out())
        self.says(run, USAGE, r"nowhere\.yaml.*No such file")

    def test_programs_of_functions_that_are_not_there(self):
        alone, path, out = self.folder / "alone", self.folder / "job.yaml", self.out()
        alone.mkdir()
        shutil.copy(self.bench.lambdadnn, alone)
        path.write_text(json.dumps(job()))
        done = subprocess.run([alone / "lambdadnn", "run", path, "--out", out], cwd=self.folder,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, ENVIRONMENT, done.stderr)
        self.assertRegex(done.stderr, r"^error: \S+/alone/lambdadnn-worker is not there; "
                                      r".*install it beside lambdadnn\n$")
        self.assertFalse(out.exists())

    def test_a_batch_above_the_samples(self):
        run = self.train(job(training__globalBatchSize=SAMPLES + 1))
        self.says(run, USAGE, r"job\.yaml:\d+: spec\.training: globalBatchSize must not be larger "
                              r"than profile\.trainingSamples")

    def test_memory_below_the_need_of_the_model(self):
        wide = {"builtin": {"name": "mlp", "parameters": {"hidden": [20000, 2000]}}}
        run = self.train(job(model=wide, profile__modelBytes=222_000_000,
                             objective__fixed__memory="256Mi"))
        self.says(run, INFEASIBLE, r"a worker needs \d+ MiB, but at most 256 MiB.*raise")

    def test_memory_below_the_need_of_a_model_that_is_measured(self):
        wide = {"builtin": {"name": "mlp", "parameters": {"hidden": [20000, 2000]}}}
        run = self.train(job(model=wide, profile=None, objective__fixed__memory="256Mi"),
                         "--profile-again")
        if run.report().get("isolation", "").startswith("pacing"):
            self.skipTest("no control groups here: nothing enforces the memory")
        self.says(run, FAILED, r"does not fit: functions of 256 MiB ran out of memory.*raise")


def npy(array_bytes, dtype, shape, fortran=False):
    header = f"{{'descr': '{dtype}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array_bytes


def rows(change=None, line=""):
    """A CSV of three columns whose record `change` is the given line."""
    lines = [f"{i},{i * 2},{i % 2}" for i in range(SAMPLES)]
    if change is not None:
        lines[change] = line
    return ("a,b,y\n" + "\n".join(lines) + "\n").encode()


class Data(BadInput):
    def refused(self, files, dataset, sentence):
        """Both by `dataset inspect` and by a run, which loses nothing but the run."""
        folder = self.folder / f"data-{self.id().rsplit('.', 1)[1]}"
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        uri = str(folder / dataset.pop("file", ""))
        inspected = subprocess.run([self.bench.lambdadnn, "dataset", "inspect", uri],
                                   capture_output=True, text=True)
        if "classes" not in dataset:
            self.assertEqual(inspected.returncode, USAGE, inspected.stdout)
            self.assertRegex(inspected.stderr, r"\Aerror: [^\n]*" + sentence + r"[^\n]*\n\Z")
        run = self.train(job(dataset={"uri": uri, **dataset}))
        self.says(run, USAGE, sentence)
        for name, content in files.items():
            self.assertEqual((folder / name).read_bytes(), content, "the data set was changed")

    def digits(self):
        return {f.name: f.read_bytes() for f in (self.folder / "digits").iterdir()}

    def test_truncated_idx(self):
        files = self.digits()
        files["train-images-idx3-ubyte"] = files["train-images-idx3-ubyte"][:-1000]
        self.refused(files, {"format": "IDX"},
                     r"train-images-idx3-ubyte is cut: .*\(record 298 is incomplete\); copy")

    def test_labels_outside_the_classes(self):
        files = self.digits()
        labels = bytearray(files["train-labels-idx1-ubyte"])
        labels[8 + 17] = 12
        files["train-labels-idx1-ubyte"] = bytes(labels)
        self.refused(files, {"format": "IDX", "classes": 10},
                     r"train-labels-idx1-ubyte, record 17: .*12.*; ")

    def test_a_gz_that_is_cut(self):
        files = {f"{name}.gz": gzip.compress(content) for name, content in self.digits().items()}
        images = files["train-images-idx3-ubyte.gz"]
        files["train-images-idx3-ubyte.gz"] = images[:len(images) // 2]
        self.refused(files, {"format": "IDX"}, r"train-images-idx3-ubyte\.gz is cut: .*; copy")

    def test_not_a_number_in_csv(self):
        self.refused({"train.csv": rows(40, "40,nan,0")}, {"format": "CSV", "file": "train.csv"},
                     r"train\.csv, line 42, column 2 \('b'\): 'nan' is not a finite number; fill in")

    def test_ragged_rows(self):
        self.refused({"train.csv": rows(50, "1,2")}, {"format": "CSV", "file": "train.csv"},
                     r"train\.csv, line 52: has 2 columns where .* 3; correct the row")

    def test_an_empty_data_set(self):
        self.refused({"train.csv": b""}, {"format": "CSV", "file": "train.csv"},
                     r"train\.csv holds no samples; give a file with some")

    def test_wrong_npy_dtype(self):
        self.refused({"x.npy": npy(bytes(8 * 4 * SAMPLES), "<c8", (SAMPLES, 4)),
                      "y.npy": npy(bytes(8 * SAMPLES), "<i8", (SAMPLES,))}, {"format": "NPY"},
                     r"x\.npy has the dtype '<c8'; save it as float32")

    def test_fortran_order(self):
        self.refused({"x.npy": npy(bytes(4 * 4 * SAMPLES), "<f4", (SAMPLES, 4), fortran=True),
                      "y.npy": npy(bytes(8 * SAMPLES), "<i8", (SAMPLES,))}, {"format": "NPY"},
                     r"x\.npy is in Fortran order; save numpy\.ascontiguousarray")


class SkewedStore(Handler):
    """Answers everything as S3 does when the clocks differ."""

    def serve(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b"<Error><Code>RequestTimeTooSkewed</Code><Message>too large</Message></Error>"
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class Stores(BadInput):
    def refused(self, endpoint, sentence, bucket=BUCKET, credentials=None):
        run = self.train(job(), "--set", f"spec.objectStore.endpoint={endpoint}", "--set",
                         f"spec.objectStore.bucket={bucket}",
                         environment=CREDENTIALS if credentials is None else credentials)
        self.says(run, ENVIRONMENT, sentence)
        self.assertFalse(run.out.exists(), "a run that never began left its folder")

    def test_credentials_and_buckets_of_a_real_server(self):
        server = RealServer("minio")
        self.addCleanup(server.close)
        endpoint = f"http://127.0.0.1:{server.port}"
        self.refused(endpoint, r"the secret key does not fit the access key; correct",
                     credentials={**CREDENTIALS, "LAMBDADNN_S3_SECRET_ACCESS_KEY": "wrong"})
        self.refused(endpoint, r"the access key is unknown there; correct",
                     credentials={**CREDENTIALS, "LAMBDADNN_S3_ACCESS_KEY_ID": "nobody"})
        self.refused(endpoint, r"needs credentials; set LAMBDADNN_S3_ACCESS_KEY_ID", credentials={})
        self.refused(endpoint, r"there is no bucket 'elsewhere'.*; create it", bucket="elsewhere")
        self.assertEqual(server.keys(), [])

    def test_an_unreachable_store(self):
        begin = time.monotonic()
        self.refused(f"http://127.0.0.1:{reserve_port()}", r"no answer from .*; is the server running")
        self.assertLess(time.monotonic() - begin, 60)

    def test_a_skewed_clock(self):
        server = LoopbackServer(SkewedStore)
        self.addCleanup(server.close)
        self.refused(server.url, r"clocks .* differ.*NTP")


class Mounted(BadInput):
    """Runs in a mount namespace of their own, with a read-only or a small file system in it."""

    def run_with(self, mounts, *options, **changes):
        enter = ["unshare", "--mount", "--propagation", "private"]
        if os.geteuid() != 0:
            enter.insert(1, "--map-root-user")
        if subprocess.run([*enter, "true"], capture_output=True).returncode != 0:
            self.skipTest("no mount namespace can be made here")
        place = self.out()
        place.mkdir()
        (place / "job.yaml").write_text(json.dumps(job(**changes)))
        (place / "digits").symlink_to(self.folder / "digits")
        (place / "disk").mkdir()
        command = " ".join([self.bench.lambdadnn, "run", "job.yaml", *options])
        self.done = subprocess.run([*enter, "bash", "-c", f"{mounts}\n{command}"], cwd=place,
                                   capture_output=True, text=True, timeout=300)
        return place

    def said(self, code, sentence):
        self.assertEqual(self.done.returncode, code, self.done.stdout + self.done.stderr)
        errors = [line for line in self.done.stderr.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, self.done.stderr)
        self.assertRegex(errors[0], sentence)

    READ_ONLY = "mount --bind disk disk && mount -o remount,bind,ro disk"

    def test_a_read_only_folder_for_the_run(self):
        self.run_with(self.READ_ONLY, "--out", "disk/run")
        self.said(ENVIRONMENT, r"folder disk/run: Read-only file system; name another with --out")

    def test_a_read_only_store(self):
        place = self.run_with(self.READ_ONLY, "--out", "run", "--store", "file://$PWD/disk/store")
        self.said(ENVIRONMENT, r"Read-only file system; choose a folder that can be written")
        self.assertFalse((place / "run").exists())

    def test_a_disk_that_fills_up_while_training(self):
        # Filled once the run has come to its 100th iteration, but for 256 KiB: there is no room for a gradient of
        # 407 KB any more, and enough for records. Links keep the room of what is deleted then.
        fill = """mount -t tmpfs -o size=48m none disk
          (until grep -q '"iteration":100,' run/events.jsonl 2>/dev/null; do sleep 0.02; done
           for i in $(seq 100); do
             dd if=/dev/zero bs=4k 2>/dev/null >> disk/filler
             cp -al disk/store disk/links-$i 2>/dev/null
           done
           truncate -s -256K disk/filler) &"""
        place = self.run_with(fill, "--out", "run", "--store", "file://$PWD/disk/store", "; code=$?",
                              "; mkdir kept; cp -r disk/store kept; kill %1 2>/dev/null; exit $code",
                              training__epochs=2000, backoffLimit=1,
                              model={"builtin": {"name": "mlp", "parameters": {"hidden": [128]}}},
                              profile={**job()["spec"]["profile"], "modelBytes": 407080})
        self.said(FAILED, r"No space left on device; free some space")
        kept = sorted((place / "kept/store").rglob("manifest.json"))
        iterations = [int(m.parent.parent.name) for m in kept]
        self.assertGreater(max(iterations, default=0), 0, "no checkpoint was kept")
        for manifest in kept:
            self.assertTrue(json.loads(manifest.read_text()), "a torn manifest")
            self.assertTrue((manifest.parent / "s0").exists())


class Training(BadInput):
    def test_a_loss_that_becomes_not_a_number(self):
        # The rate jumps beyond all floats at iteration 200, long after the first checkpoint.
        schedule = {"name": "Step", "stepIterations": 200, "gamma": "1" + "0" * 31}
        run = self.train(job(training__epochs=60, training__optimizer__schedule=schedule,
                             training__optimizer__learningRate="10000000"))
        self.says(run, FAILED, r"the (loss|gradient) of iteration 20\d is not a finite number; "
                               r"lower training\.optimizer\.learningRate")
        kept = [int(m.parent.parent.name) for m in run.out.rglob("manifest.json")]
        self.assertGreater(max(kept, default=0), 0, "no checkpoint was kept")
        self.assertLessEqual(max(kept), 202)
        self.assertEqual(run.report()["outcome"], "Failed")


class Functions(BadInput):
    def start(self, program="lambdadnn-server", **environment):
        return subprocess.Popen([self.bench.programs / program], stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "LAMBDADNN_JOB_KEY": "key", **environment})

    def test_a_device_that_is_not_there(self):
        for device, expected in [
                ("gpu", r"LAMBDADNN_DEVICE must be cpu or cuda, not 'gpu'$"),
                ("cuda", r"LAMBDADNN_DEVICE=cuda: .+; .+, or train with LAMBDADNN_DEVICE=cpu$")]:
            with self.subTest(device):
                worker = self.start("lambdadnn-worker", LAMBDADNN_DEVICE=device, CUDA_VISIBLE_DEVICES="")
                error = worker.communicate(timeout=60)[1]
                self.assertEqual(worker.returncode, 2, error)  # as docs/formats.md says
                self.assertRegex(error, expected)
                self.assertEqual(error.count("\n"), 1, error)

    def test_a_precision_that_is_not_there(self):
        for environment, expected in [
                ({"LAMBDADNN_PRECISION": "bf16"}, r"LAMBDADNN_PRECISION must be float32 or bfloat16, not 'bf16'$"),
                ({"LAMBDADNN_PRECISION": "bfloat16", "ONEDNN_MAX_CPU_ISA": "AVX2"},
                 r"precision bfloat16 needs a processor with .+, which this one has not; .+, or float32$")]:
            with self.subTest(environment):
                worker = self.start("lambdadnn-worker", **environment)
                error = worker.communicate(timeout=60)[1]
                self.assertEqual(worker.returncode, 2, error)
                self.assertRegex(error, expected)
                self.assertEqual(error.count("\n"), 1, error)

    def test_a_gpu_that_is_not_there(self):
        run = self.train(job(functions={"gpu": 1}), environment={"CUDA_VISIBLE_DEVICES": ""})
        self.says(run, USAGE, r"spec\.functions\.gpu: there is no GPU for functions here .*leave it out")

    def test_a_gpu_that_a_worker_cannot_use(self):
        run = self.train(job(functions={"gpu": 1}), environment={"CUDA_VISIBLE_DEVICES": "99"})
        self.says(run, ENVIRONMENT, r"LAMBDADNN_DEVICE=cuda: .+, or train with LAMBDADNN_DEVICE=cpu")

    def test_a_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            function = self.start(PORT=str(port))
            error = function.communicate(timeout=20)[1]
        self.assertEqual(function.returncode, ENVIRONMENT)
        self.assertRegex(error, rf"127\.0\.0\.1 port {port}: Address already in use; choose another")

    def exchange(self, port, data):
        """The status of the answer; None when the connection is closed without one."""
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            try:
                connection.sendall(data)
                answer = connection.recv(4096)
            except ConnectionError:
                return None
        match = re.match(rb"HTTP/1\.1 (\d+)", answer)
        return int(match.group(1)) if match else None

    def test_http_garbage(self):
        port_file = self.folder / "port"
        function = self.start(PORT="0", LAMBDADNN_PORT_FILE=str(port_file))
        self.addCleanup(function.stderr.close)
        self.addCleanup(function.wait)
        self.addCleanup(function.kill)
        while not port_file.exists():
            self.assertIsNone(function.poll())
            time.sleep(0.01)
        port = int(port_file.read_text())
        post = b"POST /v1/slices HTTP/1.1\r\nHost: f\r\n"
        key = b"Authorization: Bearer key\r\n"
        many = b"".join(b"X-%d: %s\r\n" % (i, b"v" * 1000) for i in range(100))
        cases = [
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) + b"\r\n\r\n", 400),
            (b"GET / SPDY/9\r\n\r\n", 400),
            (b"\r\n" * 200 + b"?\r\n\r\n", 400),
            (post + many + b"\r\n", 431),
            (post + b"Content-Length: -5\r\n\r\n", 400),
            (post + key + b"Content-Length: 99999999999\r\n\r\n", 413),
            (post + b"Content-Length: 2\r\n\r\n{}", 401),
            (post + key + b"Content-Length: 7\r\n\r\n\xff\xfe{[]}\x00", 400),
            (post + key + b"Content-Length: 2\r\n\r\n{}", 400),
            (b"DELETE /v1/slices HTTP/1.1\r\nHost: f\r\n" + key + b"\r\n", (404, 405)),
        ]
        for data, expected in cases:
            with self.subTest(data=data[:60]):
                # Some may also be cut off, never served.
                allowed = expected if isinstance(expected, tuple) else (expected,)
                self.assertIn(self.exchange(port, data), (*allowed, None))
        answered = [self.exchange(port, data) for data, _ in cases]
        self.assertGreaterEqual(sum(a is not None for a in answered), 7, answered)
        self.assertEqual(self.exchange(port, b"GET /healthz HTTP/1.1\r\nHost: f\r\n\r\n"), 200)
        self.assertEqual(self.exchange(port, b"GET /readyz HTTP/1.1\r\nHost: f\r\n\r\n"), 200)
        self.assertIsNone(function.poll())

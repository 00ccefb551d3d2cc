# SPDX-License-Identifier: Apache-2.0
"""`lambdadnn run` in users' settings: its JSON output, a job's bucket that is replaced,
no control groups, few CPUs, two GPUs, the newest run resumed, a store with a certificate of its own."""
import json
import os
import re
import shutil
import signal
import subprocess
import unittest

from certificates import Authority
from options import OPTIONS
from run_support import Bench
from s3_servers import BUCKET, CREDENTIALS, RealServer

EPOCH = ("--set", "spec.training.epochs=1")
# ControllerOptions::max_profile_residual
KEPT_RESIDUAL = 0.15


class RunCommand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bench = Bench(OPTIONS.bin)
        cls.addClassCleanup(cls.bench.close)

    def command(self, *arguments, prefix=(), folder=None, environment=None):
        """`lambdadnn run` with its two outputs apart."""
        return subprocess.run(
            [*prefix, self.bench.lambdadnn, "run", *map(str, arguments)], capture_output=True,
            text=True, timeout=200, cwd=folder or self.bench.folder,
            env={**os.environ, **(environment or {})})

    def test_json_is_one_object_a_line_and_nothing_else(self):
        out = self.bench.next_out()
        done = self.command(self.bench.job, "--out", out, "-o", "json", *EPOCH)
        self.assertEqual(done.returncode, 0, done.stderr)
        types = set()
        for line in done.stdout.splitlines():
            told = json.loads(line)
            self.assertIsInstance(told, dict, line)
            types.add(told["type"])
        self.assertLessEqual({"note", "status", "function", "slice", "iteration"}, types)
        # The last status is the end.
        last = [told for told in map(json.loads, done.stdout.splitlines())
                if told["type"] == "status"][-1]
        self.assertEqual(last["status"]["phase"], "Complete")

    def test_json_of_a_failed_run_keeps_its_error_apart(self):
        done = self.command(self.bench.job, "--out", self.bench.next_out(), "-o", "json",
                            "--set", f"spec.dataset.uri={self.bench.folder}/nowhere")
        self.assertEqual(done.returncode, 2, done.stderr)
        for line in done.stdout.splitlines():
            self.assertIsInstance(json.loads(line), dict, line)
        self.assertIn("error: job digits failed:", done.stderr)

    def test_without_control_groups_functions_pace_themselves_and_that_is_said_once(self):
        run = self.bench.run("--no-cgroups", *EPOCH)
        self.assertEqual(run.code, 0, run.text())
        said = [line for line in run.text().splitlines() if line.startswith("isolation: ")]
        self.assertEqual(said, ["isolation: pacing (control groups are switched off)"])
        self.assertEqual(run.report()["isolation"], "pacing")
        # The same bits, however functions are kept to their quota.
        self.assertEqual(run.digest(), self.bench.run(*EPOCH).digest())

    def test_the_machine_is_what_the_command_may_use_of_it(self):
        first = min(os.sched_getaffinity(0))
        out = self.bench.next_out()
        done = self.command(self.bench.job, "--out", out, *EPOCH,
                            "--set", "spec.objective={fixed: {functions: 2, memory: 256Mi}}",
                            "--set", "spec.aggregation={shards: 1, layers: [1, 2]}",
                            prefix=("taskset", "-c", str(first)))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^machine: 1 core, ")
        platform = json.loads((out / "platform.json").read_text())
        self.assertEqual(float(platform["totalMilliCpu"]), 1000)
        # What a platform file leaves out is the machine's as well.
        partial = self.bench.folder / "partial.yaml"
        partial.write_text("milliCpuPerGiB: 1000\nmaxFunctions: 8\n")
        out = self.bench.next_out()
        done = self.command(self.bench.job, "--out", out, "--platform", partial,
                            "--set", "spec.objective={fixed: {functions: 6, memory: 512Mi}}",
                            "--set", "spec.aggregation={shards: 1, layers: [1, 6]}",
                            prefix=("taskset", "-c", str(first)))
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("totalMilliCpu", done.stderr)

    def test_the_second_run_knows_what_the_first_measured(self):
        job = self.bench.folder / "unknown.yaml"
        job.write_text(re.sub(r"(?m)^  profile:\n(    .*\n)+", "", self.bench.job.read_text()))
        # One size alone, which is quick to measure.
        options = [*EPOCH, "--set", "spec.objective={fixed: {functions: 2, memory: 512Mi}}",
                   "--set", "spec.aggregation={shards: 1, layers: [1, 2]}"]
        cache = {"XDG_CACHE_HOME": str(self.bench.folder / "cache")}

        def measured(*more):
            """Whether the run measured, and the profile that it used."""
            run = self.bench.run(*options, *more, job=job, environment=cache)
            self.assertEqual(run.code, 0, run.text())
            report = run.report()
            roles = {function["role"] for function in report["timeline"]}
            profile = report["profile"]
            # How long functions take to start and to end is known better with each run.
            for of_starts in ("coldStartSeconds", "coldStartDeviationSeconds", "releaseSeconds"):
                profile.pop(of_starts, None)
            return "profile-0" in roles, profile

        # Rates that were fitted badly, as on a busy machine, are used once and not kept.
        for _ in range(6):
            first, profile = measured()
            self.assertTrue(first)
            kept = list((self.bench.folder / "cache/lambdadnn/profiles").glob("*.json"))
            self.assertEqual(len(kept), 1 if float(profile["residual"]) <= KEPT_RESIDUAL else 0)
            if kept:
                break
        self.assertTrue(kept, "no measurement of this machine was good enough to be kept")
        self.assertEqual(measured(), (False, profile))
        # What so many iterations take over what is predicted corrects the next prediction.
        measured("--set", "spec.training.epochs=4")
        again, corrected = measured()
        self.assertFalse(again)
        factors = {name for name in corrected if name.startswith("run")}
        self.assertLess({"runComputeFactor", "runEvaluationFactor"}, factors)
        self.assertEqual({name: value for name, value in corrected.items() if name not in factors}, profile)
        # Another model has never been measured, and who asks gets a new measurement.
        self.assertTrue(measured("--set", "spec.model.builtin={name: logistic}")[0])
        self.assertTrue(measured("--profile-again")[0])

    def test_a_store_of_the_command_takes_the_place_of_the_jobs_bucket(self):
        store = self.bench.folder / "elsewhere"
        out = self.bench.next_out()
        done = self.command(self.bench.job, "--out", out, "--store", f"file://{store}", *EPOCH,
                            "--set", "spec.objectStore.bucket=mine",
                            "--set", "spec.objectStore.endpoint=http://127.0.0.1:9")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(any(store.rglob("model.safetensors")))
        # A run goes on where it is.
        for option in ("--store", "--out"):
            done = self.command("--resume", out, option, self.bench.folder / "x")
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn(f"leave {option} away", done.stderr)

    def test_the_newest_run_is_resumed_to_the_same_bits(self):
        """Of the runs under runs/ of the folder that the command is called in."""
        folder = self.bench.folder / "of-somebody"
        (folder / "runs/never-began").mkdir(parents=True)
        for name in ("older", "newer"):
            done = self.command(self.bench.job, "--out", f"runs/{name}", *EPOCH, folder=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
        os.utime(folder / "runs/older/state.json", (1, 1))
        report = folder / "runs/newer/report.json"
        digest = json.loads(report.read_text())["model"]["digest"]
        for kept in (report, folder / "runs/newer/report.html"):
            kept.unlink()
        done = self.command("--resume", "latest", folder=folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"folder: {folder}/runs/newer", done.stdout)
        self.assertEqual(json.loads(report.read_text())["model"]["digest"], digest)

    def test_each_worker_has_a_gpu_of_its_own_which_it_gives_back_when_it_is_killed(self):
        """The GPUs are two names, and workers that are told of one compute on processors all the same."""
        programs, given = self.bench.folder / "on-gpus", self.bench.folder / "given"
        programs.mkdir()
        for name in ("lambdadnn", "lambdadnn-server"):
            shutil.copy2(OPTIONS.bin / name, programs)
        worker = programs / "lambdadnn-worker"
        worker.write_text(f"""#!/bin/sh
            echo "$LAMBDADNN_DEVICE $CUDA_VISIBLE_DEVICES $$" >>{given}
            LAMBDADNN_DEVICE=cpu exec {OPTIONS.bin.resolve()}/lambdadnn-worker\n""")
        worker.chmod(0o755)
        bench = Bench(programs, train=0)
        self.addCleanup(bench.close)
        changes = {"functions.gpu": 1, "objective.fixed.functions": 2, "aggregation.layers": "[1, 2]",
                   "training.epochs": 6, "dataset.uri": self.bench.folder / "digits"}
        run = bench.start(*(word for field, value in changes.items() for word in ("--set", f"spec.{field}={value}")),
                          environment={"CUDA_VISIBLE_DEVICES": "5,GPU-b"})
        self.assertTrue(run.wait_for_iteration(5), run.text())
        seen = {gpu: (device, int(pid)) for device, gpu, pid in map(str.split, given.read_text().splitlines())}
        self.assertEqual({"5": "cuda", "GPU-b": "cuda"}, {gpu: device for gpu, (device, _) in seen.items()})
        os.kill(seen["5"][1], signal.SIGKILL)
        self.assertEqual(0, run.wait().code, run.text())
        self.assertEqual(["cuda 5"], [line.rsplit(" ", 1)[0] for line in given.read_text().splitlines()[2:]])

    def test_nothing_to_resume(self):
        folder = self.bench.folder / "of-nobody"
        folder.mkdir()
        done = self.command("--resume", "latest", folder=folder)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("there is no run under runs/", done.stderr)

    def test_a_store_whose_certificate_a_private_authority_signed(self):
        authority = Authority(self.bench.folder / "authority")
        authority.leaf("store", "/CN=store", "IP:127.0.0.1")
        server = RealServer("minio", certificate=authority.folder / "store")
        self.addCleanup(server.close)
        store = ("--set", f"spec.objectStore.endpoint=https://127.0.0.1:{server.port}",
                 "--set", f"spec.objectStore.bucket={BUCKET}", *EPOCH)
        run = self.bench.run(*store, environment={
            **CREDENTIALS, "LAMBDADNN_S3_CA_FILE": str(authority.folder / "ca.crt")})
        self.assertEqual(run.digest(), self.bench.run(*EPOCH).digest())
        self.assertEqual([key for key in server.keys() if "/results/" not in key], [])
        # Without the authority nothing is sent.
        run = self.bench.run(*store, environment=CREDENTIALS)
        self.assertEqual(run.code, 4, run.text())
        self.assertRegex(run.text(), r"(?m)^error: .*certificate")

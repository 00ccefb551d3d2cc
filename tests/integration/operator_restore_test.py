# SPDX-License-Identifier: Apache-2.0
"""Jobs whose cluster is lost and whose objects are restored into another one, as Velero and `kubectl
apply` of saved manifests do it; the object store is the same. And both clusters at once."""
import json
import os
import signal
import unittest

from kube_api import job_id
from operator_support import Cluster
from options import OPTIONS

LONG = {"training": {"epochs": 40}, "checkpoint": {"intervalSeconds": 1}}
SEEN = 60  # iterations, before the cluster is lost
# What Velero keeps of an object's metadata.
KEPT = ("name", "namespace", "labels", "annotations", "finalizers")


class Restore(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.first = cls.cluster("first")
        cls.second = cls.cluster("second")

    @classmethod
    def cluster(cls, name):
        cluster = Cluster(OPTIONS.bin)
        cls.addClassCleanup(cluster.close)
        cluster.name = name
        return cluster

    def operate(self, cluster):
        """Operator and host, over the store and the data of the first cluster."""
        folder = self.first.folder
        slow = cluster.bench.platform(milliCpuPerGiB=400)
        cluster.host = cluster.start_host(f"host-{self._testMethodName}")
        cluster.operator = cluster.start_operator(
            cluster.host, "--platform", slow, "--store", f"file://{folder}/store",
            "--readable", f"file://{folder}/digits")
        return cluster

    def lose(self, cluster, name):
        """Nothing ends in order; the object is gone with its cluster."""
        cluster.operator.kill()
        cluster.host.kill()
        for pid in cluster.functions():
            os.kill(pid, signal.SIGKILL)
        cluster.wait_for("no function", lambda: not cluster.functions())
        cluster.patch_job(name, {"metadata": {"finalizers": None}})
        cluster.api("DELETE", cluster.job_path(name))
        cluster.wait_for("the object is gone", lambda: cluster.get(name) is None)

    def restore(self, cluster, backup, status=False):
        job = {key: value for key, value in backup.items() if key != "status"}
        job["metadata"] = {key: backup["metadata"][key] for key in KEPT
                           if key in backup["metadata"]}
        code, made = cluster.api("POST", cluster.job_path(), job)
        self.assertEqual(code, 201, made)
        self.assertNotEqual(made["metadata"]["uid"], backup["metadata"]["uid"])
        if status:
            path = cluster.job_path(backup["metadata"]["name"]) + "/status"
            code, written = cluster.api("PATCH", path, {"status": backup["status"]})
            self.assertEqual(code, 200, written)
        return made

    def run_beyond(self, cluster, name, iteration):
        def progress():
            job = cluster.get(name)
            done = job.get("status", {}).get("progress", {}).get("iteration", 0)
            return job if done >= iteration else None
        return cluster.wait_for(f"iteration {iteration} of {name}", progress, 120)

    def end_operators(self):
        for cluster in (self.first, self.second):
            for process in reversed(cluster.started):
                if process.alive():
                    process.stop()

    def tearDown(self):
        self.end_operators()

    def only_results(self, job):
        left = [key for key in self.first.store_keys(job) if "/results/" not in key]
        self.assertEqual(left, [])

    def goes_on(self, name, status):
        first, second = self.operate(self.first), self.second
        path = first.manifest(name, **LONG)
        reference = first.bench.run(job=path).digest()
        first.create_job(path)
        backup = self.run_beyond(first, name, SEEN)
        last = self.run_beyond(first, name, 3 * SEEN)
        self.lose(first, name)
        saved = [int(key.split("/checkpoints/")[1].split("/")[0])
                 for key in first.store_keys(backup) if key.endswith("/manifest.json")]
        self.assertGreater(max(saved), SEEN, "the store is newer than the backup")
        self.operate(second)
        self.restore(second, backup, status)
        begun = second.wait_for("the restored job's slices begin", lambda: (
            lambda job: job if job.get("status", {}).get("execution", {}).get("functions") and
            job["status"]["execution"]["jobUid"] == job["metadata"]["uid"] else None)(
                second.get(name)), 60)
        execution = begun["status"]["execution"]
        self.assertEqual(execution["firstIteration"], max(saved), "no iteration before it again")
        self.assertGreater(execution["incarnation"], last["status"]["execution"]["incarnation"])
        self.assertEqual(execution["predecessorUid"], backup["metadata"]["uid"])
        done = second.wait_complete(name, seconds=240)
        self.assertEqual(done["status"]["model"]["digest"], reference)
        self.assertEqual(job_id(done), job_id(backup))
        self.assertEqual(done["status"]["plan"]["revision"], 1)
        self.only_results(done)
        report = json.loads(next(f for f in (self.first.folder / "store").glob(
            f"**/{job_id(done)}/results/report.json")).read_text())
        self.assertEqual(report["outcome"], "Complete")
        self.assertEqual(report["job"]["uid"], done["metadata"]["uid"])

    def test_a_running_job_goes_on_from_its_newest_checkpoint(self):
        self.goes_on("ran", status=False)

    def test_and_so_it_does_with_its_old_status(self):
        self.goes_on("ran-with-status", status=True)

    def test_a_complete_job_is_complete_without_any_function(self):
        first, second = self.operate(self.first), self.second
        first.create_job(first.manifest("done"))
        backup = first.wait_complete("done", seconds=120)
        self.lose(first, "done")
        self.operate(second)
        self.restore(second, backup)
        done = second.wait_complete("done", seconds=30)
        self.assertEqual(done["status"]["model"], backup["status"]["model"])
        self.assertEqual(done["status"]["usage"]["coldStarts"], 0)
        self.only_results(done)

    def test_of_two_clusters_the_restored_job_has_the_place(self):
        first, second = self.operate(self.first), self.operate(self.second)
        path = first.manifest("both", **LONG)
        reference = first.bench.run(job=path).digest()
        first.create_job(path)
        backup = self.run_beyond(first, "both", SEEN)
        self.restore(second, backup)
        self.run_beyond(second, "both", SEEN)
        # The first one has slices for minutes; it sees it at the next ones.
        for pid in first.functions():
            os.kill(pid, signal.SIGKILL)
        failed = first.wait_for("the first one's end", lambda: first.condition(
            first.get("both"), "Failed"), 60)
        self.assertEqual(failed["reason"], "PlaceTaken")
        # Its deletion takes nothing from the other.
        first.api("DELETE", first.job_path("both"))
        first.wait_for("it is gone", lambda: first.get("both") is None, 60)
        done = second.wait_complete("both", seconds=240)
        self.assertEqual(done["status"]["model"]["digest"], reference)
        self.only_results(done)

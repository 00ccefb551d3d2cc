# SPDX-License-Identifier: Apache-2.0
"""MinIO goes away for 20 seconds while an operator's job trains on it, and comes back with its data, or
without its objects: the job ends with the digest of an undisturbed run. Without its users, too, the job
fails with a sentence that says so. Nothing is left but results."""
import os
import shutil
import signal
import time
import unittest

from kube_api import job_id
from operator_support import Cluster
from options import OPTIONS
from s3_servers import ACCESS_KEY, BUCKET, SECRET_KEY, RealServer

EPOCHS = {"epochs": 12}
DOWN_SECONDS = 20


class StoreGoesAway(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(OPTIONS.bin)
        cls.addClassCleanup(cls.cluster.close)
        cls.host = cls.cluster.start_host()
        cls.operator = cls.cluster.start_operator(cls.host)
        cls.cluster.create_secret("s3", accessKeyId=ACCESS_KEY, secretAccessKey=SECRET_KEY)
        # The bits are the same on every store.
        cls.reference = cls.cluster.bench.run(
            job=cls.cluster.manifest("reference", training=EPOCHS)).digest()

    def disturb(self, name, *lost, ends=0):
        """The job's end, whose store comes back without these of its folders. So many of its functions end
        meanwhile."""
        minio = RealServer("minio")
        self.addCleanup(minio.close)
        self.cluster.create_job(self.cluster.manifest(name, minio=minio, training=EPOCHS))
        self.cluster.wait_for("iterations", lambda: (self.cluster.get(name).get("status") or {}).get(
            "progress", {}).get("iteration", 0) > 20)
        minio.process.kill()
        minio.process.wait()
        for pid in sorted(self.cluster.functions())[:ends]:
            os.kill(pid, signal.SIGKILL)
        for folder in lost:
            shutil.rmtree(minio.data / folder)
        (minio.data / BUCKET).mkdir(exist_ok=True)
        time.sleep(DOWN_SECONDS)
        minio.start()
        job = self.cluster.wait_for("the job's end", lambda: next(
            (seen for seen in [self.cluster.get(name)]
             if seen["status"]["phase"] in ("Complete", "Failed")), None), 900)
        usage = job["status"]["usage"]
        print(f"\n{name}: {job['status']['phase']}, {usage.get('restarts', 0)} restarts, "
              f"{usage['coldStarts']} cold starts", flush=True)
        place = job_id(job)
        self.cluster.wait_for("only results are left", lambda: not [
            key for key in minio.keys() if place in key and "/results/" not in key], 30)
        self.cluster.wait_for("no function is left", lambda: not self.cluster.functions(), 15)
        return job

    def test_and_comes_back_with_its_data(self):
        job = self.disturb("kept")
        self.assertEqual(job["status"]["phase"], "Complete", job["status"]["conditions"])
        self.assertEqual(job["status"]["usage"].get("restarts", 0), 0)
        self.assertEqual(job["status"]["model"]["digest"], self.reference)

    def test_and_comes_back_without_its_objects(self):
        """Checkpoints too, and one is needed: the job begins anew. Functions that all live may need nothing
        of what is lost, and go on."""
        job = self.disturb("lost", BUCKET, ends=1)
        self.assertEqual(job["status"]["phase"], "Complete", job["status"]["conditions"])
        self.assertEqual(job["status"]["usage"].get("restarts", 0), 1)
        self.assertEqual(job["status"]["model"]["digest"], self.reference)

    def test_and_comes_back_without_its_users(self):
        """The functions have credentials of the job that it knows no more."""
        job = self.disturb("stranger", BUCKET, ".minio.sys")
        failed = self.cluster.condition(job, "Failed")
        self.assertIsNotNone(failed, job["status"]["conditions"])
        self.assertEqual(failed["reason"], "SliceFailed")
        self.assertIn("refuses the credentials: the access key is unknown there; correct",
                      failed["message"])

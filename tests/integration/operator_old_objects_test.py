# SPDX-License-Identifier: Apache-2.0
"""An upgrade of the API under stored jobs: objects with the fields of before (docs/operations.md, Fields
that have changed) stay in the API server while CRD and operator are replaced, on a real API server. One
that has finished stays as it is; one that has not is told the new names, and its checkpoint trains on
under a new job. The CRD is even newer than the operator then: jobs run under it as ever, and one with a
field that the operator does not know waits."""
import copy
import json
import os
import re
import signal
import unittest

import yaml

import job_crd
from kube_api import job_id
from operator_support import Cluster
from options import OPTIONS

LONG = {"training": {"epochs": 40}, "checkpoint": {"intervalSeconds": 1}}
SEEN = 60  # iterations before the upgrade
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + job_crd.NAME
# A schema that takes everything, as the older one took what it knew.
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXT = {"type": "string"}
ANYTHING = {**FREE, "properties": {  # with those that can be selected by
    "spec": {**FREE, "properties": {"suspend": {"type": "boolean"}, "backend": TEXT}},
    "status": {**FREE, "properties": {"phase": TEXT}}}}
NEW = "fromTheFuture"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def newer(version):
    """A version of the CRD with fields and a column that a later release may add."""
    parts = version["schema"]["openAPIV3Schema"]["properties"]
    for part in (parts["spec"]["properties"]["training"], parts["spec"], parts["status"]):
        part["properties"][NEW] = TEXT
    version["additionalPrinterColumns"].append(
        {"name": "Future", "type": "string", "jsonPath": f".status.{NEW}"})


def mebibytes(quantity):
    return int(re.fullmatch(r"(\d+)Mi", quantity).group(1))


def as_before(job):
    """The object as the operator of before left it."""
    old = copy.deepcopy(job)
    spec, status = old["spec"], old["status"]
    spec["runtime"] = {"image": "registry.example/worker:1", "env": [{"name": "A", "value": "b"}]}
    spec["dataset"]["format"] = "idx"
    spec["training"]["optimizer"]["name"] = "sgd"
    for sizes in (status["plan"], *status["planHistory"]):
        for name in ("memory", "serverMemory"):
            if name in sizes:
                sizes[f"{name}MiB"] = mebibytes(sizes.pop(name))
    status["plan"]["predicted"] = {name: float(value) if isinstance(value, str) else value
                                   for name, value in status["plan"]["predicted"].items()}
    status["execution"]["plannedFor"] = "0123456789abcdef"
    status["execution"]["functions"] = [f"{each['role']}={each['uid']}" for each in status["execution"].get(
        "functions", [])]
    for name in ("jobId", "jobUid"):
        status["execution"].pop(name, None)
    old["metadata"].get("annotations", {}).pop("lambdadnn.io/job-id", None)
    return old


class OldObjects(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(OPTIONS.bin, own_plane=True)
        cls.addClassCleanup(cls.cluster.close)

    def operate(self, name):
        self.host = self.cluster.start_host(f"host-{name}")
        folder = self.cluster.folder
        self.operator = self.cluster.start_operator(
            self.host, "--platform", self.cluster.bench.platform(milliCpuPerGiB=400), "--readable",
            f"file://{folder}/digits,file://{folder}/store/lambdadnn/{{namespace}}")

    def end(self):
        """The operator of before, and what ran with it."""
        self.operator.kill()
        self.host.kill()
        for pid in self.cluster.functions():
            os.kill(pid, signal.SIGKILL)
        self.cluster.wait_for("no function", lambda: not self.cluster.functions())

    def define(self, change):
        # Each field of its own, also where the file has an anchor.
        versions = json.loads(json.dumps(yaml.safe_load(job_crd.CRD.read_text())["spec"]["versions"]))
        change(versions[0])
        code, answer = self.cluster.api("PATCH", CRDS, {"spec": {"versions": versions}})
        self.assertEqual(code, 200, answer)

    def write(self, path, job):
        """Spec and status; the schema of a moment ago may be the server's for a moment more."""
        def stored():
            for where in (path, f"{path}/status"):
                live = self.cluster.api("GET", path)[1]
                body = {**job, "metadata": {**job["metadata"],
                                            "resourceVersion": live["metadata"]["resourceVersion"]}}
                self.cluster.api("PUT", where, body)
            live = self.cluster.api("GET", path)[1]
            return live["spec"] == job["spec"] and live["status"] == job["status"]
        self.cluster.wait_for("the old object", stored, 30, every=0.5)

    def move_place(self, job):
        """To where it was before: below the job's uid."""
        [place] = (self.cluster.folder / "store").glob(f"**/{job_id(job)}")
        before = place.with_name(job["metadata"]["uid"])
        place.rename(before)
        return before

    def test_finished_jobs_stay_and_others_are_told_the_new_names(self):
        cluster = self.cluster
        self.operate("before")
        path = cluster.manifest("long", **LONG)
        reference = cluster.bench.run(job=path).digest()
        cluster.create_job(cluster.manifest("done"))
        done = cluster.wait_complete("done")
        cluster.create_job(path)
        job = cluster.wait_for(f"iteration {SEEN}", lambda: (lambda job: job if job.get("status", {}).get(
            "progress", {}).get("iteration", 0) >= SEEN else None)(cluster.get("long")), 120)
        self.end()

        place = self.move_place(job)
        self.define(lambda version: version["schema"].update(openAPIV3Schema=ANYTHING))
        for each in (job, done):
            self.write(cluster.job_path(each["metadata"]["name"]), as_before(each))
        self.define(newer)
        self.operate("after")

        failed = cluster.wait_for("it is told", lambda: cluster.condition(cluster.get("long"), "Failed"), 60)
        self.assertEqual("InvalidSpec", failed["reason"])
        print(f"\n{failed['message']}", flush=True)
        for words in (f"default/{place.name}", "spec.runtime", "spec.podTemplate", "IDX", "SGD"):
            self.assertIn(words, failed["message"])
        self.assertEqual({}, cluster.functions())
        kept = cluster.get("done")
        self.assertTrue(cluster.condition(kept, "Complete"))
        self.assertEqual(done["status"]["model"], kept["status"]["model"])

        # Nothing is lost: neither what it had trained, nor the old object's own fields.
        self.assertTrue(list(place.glob("checkpoints/*/*/manifest.json")))
        self.assertEqual("registry.example/worker:1", cluster.get("long")["spec"]["runtime"]["image"])
        path = cluster.manifest("next", **{
            **LONG, "training": {**LONG["training"], NEW: "x"},
            "checkpoint": {"intervalSeconds": 1, "resumeFrom": f"file://{place}"}})
        asked = json.loads(path.read_text())
        cluster.wait_for("the newer CRD serves", lambda: NEW in cluster.api(
            "POST", f"{cluster.job_path()}?dryRun=All", asked)[1]["spec"]["training"])
        cluster.create_job(path)
        [told] = cluster.wait_for("it is told that it waits", lambda: [
            event["note"] for event in cluster.api("GET", EVENTS)[1]["items"]
            if event["reason"] == "SpecUnreadable"])
        self.assertIn(f"spec.training.{NEW}", told)
        self.assertEqual([None, {}], [cluster.get("next").get("status", {}).get("plan"), cluster.functions()])
        cluster.patch_job("next", {"spec": {"training": {NEW: None}}})
        following = cluster.wait_complete("next", seconds=240)
        self.assertEqual(reference, following["status"]["model"]["digest"])
        self.assertGreaterEqual(following["status"]["plan"]["firstIteration"], 1)
        for name in ("long", "done", "next"):
            cluster.api("DELETE", cluster.job_path(name))
            cluster.wait_for(f"{name} is gone", lambda name=name: cluster.get(name) is None)
        self.assertEqual({}, cluster.functions())

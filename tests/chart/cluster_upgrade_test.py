# SPDX-License-Identifier: Apache-2.0
"""From the previous commit's chart and images to those of this tree on a whole cluster, and back, and
there again, under one running job: each operator drives functions that the other one began, and the
model has the bits of a run on one machine.

LAMBDADNN_UPGRADE_FROM names another commit than HEAD^. Its images are built by its own scripts/images.sh
in the cache (upgrade/commit/COMMIT, which keeps one commit's). Both commits need the same LibTorch, the same
slice protocol, and the same arithmetic. The rest is told by cluster_chart_case.py.
"""
import os
import shutil
import subprocess
import unittest

import yaml

from chart_support import CHART, NAMESPACE, ROOT
from cluster_case import IMAGES, build_images
from cluster_chart_case import CRD, PATIENT, STORE, ChartCase, settings
from on_pods import programs_of, report_of_run, spec

FROM = "LAMBDADNN_UPGRADE_FROM"
JOB = "long"
# Of 17 iterations, of which some three a second are done: it outlasts three times of helm. A job that does
# not fails the test.
EPOCHS = 80
OPERATORS = (f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector="
             "app.kubernetes.io/component=operator")


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True)


def commit_before():
    """Its full name."""
    named = os.environ.get(FROM)
    found = git("rev-parse", "--verify", f"{named or 'HEAD^'}^{{commit}}")
    if found.returncode == 0:
        return found.stdout.decode().strip()
    assert not named, f"{FROM}={named} is no commit: {found.stderr.decode()}"
    raise unittest.SkipTest("there is no commit before this one to upgrade from, as in a shallow clone: "
                            + found.stderr.decode().strip().replace("\n", " "))


def tree_of(commit, folder):
    """The commit's files in the folder, where no other commit's are from then on."""
    tree = folder / commit / "source"
    for other in folder.glob("*"):
        if other != tree.parent:
            shutil.rmtree(other)
    if not tree.exists():
        fresh = tree.with_name("fresh")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        archive = git("archive", commit)
        assert archive.returncode == 0, archive.stderr
        subprocess.run(["tar", "-x", "-f", "-", "-C", fresh], input=archive.stdout, check=True)
        fresh.rename(tree)
    return tree


def images_of_tree(tree):
    """The folder of its images, built unless they are there."""
    folder = tree / "build/images"
    if all((folder / f"{name}.tar").exists() for name in IMAGES):
        return folder
    return build_images("--tag", f"from-{tree.parent.name[:12]}", root=tree)


def named(tags, *names):
    return {f"dev.local/lambdadnn-{name}:{tags[name]}" for name in names}


def images_in(pods):
    """Of the operator's and functions' own containers, not of Knative's."""
    return {each["image"] for pod in pods for each in pod["spec"]["containers"]
            if each["name"] in ("operator", "function")}


class Upgrade(ChartCase):
    """The tests go on from each other, in order."""
    PLATFORM = {"milliCpuPerGiB": 200}  # two small nodes hold the pinned plan
    WAIT_SECONDS = 1200  # the whole job, also on a machine that others use

    @classmethod
    def setUpClass(cls):
        commit = commit_before()
        cls.before = tree_of(commit, settings.Settings().cache / "upgrade/commit")
        images = images_of_tree(cls.before)
        super().setUpClass()
        cls.tags_before = cls.load(images)
        print(f"upgrade: from {commit[:12]} to this tree", flush=True)

    def release(self, verb, tree, tags):
        """Installs a tree's chart, or upgrades to it."""
        verb(tree / CHART.relative_to(ROOT), tags, objectStore=STORE, uninstall=PATIENT)
        self.is_there(tree, tags)

    def is_there(self, tree, tags):
        """A tree's release, and nothing of the other one."""
        self.wait("the other operators are gone", lambda: named(tags, "operator") == images_in(
            self.kube.get(OPERATORS)["items"]))
        # As the API server stores it: with what it fills in.
        crd = yaml.safe_load(next((tree / "crds").glob("*.yaml")).read_text())
        wanted = self.request("PATCH", f"{CRD}?dryRun=All", {"spec": crd["spec"]})
        self.assertEqual(wanted["spec"], self.kube.get(CRD)["spec"])

    def lives(self):
        """What a job that is disturbed does not keep."""
        return self.functions(), self.job(JOB)["status"]["execution"]["incarnation"]

    def test_1_an_upgrade_and_a_rollback_do_not_disturb_a_job(self):
        self.release(self.install, self.before, self.tags_before)
        self.start(JOB, {**spec(EPOCHS), "backend": "Knative"})
        self.running(JOB, 20)
        lives = self.lives()
        self.assertEqual(named(self.tags_before, "worker", "server"), images_in(self.pods()))

        self.release(self.upgrade, ROOT, self.tags)
        self.goes_on(JOB)
        self.assertEqual(lives, self.lives())

        self.rollback()
        self.is_there(self.before, self.tags_before)
        self.goes_on(JOB)
        self.assertEqual(lives, self.lives())

    def test_2_upgraded_again_a_job_keeps_its_functions_until_it_is_suspended(self):
        lives = self.lives()
        self.release(self.upgrade, ROOT, self.tags)
        self.goes_on(JOB)
        self.assertEqual(lives, self.lives())

        self.suspend(JOB, True)
        self.wait("the job is suspended", self.suspended)
        self.nothing_runs()
        self.suspend(JOB, False)
        self.goes_on(JOB)
        self.assertEqual(named(self.tags, "worker", "server"), images_in(self.pods()))

    def suspended(self):
        job = self.job(JOB)
        self.fail_if_failed(job)
        self.fail_if_ended(job)
        return job["status"]["phase"] == "Suspended"

    def test_3_the_model_has_the_bits_of_one_machine(self):
        job = self.complete(JOB)
        self.nothing_runs()
        programs = programs_of(self.images, self.folder)
        report = report_of_run(programs / "lambdadnn", "local", spec(EPOCHS), self.folder)
        self.assertEqual(report["model"]["digest"], job["status"]["model"]["digest"])

    def test_4_uninstalling_leaves_nothing(self):
        self.uninstall()
        self.delete_space()

# SPDX-License-Identifier: Apache-2.0
"""How Flux and Argo CD see a job in each state: through their own libraries (tests/servers/gitops-view),
from the statuses that the operator writes (tests/data/statuses)."""
import json
import subprocess

import pytest

from chart_support import CHART, ROOT

HEALTH = CHART / "files/argocd/health.lua"
STATUSES = ROOT / "tests/data/statuses"


def views(*objects):
    program = subprocess.run([ROOT / "scripts/test_servers.sh", "path", "gitops-view"],
                             capture_output=True, text=True, check=True).stdout.strip()
    lines = "".join(json.dumps(each) + "\n" for each in objects)
    seen = subprocess.run([program, HEALTH], input=lines, capture_output=True, text=True,
                          check=False)
    assert seen.returncode == 0, seen.stderr
    return [json.loads(line) for line in seen.stdout.splitlines()]


def job(state):
    return json.loads((STATUSES / f"{state}.json").read_text())


@pytest.mark.parametrize("state, kstatus, argo", [
    ("fresh", "InProgress", "Progressing"),
    ("profiled", "InProgress", "Progressing"),
    ("running", "Current", "Progressing"),
    ("suspended", "InProgress", "Suspended"),
    ("complete", "Current", "Healthy"),
    ("failed", "Failed", "Degraded"),
])
def test_a_job_in_each_state(state, kstatus, argo):
    [seen] = views(job(state))
    assert (seen["kstatus"], seen["argo"]) == (kstatus, argo), seen


def test_the_messages_tell_what_goes_on():
    running, failed = views(job("running"), job("failed"))
    assert running["argoMessage"].startswith("Running, epoch ")
    message = next(each["message"] for each in job("failed")["status"]["conditions"]
                   if each["type"] == "Failed")
    assert failed["argoMessage"] == message
    assert message in failed["kstatusMessage"]


def test_a_job_that_no_operator_has_seen_is_not_done():
    new = {**job("fresh"), "status": {"observedGeneration": -1}}  # the default of the CRD
    changed = job("complete")
    changed["metadata"]["generation"] += 1
    for seen in views(new, changed):
        assert (seen["kstatus"], seen["argo"]) == ("InProgress", "Progressing"), seen


def test_trouble_shows_in_argo():
    troubled = job("running")
    troubled["status"]["conditions"].append(
        {"type": "Degraded", "status": "True", "reason": "FunctionLost", "message": "one was lost"})
    [seen] = views(troubled)
    assert seen["argo"] == "Progressing"
    assert seen["argoMessage"].endswith("; one was lost")

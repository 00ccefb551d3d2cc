# SPDX-License-Identifier: Apache-2.0
"""The CRD on a test's API server, served before a test begins."""
import time

from kube_control_plane import ROOT

CRD = ROOT / "crds/lambdadnn.io_serverlesstrainingjobs.yaml"
NAME = "serverlesstrainingjobs.lambdadnn.io"
ESTABLISHED = '{.status.conditions[?(@.type=="Established")].status}'


def install(kubectl, seconds=60):
    """Applies it and waits until it is served.

    kubectl: takes the words of a command line, returns a CompletedProcess whatever its exit code.
    `kubectl wait` fails on a CRD so new that its status has no list of conditions yet.
    """
    done = kubectl("apply", "--server-side", "-f", str(CRD))
    assert done.returncode == 0, done.stderr
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done = kubectl("get", "crd", NAME, "-o", f"jsonpath={ESTABLISHED}")
        if done.stdout == "True":
            return
        time.sleep(0.2)
    raise AssertionError(f"the CRD was not established within {seconds} s: "
                         f"{done.stdout}{done.stderr}")

# SPDX-License-Identifier: Apache-2.0
"""Runs kube_server_conformance, the suite of every KubeClient, on a real kube-apiserver."""
import os
import pathlib
import subprocess
import tempfile

from kube_control_plane import ControlPlane
from options import OPTIONS


def test_kube_server_conformance():
    with tempfile.TemporaryDirectory(prefix="lambdadnn-test-") as folder:
        plane = ControlPlane(pathlib.Path(folder) / "plane")
        try:
            plane.up()
            done = subprocess.run([OPTIONS.bin / "kube_server_conformance"], env={
                **os.environ, "LAMBDADNN_TEST_KUBECONFIG": plane.kubeconfig})
        finally:
            plane.down()
    assert done.returncode == 0

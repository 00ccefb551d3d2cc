#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs kube_server_conformance, the suite of every KubeClient, on a real kube-apiserver.

    kube_conformance_test.py PROGRAM
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from kube_control_plane import ControlPlane  # noqa: E402


def main():
    with tempfile.TemporaryDirectory(prefix="lambdadnn-test-") as folder:
        plane = ControlPlane(pathlib.Path(folder) / "plane")
        try:
            plane.up()
            return subprocess.run(sys.argv[1:], env={
                **os.environ, "LAMBDADNN_TEST_KUBECONFIG": plane.kubeconfig}).returncode
        finally:
            plane.down()


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Images of functions behind of-watchdog: images/watchdog/Dockerfile on those of scripts/images.sh."""
import os
import subprocess

import images
import openfaas
from settings import ROOT, ClusterError

PROGRAMS = ("worker", "server")
_ANYTHING = '{"default": [{"type": "insecureAcceptAnything"}]}'


def name_of(program):
    return f"dev.local/lambdadnn-{program}-watchdog:1"


def build(config, built, folder):
    """The archives, in `folder`, of those in the folder `built`."""
    policy = folder / "policy.json"
    policy.write_text(_ANYTHING)
    (folder / "tmp").mkdir(exist_ok=True)
    watchdog = images.Images(config).of_program("fwatchdog", openfaas.program(config, "fwatchdog"))
    command = ["buildah", "--storage-driver", "vfs", "--root", folder / "root", "--runroot", folder / "run"]

    def run(*words):
        done = subprocess.run([*command, *words], capture_output=True, text=True,
                              env={**os.environ, "TMPDIR": str(folder / "tmp")})
        if done.returncode != 0:
            raise ClusterError(f"buildah {words[0]} failed: {done.stderr.strip()[-1000:]}")

    archives = []
    for program in PROGRAMS:
        made = folder / f"{program}-watchdog.tar"
        run("bud", "--signature-policy", policy, "--isolation", "chroot",
            "--build-arg", f"WATCHDOG=docker-archive:{watchdog}",
            "--build-arg", f"FUNCTION=oci-archive:{built / program}.tar",
            "--build-arg", f"PROGRAM=lambdadnn-{program}", "-t", name_of(program),
            "-f", ROOT / "images/watchdog/Dockerfile", ROOT / "images/watchdog")
        run("push", "-q", "--signature-policy", policy, name_of(program),
            f"docker-archive:{made}:{name_of(program)}")
        archives.append(made)
    return archives

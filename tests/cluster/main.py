#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands of scripts/cluster.sh, which describes them."""
import argparse
import os
import pathlib
import sys

import cluster as whole
import lock
import network
import openfaas
import settings
import status
from settings import ClusterError

DEFAULT_NODES = 2


def _arguments():
    parser = argparse.ArgumentParser(prog="cluster.sh", add_help=False)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up")
    up.add_argument("--nodes", type=int, default=None)
    up.add_argument("--openfaas", action="store_true")
    for name in ("build", "down", "status", "kubeconfig"):
        commands.add_parser(name)
    commands.add_parser("load-image").add_argument("archives", nargs="+")
    logs = commands.add_parser("logs")
    logs.add_argument("part", nargs="?")
    logs.add_argument("-f", "--follow", action="store_true")
    commands.add_parser("shell").add_argument("words", nargs=argparse.REMAINDER)
    return parser.parse_args()


def _up(cluster, wanted, with_openfaas):
    saved = cluster.config.saved()
    count = wanted or (saved["nodes"] if saved else DEFAULT_NODES)
    if not 1 <= count <= settings.MOST_NODES:
        raise ClusterError(f"--nodes {count}: a cluster has 1 to {settings.MOST_NODES} nodes")
    whole.build()
    if with_openfaas:
        openfaas.build(cluster.config)
    with lock.held(cluster.config, "up"):
        cluster.up(count)
        if with_openfaas:
            cluster.add_openfaas()


def _logs(cluster, part, follow):
    files = sorted(cluster.config.logs.glob("*.log"))
    if part is None:
        for file in files:
            print(f"{file.stem:<26} {file.stat().st_size:>9} bytes  {file}")
        print("logs of pods: scripts/cluster.sh shell kubectl logs …")
        return
    file = cluster.config.logs / f"{part}.log"
    if file not in files:
        raise ClusterError(f"no part {part!r} has a log; scripts/cluster.sh logs lists them")
    os.execvp("tail", ["tail", "-n", "200", *(["-F"] if follow else []), str(file)])


def _shell(cluster, words):
    cluster.count()
    if words[:1] == ["--"]:
        words = words[1:]
    kubectl = pathlib.Path(settings.program("kubectl")).parent
    environment = {
        **cluster.kubernetes.environment(), "PATH": f"{kubectl}:{os.environ['PATH']}",
        "AWS_ENDPOINT_URL": f"http://{settings.S3_ADDRESS}", "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": settings.S3_USER, "AWS_SECRET_ACCESS_KEY": settings.S3_PASSWORD}
    command = words or [os.environ.get("SHELL", "/bin/sh")]
    if cluster.network.identity(network.LAB) is None:
        raise ClusterError("the cluster's network is gone; run scripts/cluster.sh up")
    os.execvpe("nsenter", [*cluster.network.prefix(network.LAB), *command], environment)


def _run(options):
    cluster = whole.Cluster(settings.Settings())
    if options.command == "build":
        whole.build()
    elif options.command == "kubeconfig":
        cluster.count()
        print(cluster.config.kubeconfig())
    elif options.command == "logs":
        _logs(cluster, options.part, options.follow)
    elif os.geteuid() != 0:
        raise ClusterError("a test cluster makes network namespaces and control groups, which needs "
                           "root; run this as root")
    elif options.command == "up":
        _up(cluster, options.nodes, options.openfaas)
    elif options.command == "down":
        with lock.held(cluster.config, "down"):
            cluster.down()
    elif options.command == "status":
        return 0 if status.show(cluster) else 1
    elif options.command == "load-image":
        with lock.held(cluster.config, "load-image"):
            cluster.load_images(options.archives)
    elif options.command == "shell":
        _shell(cluster, options.words)
    return 0


def main():
    options = _arguments()
    try:
        return _run(options)
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""The table of `cluster.sh status`: parts, where they are, versions, memory in RAM, health."""
import pathlib

import knative
import settings
from cluster_api import condition
from processes import resident_mib
from settings import ClusterError

HEAD = ("PART", "IN", "VERSION", "PROCESS", "RSS MiB", "HEALTH")


def _program_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
    except OSError:
        return ""


def _daemon_rows(cluster):
    for part in cluster.parts(cluster.count()):
        pid = cluster.processes.pid(part.name)
        health = "gone" if pid is None else "well" if cluster.processes.healthy(part) else "unwell"
        yield (part.name, part.namespace, part.version, str(pid or "-"),
               f"{resident_mib([pid]):.0f}" if pid else "-", health)


def _knative_rows(cluster, programs):
    version = settings.versions()["knative"]
    try:
        available = knative.deployments(cluster.kubernetes)
    except (OSError, ClusterError):
        available = {}
    for name in knative.DEPLOYMENTS:
        pids = programs.get(f"/knative-{name}", [])
        yield (f"knative {name}", "pods", version, ",".join(map(str, pids)) or "-",
               f"{resident_mib(pids):.0f}" if pids else "-",
               "well" if available.get(name) else "not available")


def _print(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _print_nodes(cluster):
    try:
        items = cluster.kubernetes.get("/api/v1/nodes")["items"]
    except (OSError, ClusterError) as error:
        print(f"nodes: {error}")
        return
    for item in items:
        offered = item["status"]["allocatable"]
        ready = "ready" if condition(item, "Ready") == "True" else "not ready"
        print(f"node {item['metadata']['name']}: {ready}, offers pods {offered['cpu']} CPU, "
              f"{offered['memory']} memory")


def show(cluster):
    """Prints the table; True when everything is well."""
    everything = cluster.processes.groups.processes()
    programs = {}
    for pid in everything:
        programs.setdefault(_program_of(pid), []).append(pid)
    rows = [HEAD, *_daemon_rows(cluster), *_knative_rows(cluster, programs)]
    _print(rows)
    _print_nodes(cluster)
    print(f"{len(everything)} processes of the cluster, {resident_mib(everything):.0f} MiB; "
          f"object store http://{settings.S3_ADDRESS}, files in {cluster.config.run}")
    return all(row[-1] == "well" for row in rows[1:])

# SPDX-License-Identifier: Apache-2.0
"""The whole cluster: starts (and repairs) it, stops it, and leaves no trace outside the run folder."""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import time

import cluster_api
import control_plane
import dns
import images
import knative
import network
import nodes
import object_store
import openfaas
import processes
import settings
from cluster_api import condition
from settings import ROOT, ClusterError, log

# Folders of scripts/test_servers.sh that a cluster is made of.
SERVERS = ("etcd", "kubernetes", "kubernetes-node", "coredns", "minio", "test-function", "knative")
SHIM_SOCKETS = "/run/containerd/s"
CNI_RESULTS = "/var/lib/cni/results"
# Outside the run folder, used by every containerd of the machine.
SHARED_FOLDERS = (SHIM_SOCKETS, "/run/containerd", CNI_RESULTS, "/var/lib/cni")


class Stopwatch:
    """Says for each part how long it took and how long it is since the begin."""

    def __init__(self):
        self.begin = time.monotonic()

    def step(self, what, function, *arguments):
        start = time.monotonic()
        result = function(*arguments)
        now = time.monotonic()
        changed = "" if result is None or result else "  (as it was)"
        log(f"{now - self.begin:6.1f} s  {what}: {now - start:.1f} s{changed}")
        return result


class Cluster:
    def __init__(self, config):
        self.config = config
        self.network = network.Network(config)
        self.processes = processes.Processes(config, self.network)
        self.kubernetes = cluster_api.Kubernetes(config, self.network)
        self.images = images.Images(config)

    def parts(self, count):
        """Every daemon of a cluster of `count` nodes."""
        result = [*control_plane.store_and_server(self.config),
                  *control_plane.controllers(self.config)]
        for node in settings.nodes(count):
            result += [nodes.runtime(self.config, node), *nodes.agents(self.config, node)]
        return result + [dns.part(self.config), object_store.part(self.config),
                         knative.ingress(self.config)]

    def up(self, count):
        watch = Stopwatch()
        saved = self.config.saved()
        if saved and saved["nodes"] > count:
            raise ClusterError(f"the cluster at {self.config.run} has {saved['nodes']} nodes; run "
                               "scripts/cluster.sh down before one with fewer")
        settings.node_share(count)
        self.config.run.mkdir(parents=True, exist_ok=True)
        made = saved["made"] if saved else [each for each in SHARED_FOLDERS
                                            if not os.path.exists(each)]
        self.config.save({"nodes": count, "made": made})
        watch.step("certificates", control_plane.make_certificates, self.config,
                   settings.nodes(count))
        watch.step("network", self.network.up, settings.nodes(count))
        with concurrent.futures.ThreadPoolExecutor() as pool:
            store = pool.submit(watch.step, "MinIO", self._daemons, object_store.part)
            watch.step("etcd, kube-apiserver", self._daemons, control_plane.store_and_server)
            work = [pool.submit(watch.step, "controllers", self._daemons,
                                control_plane.controllers)]
            work += [pool.submit(watch.step, f"node {node.name}", self._node, node, count)
                     for node in settings.nodes(count)]
            work += [pool.submit(watch.step, "DNS, volumes, Knative's objects", self._objects,
                                 count), store]
            self._all(work)
        watch.step("nodes ready", nodes.wait_ready, self.kubernetes, count)
        watch.step("ingress", self._daemons, lambda config: [knative.ingress(config)])
        watch.step("Knative ready", knative.wait_available, self.kubernetes)
        log(f"the cluster of {count} nodes is up after {time.monotonic() - watch.begin:.1f} s; "
            "scripts/cluster.sh shell enters it")

    def is_well(self):
        """Whether all of a cluster is there and answers: then `up` would find nothing to do."""
        if self.config.saved() is None:
            return False
        try:
            return (all(self.processes.healthy(part) for part in self.parts(self.count()))
                    and all(condition(node, "Ready") == "True"
                            for node in self.kubernetes.get("/api/v1/nodes")["items"])
                    and all(knative.deployments(self.kubernetes).get(name)
                            for name in knative.DEPLOYMENTS))
        except (OSError, ClusterError):
            return False

    @staticmethod
    def _all(work):
        """Waits for all, then tells the first failure: what runs on would outlive the command."""
        concurrent.futures.wait(work)
        for each in work:
            each.result()

    def _daemons(self, describe):
        found = describe(self.config)
        return self.processes.up(found if isinstance(found, list) else [found])

    def _node(self, node, count):
        nodes.write_files(self.config, self.processes.groups, node, count)
        changed = self.processes.up([nodes.runtime(self.config, node)])
        changed |= self._load(node, self.images.pause())
        changed |= self.processes.up(nodes.agents(self.config, node))
        for archive in [*self.images.knative(), self.images.test_function()]:
            changed |= self._load(node, archive)
        return changed

    def _load(self, node, archive):
        return nodes.import_image(self.config, self.network, node, archive)

    def _objects(self, count):
        mark = self.config.run / "objects-applied"
        if not mark.exists() or mark.read_text() != str(count):
            self.kubernetes.apply_objects([*dns.objects(), *nodes.volumes(self.config, count)])
            mark.write_text(str(count))
        changed = self._daemons(dns.part)
        return knative.apply(self.config, self.kubernetes) or changed

    def load_images(self, archives):
        count = self.count()
        for archive in archives:
            if not pathlib.Path(archive).is_file():
                raise ClusterError(f"{archive} is no file; load-image takes docker or OCI archives")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            start = time.monotonic()
            self._all([pool.submit(lambda node: [self._load(node, each) for each in archives],
                                   node) for node in settings.nodes(count)])
        log(f"{len(archives)} archives on {count} nodes: {time.monotonic() - start:.1f} s")

    def add_openfaas(self):
        """Beside Knative; its programs are built."""
        start = time.monotonic()
        self.load_images(openfaas.archives(self.config))
        openfaas.apply(self.config, self.kubernetes)
        log(f"OpenFaaS is ready after {time.monotonic() - start:.1f} s, its gateway at {openfaas.address()}")

    def count(self):
        saved = self.config.saved()
        if saved is None:
            raise ClusterError(f"there is no cluster at {self.config.run}; run scripts/cluster.sh up")
        return saved["nodes"]

    def down(self):
        """Whatever is there goes, however broken it is; a ClusterError names what would not."""
        start = time.monotonic()
        sockets = self._shim_sockets()
        stubborn = self.processes.groups.kill_all()
        if stubborn:
            raise ClusterError(f"these processes of the cluster would not die: {sorted(stubborn)}; "
                               "run scripts/cluster.sh down again")
        self._unmount()
        left = self.processes.groups.remove()
        if left:
            raise ClusterError(f"these control groups are still in use: {', '.join(left[:5])}")
        self._remove_outside(sockets)
        shutil.rmtree(self.config.run, ignore_errors=True)
        if self.config.run.exists():
            raise ClusterError(f"{self.config.run} could not be deleted; see what is in it")
        log(f"the cluster is down after {time.monotonic() - start:.1f} s")

    def _shim_sockets(self):
        """Sockets of the containers' minders, which containerd puts outside its own folders."""
        found = []
        for file in self.config.run.glob("n*/state/io.containerd.runtime.v2.task/*/*/address"):
            address = file.read_text().strip().removeprefix("unix://")
            if address.startswith(SHIM_SOCKETS + "/"):
                found.append(pathlib.Path(address))
        return found

    def _unmount(self):
        for attempt in range(3):
            points = network.mounts_below(self.config.run)
            if not points:
                return
            for point in points:
                flags = ["--lazy"] if attempt else []
                subprocess.run(["umount", *flags, point], capture_output=True)
        if points := network.mounts_below(self.config.run):
            raise ClusterError(f"these are still mounted: {', '.join(points[:5])}")

    def _remove_outside(self, sockets):
        for socket in sockets:
            socket.unlink(missing_ok=True)
        for file in pathlib.Path(CNI_RESULTS).glob(f"{self.config.name}-n*-eth0"):
            pod = file.name.split("-")[-2]
            file.with_name(f"cni-loopback-{pod}-lo").unlink(missing_ok=True)
            file.unlink(missing_ok=True)
        for folder in (self.config.saved() or {}).get("made", []):
            try:
                os.rmdir(folder)
            except OSError:
                pass  # absent, or others use it


def build():
    """Builds what is missing; minutes, once."""
    done = subprocess.run([ROOT / "scripts/test_servers.sh", "build", *SERVERS])
    if done.returncode != 0:
        raise ClusterError("the parts of the cluster could not be built, see above")

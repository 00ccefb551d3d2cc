# SPDX-License-Identifier: Apache-2.0
"""The nodes: containerd, kubelet and kube-proxy, each set in a namespace and a control group of its
own, with capacity for pods as settings.node_share says."""
import json
import pathlib
import re
import shutil
import subprocess

import settings
from processes import Part, http_probe, socket_probe
from settings import ClusterError, program

CNI_PROGRAMS = ("/usr/lib/cni", "/opt/cni/bin")
PAUSE_IMAGE = "dev.local/pause:1"
VOLUMES_PER_NODE = 4
STORAGE_CLASS = "local"


def cni_folder():
    for folder in CNI_PROGRAMS:
        if pathlib.Path(folder, "bridge").exists():
            return folder
    raise ClusterError("the CNI plugins are not installed; run scripts/setup.sh --cluster")


def cni_network(config, node):
    """The name of the node's pod network; CNI keeps files outside the run folder under it."""
    return f"{config.name}-{node.name}"


def containerd_socket(config, node):
    return config.node_folder(node) / "containerd.sock"


def _containerd_settings(config, node):
    home = config.node_folder(node)
    # restrict_oom_score_adj: without the right to lower the score no pod would start.
    # netns_mounts_under_state_dir and Root: nothing of a node outside its folder.
    return f"""version = 2
root = "{home}/containerd"
state = "{home}/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = "{containerd_socket(config, node)}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{home}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni_folder()}"
    conf_dir = "{home}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
        Root = "{home}/runc"
"""


def _pod_network(config, node):
    return {"cniVersion": "0.4.0", "name": cni_network(config, node), "plugins": [
        {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False,
         "hairpinMode": True,
         "ipam": {"type": "host-local", "dataDir": str(config.node_folder(node) / "addresses"),
                  "ranges": [[{"subnet": node.pods}]], "routes": [{"dst": "0.0.0.0/0"}]}},
        {"type": "portmap", "capabilities": {"portMappings": True}}]}


def _kubelet_settings(config, node, group, count):
    home, pki = config.node_folder(node), config.pki
    cores, memory_mib = settings.machine()
    offered_cpu, offered_mib = settings.node_share(count)
    # What is not reserved is offered, less what eviction keeps free.
    reserved_mib = memory_mib - offered_mib - settings.EVICTION_MIB
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                           "x509": {"clientCAFile": str(pki / "ca.crt")}},
        "authorization": {"mode": "Webhook"},
        "address": node.address, "port": 10250, "healthzBindAddress": "127.0.0.1",
        "tlsCertFile": str(pki / f"{node.name}.crt"),
        "tlsPrivateKeyFile": str(pki / f"{node.name}.key"), "rotateCertificates": False,
        "cgroupDriver": "cgroupfs", "cgroupRoot": group, "failCgroupV1": False,
        "failSwapOn": False, "enforceNodeAllocatable": ["pods"],
        "systemReserved": {"cpu": f"{cores * 1000 - offered_cpu}m", "memory": f"{reserved_mib}Mi"},
        "evictionHard": {"memory.available": f"{settings.EVICTION_MIB}Mi",
                         "nodefs.available": "0%", "imagefs.available": "0%",
                         "nodefs.inodesFree": "0%"},
        "localStorageCapacityIsolation": True,
        "containerRuntimeEndpoint": f"unix://{containerd_socket(config, node)}",
        "clusterDomain": "cluster.local", "clusterDNS": [settings.DNS_IP],
        "resolvConf": str(home / "resolv.conf"),
        # Images come from no registry: one that is collected is lost.
        "imageGCHighThresholdPercent": 100, "imageMinimumGCAge": "24h",
        "maxPods": 110, "nodeStatusUpdateFrequency": "5s", "maxOpenFiles": 20000,
        "oomScoreAdj": 0, "staticPodPath": str(home / "manifests"),
        "volumePluginDir": str(home / "plugins"), "podLogsDir": str(home / "podlogs"),
    }


def write_files(config, groups, node, count):
    home = config.node_folder(node)
    for folder in ("cni", "manifests"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    groups.make_node(node.name)
    (home / "containerd.toml").write_text(_containerd_settings(config, node))
    (home / "cni/10-pods.conflist").write_text(json.dumps(_pod_network(config, node)))
    (home / "resolv.conf").write_text(f"nameserver {settings.DNS_IP}\n")
    (home / "kubelet.json").write_text(json.dumps(
        _kubelet_settings(config, node, groups.node_root(node.name), count), indent=1))


def runtime(config, node):
    """containerd, and what must be up before the others."""
    found = shutil.which("containerd")
    if found is None or shutil.which("runc") is None:
        raise ClusterError("containerd and runc are not installed; run scripts/setup.sh --cluster")
    return Part(f"{node.name}-containerd", node.name,
                [found, "-c", config.node_folder(node) / "containerd.toml"],
                socket_probe(containerd_socket(config, node)), _containerd_version(found))


def agents(config, node):
    home = config.node_folder(node)
    version = settings.versions()["kubernetes-node"]
    return [
        Part(f"{node.name}-kubelet", node.name,
             [program("kubelet"), "--config", home / "kubelet.json", "--kubeconfig",
              config.kubeconfig(node.name), "--hostname-override", node.name, "--node-ip",
              node.address, "--root-dir", home / "kubelet", "--cert-dir", home / "certificates"],
             http_probe("127.0.0.1:10248", "/healthz"), version),
        # The limits of conntrack are the machine's and cannot be set from a namespace.
        Part(f"{node.name}-kube-proxy", node.name,
             [program("kube-proxy"), "--kubeconfig", config.kubeconfig("proxy"), "--proxy-mode",
              "iptables", "--cluster-cidr", settings.POD_RANGE, "--hostname-override", node.name,
              "--conntrack-max-per-core", "0", "--conntrack-tcp-timeout-established", "0s",
              "--conntrack-tcp-timeout-close-wait", "0s", "--healthz-bind-address",
              "127.0.0.1:10256", "--metrics-bind-address", "127.0.0.1:10249"],
             http_probe("127.0.0.1:10256", "/livez"), version),
    ]


_versions = {}


def _containerd_version(path):
    if path not in _versions:
        text = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        found = re.search(r"\b\d+\.\d+\.\d+", text)
        _versions[path] = found.group(0) if found else "?"
    return _versions[path]


def import_image(config, net, node, archive):
    """Gives a node the images of a docker or OCI archive; the same file is not read twice."""
    archive = pathlib.Path(archive)
    stamp = archive.stat()
    mark = config.node_folder(node) / "imported" / archive.name
    content = f"{archive.resolve()} {stamp.st_size} {stamp.st_mtime_ns}\n"
    if mark.exists() and mark.read_text() == content:
        return False
    # Within the node's namespace only because nothing of the cluster should run outside.
    done = net.run(node.name, "ctr", "--address", containerd_socket(config, node), "--namespace",
                   "k8s.io", "images", "import", archive, check=False)
    if done.returncode != 0:
        raise ClusterError(f"{archive} could not be loaded into node {node.name}: "
                           f"{done.stderr.strip() or done.stdout.strip()}")
    mark.parent.mkdir(exist_ok=True)
    mark.write_text(content)
    return True


def wait_ready(kubernetes, count, seconds=120):
    from cluster_api import condition

    def check():
        items = kubernetes.get("/api/v1/nodes")["items"]
        ready = [item["metadata"]["name"] for item in items if condition(item, "Ready") == "True"]
        missing = [node.name for node in settings.nodes(count) if node.name not in ready]
        return f"{', '.join(missing)} not ready" if missing else ""
    kubernetes.wait("the nodes", seconds, check)


def volumes(config, count):
    """A storage class and volumes on each node, folders of it, for stateful sets."""
    objects = [{
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": STORAGE_CLASS,
                     "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer"}]
    for node in settings.nodes(count):
        for number in range(1, VOLUMES_PER_NODE + 1):
            folder = config.node_folder(node) / "volumes" / str(number)
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o777)
            objects.append({
                "apiVersion": "v1", "kind": "PersistentVolume",
                "metadata": {"name": f"{node.name}-{number}"},
                "spec": {
                    "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"],
                    "storageClassName": STORAGE_CLASS, "volumeMode": "Filesystem",
                    "persistentVolumeReclaimPolicy": "Retain", "local": {"path": str(folder)},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                        {"key": "kubernetes.io/hostname", "operator": "In",
                         "values": [node.name]}]}]}}}})
    return objects

# SPDX-License-Identifier: Apache-2.0
"""OpenFaaS beside Knative, on demand: the gateway, the provider for Kubernetes (faas-netes) and the
watchdog, built from the sources of the last versions under the MIT licence.

The sources are archives in the folder that LAMBDADNN_OPENFAAS_SOURCES names; without them the same
commits are fetched with git. Programs are kept in the cache, by the archive or commit that they
were built of.

Where it is "modules", all comes from the Go module proxy: a gateway of three months later, and in place
of faas-netes, which is no module there, tests/servers/openfaas-provider: OpenFaaS' own proxy for
providers, with a deployment of functions that is the tests' own.
"""
import base64
import contextlib
import dataclasses
import fcntl
import hashlib
import os
import pathlib
import subprocess
import tempfile

import images
import settings
from cluster_api import condition
from settings import ROOT, ClusterError, Node, log

NAMESPACE = "openfaas"
FUNCTIONS = "openfaas-fn"
GATEWAY_PORT = 8080
PROVIDER_PORT = 8081
COMPANION_PORT = 8083  # of tests/servers/openfaas-companion
NODE_PORT = 31112
ACCOUNT = "openfaas-controller"  # of gateway and provider
DEPLOYMENTS = ("faas-netes", "companion", "gateway")
USER, PASSWORD = "admin", "test-gateway-password"
READY_SECONDS = 120
# Of gateway and provider alike; far above what a request of the operator takes.
TIMEOUT = "20s"
SOURCES = "LAMBDADNN_OPENFAAS_SOURCES"
MODULES = "modules"
# In tests/servers.
COMPANION, MODULE_GATEWAY, MODULE_PROVIDER = "openfaas-companion", "openfaas-gateway", "openfaas-provider"


@dataclasses.dataclass(frozen=True)
class Source:
    program: str
    repository: str
    commit: str  # or a tag
    archive: str
    folder: str  # of the program's main package, below the repository's


PARTS = {each.program: each for each in (
    Source("gateway", "faas", "0.25.4", "faas-0.25.4.tar.xz", "gateway"),
    Source("faas-netes", "faas-netes", "8bdaca9e771eb1f4d05a5e0f2c65483eb84e2e0b", "faas-netes-8bdaca9.tar.xz", "."),
    Source("fwatchdog", "of-watchdog", "0.9.15", "of-watchdog-0.9.15.tar.xz", "."),
)}
# Of the provider's source: what it needs to find in a cluster.
MANIFESTS = ("artifacts/crds/openfaas.com_profiles.yaml", "yaml/controller-rbac.yml")


def _of_modules():
    return os.environ.get(SOURCES) == MODULES


def _archive(source):
    folder = pathlib.Path(os.environ.get(SOURCES) or ROOT.parent / "shared/openfaas")
    file = folder / source.archive
    return file if file.is_file() else None


def _run(words, what, **how):
    done = subprocess.run(words, capture_output=True, text=True, **how)
    if done.returncode != 0:
        raise ClusterError(f"{what} failed: {done.stderr.strip()[-2000:]}; the folder of the archives is "
                           f"that which {SOURCES} names")
    return done.stdout.strip()


def _unpack(source, folder):
    """The repository's folder."""
    archive = _archive(source)
    if archive:
        _run(["tar", "-xJf", archive, "-C", folder], f"unpacking {archive}")
        return folder / source.repository
    target = folder / source.repository
    git = ["git", "-C", target]
    target.mkdir()
    _run([*git, "init", "--quiet"], "git init")
    _run([*git, "fetch", "--quiet", "--depth", "1", f"https://github.com/openfaas/{source.repository}",
          source.commit], f"fetching {source.repository} {source.commit}")
    _run([*git, "checkout", "--quiet", "FETCH_HEAD"], "git checkout")
    return target


def _go():
    return _run(["bash", "-c", f'source <(sed -n "/^go_program()/,/^}}/p" {ROOT}/scripts/test_servers.sh); '
                 'cache=${XDG_CACHE_HOME:-$HOME/.cache}/lambdadnn; go_program'], "looking for Go")


def _folder(config, source):
    """Where what is built of this source is kept."""
    archive = _archive(source)
    content = archive.read_bytes() if archive else source.commit.encode()
    return config.cache / f"openfaas-{hashlib.sha256(content).hexdigest()[:16]}"


@contextlib.contextmanager
def _one_at_a_time(config):
    config.cache.mkdir(parents=True, exist_ok=True)
    with open(config.cache / "openfaas.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build(config):
    """What is missing of the programs; a minute or two, once."""
    servers = [COMPANION, MODULE_GATEWAY, MODULE_PROVIDER] if _of_modules() else [COMPANION]
    _run([ROOT / "scripts/test_servers.sh", "build", *servers], f"building {', '.join(servers)}")
    if _of_modules():
        return
    with _one_at_a_time(config):
        for source in PARTS.values():
            kept = _folder(config, source)
            if (kept / source.program).exists():
                continue
            log(f"building OpenFaaS: {source.program} (once) ...")
            with tempfile.TemporaryDirectory(dir=config.cache) as work:
                work = pathlib.Path(work)
                tree = _unpack(source, work)
                fresh = work / "kept"
                fresh.mkdir()
                _run(["nice", "-n", "19", _go(), "build", "-p", "2", "-trimpath", "-ldflags", "-s -w",
                      "-o", fresh / source.program, "."], f"building {source.program}", cwd=tree / source.folder,
                     env={**os.environ, "GOFLAGS": "-mod=vendor -buildvcs=false", "CGO_ENABLED": "0",
                          "GOMAXPROCS": "2"})
                for name in MANIFESTS if source.program == "faas-netes" else ():
                    (fresh / pathlib.Path(name).name).write_bytes((tree / name).read_bytes())
                kept.mkdir(exist_ok=True)
                for file in fresh.iterdir():
                    os.replace(file, kept / file.name)


def program(config, name):
    return _folder(config, PARTS[name]) / name


def archives(config):
    """Of the images of what runs in pods of its own."""
    made = images.Images(config)
    if _of_modules():
        own = {"gateway": settings.program(MODULE_GATEWAY), "faas-netes": settings.program(MODULE_PROVIDER)}
    else:
        own = {name: program(config, name) for name in ("gateway", "faas-netes")}
    own["companion"] = settings.program(COMPANION)
    return [made.of_program(f"openfaas-{name}", file) for name, file in own.items()]


def _apply_rights(config, kubernetes):
    """Of the provider, with the kinds that it knows."""
    if _of_modules():
        kubernetes.apply_objects(own_rights())
        return
    folder = _folder(config, PARTS["faas-netes"])
    for name in MANIFESTS:
        kubernetes.apply((folder / pathlib.Path(name).name).read_text())


def own_rights():
    group, verbs = "rbac.authorization.k8s.io", ["get", "list", "create", "update", "delete"]
    account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
    there = {"name": ACCOUNT, "namespace": FUNCTIONS}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}},
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": there, "rules": [
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": verbs},
            {"apiGroups": [""], "resources": ["services", "secrets"], "verbs": verbs}]},
        {"apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": there, "subjects": [account],
         "roleRef": {"apiGroup": group, "kind": "Role", "name": ACCOUNT}}]


def _deployment(name, port, probe, environment):
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {
                "serviceAccountName": ACCOUNT,
                "terminationGracePeriodSeconds": 1,
                "volumes": [{"name": "auth", "secret": {"secretName": "basic-auth"}}],
                "containers": [{
                    "name": name, "image": f"dev.local/openfaas-{name}:1", "imagePullPolicy": "IfNotPresent",
                    "ports": [{"containerPort": port}],
                    "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
                    "readinessProbe": {"httpGet": {"path": "/healthz", "port": probe}, "periodSeconds": 1},
                    "volumeMounts": [{"name": "auth", "mountPath": "/var/secrets", "readOnly": True}],
                    "env": [{"name": key, "value": value} for key, value in sorted(environment.items())]}]}}}}


def _name(service):
    return f"{service}.{NAMESPACE}.svc.cluster.local"


def _service(name, port, **more):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"selector": {"app": name}, "ports": [{"port": port, "targetPort": port, **more}],
                     "type": "NodePort" if more else "ClusterIP"}}


def objects(timeout=TIMEOUT):
    """Gateway and provider as two Deployments, so that each can fail by itself. What stands for the
    authentication plugin and for Prometheus is a program of the tests' own."""
    usual = {"read_timeout": timeout, "write_timeout": timeout, "secret_mount_path": "/var/secrets",
             "function_namespace": FUNCTIONS}
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "basic-auth", "namespace": NAMESPACE},
         "stringData": {"basic-auth-user": USER, "basic-auth-password": PASSWORD}},
        _deployment("faas-netes", PROVIDER_PORT, PROVIDER_PORT, {
            **usual, "port": str(PROVIDER_PORT), "basic_auth": "true", "profiles_namespace": NAMESPACE,
            "image_pull_policy": "IfNotPresent", "http_probe": "true",
            "readiness_probe_initial_delay_seconds": "0", "readiness_probe_period_seconds": "1",
            "readiness_probe_timeout_seconds": "5", "liveness_probe_initial_delay_seconds": "5",
            "liveness_probe_period_seconds": "10", "liveness_probe_timeout_seconds": "5"}),
        _service("faas-netes", PROVIDER_PORT),
        _deployment("companion", COMPANION_PORT, COMPANION_PORT, usual),
        _service("companion", COMPANION_PORT),
        _deployment("gateway", GATEWAY_PORT, 8082, {
            **usual, "basic_auth": "true", "auth_proxy_url": f"http://{_name('companion')}:{COMPANION_PORT}/validate",
            "faas_prometheus_host": _name("companion"), "faas_prometheus_port": str(COMPANION_PORT),
            "upstream_timeout": timeout, "scale_from_zero": "true",
            "functions_provider_url": f"http://{_name('faas-netes')}:{PROVIDER_PORT}/"}),
        _service("gateway", GATEWAY_PORT, nodePort=NODE_PORT),
    ]


def apply(config, kubernetes):
    """Installs OpenFaaS, or puts it back to how it was; the images are on the nodes."""
    kubernetes.apply_objects([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                              for name in (NAMESPACE, FUNCTIONS)])
    _apply_rights(config, kubernetes)
    kubernetes.apply_objects(objects())
    wait_ready(kubernetes)


def wait_ready(kubernetes):
    def check():
        for name in DEPLOYMENTS:
            found = kubernetes.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}")
            current = found["status"].get("observedGeneration") == found["metadata"]["generation"]
            settled = found["status"].get("replicas") == found["status"].get("updatedReplicas")
            if not current or not settled or condition(found, "Available") != "True":
                return f"{name} is not available"
        return ""
    kubernetes.wait("OpenFaaS", READY_SECONDS, check)


def address():
    """Of the gateway, for clients; it stays when the gateway's pod goes."""
    return f"http://{Node(1).address}:{NODE_PORT}"


def authorization():
    return "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


def restart(kubernetes, name):
    """Deletes the pod of the gateway or of the provider at once, as when its node fails."""
    kubernetes.kubectl("delete", "pod", "--namespace", NAMESPACE, "--selector", f"app={name}",
                       "--grace-period=0", "--force")


def restore(kubernetes):
    """As apply leaves it, whatever a test has made of it."""
    kubernetes.apply_objects(objects())
    wait_ready(kubernetes)

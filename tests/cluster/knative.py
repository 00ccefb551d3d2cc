# SPDX-License-Identifier: Apache-2.0
"""Knative Serving: manifests from the source of the pinned module, images from its programs, and the
cluster's stand-in ingress (ingress.py), without which no Knative service becomes ready."""
import pathlib
import re
import subprocess
import sys

import dns
import settings
from cluster_api import condition
from processes import Part, http_probe
from settings import CONTROL_NODE, ROOT, ClusterError, Node

NAMESPACE = "knative-serving"
INGRESS_NAMESPACE = "cluster-ingress"
INGRESS_SERVICE = "ingress"
INGRESS_CLASS = "cluster.ingress.networking.knative.dev"
INGRESS_PORT = 8081
DEPLOYMENTS = ("controller", "webhook", "autoscaler", "activator")
READY_SECONDS = 240
# In the source these are links to files of other modules, and a module carries no links.
_LINKED = {"knative.dev/networking": ("certificate", "domain-claim", "ingress",
                                      "serverlessservice"),
           "knative.dev/caching": ("image",)}


def _source(module):
    found = subprocess.run([ROOT / "scripts/test_servers.sh", "source", "knative", module],
                           capture_output=True, text=True)
    if found.returncode != 0:
        raise ClusterError(f"no source of {module}: {found.stderr.strip()}")
    return pathlib.Path(found.stdout.strip())


def _with_ingress_class(text):
    changed, count = re.subn(r"(?m)^data:$", f"data:\n  ingress-class: {INGRESS_CLASS}", text)
    if count != 1:
        raise ClusterError("Knative's config-network.yaml is not as expected: it has "
                           f"{count} lines `data:` instead of one")
    return changed


def _collect():
    """All documents in the order in which they are to be applied."""
    core = _source("knative.dev/serving") / "config/core"
    networking = _source("knative.dev/networking") / "config"
    files = []
    for pattern in ("100-*.yaml", "200-*.yaml", "200-*/*.yaml", "300-resources/*.yaml",
                    "300-*.yaml"):
        files += sorted(core.glob(pattern))
    for module, names in _LINKED.items():
        folder = networking if module.endswith("networking") else _source(module) / "config"
        files += [folder / f"{name}.yaml" for name in names]
    files += sorted((core / "configmaps").glob("*.yaml"))
    texts = [file.read_text() for file in files]
    texts.append(_with_ingress_class((networking / "config-network.yaml").read_text()))
    last = [file for file in sorted((core / "deployments").glob("*.yaml"))
            if not file.name.endswith("-hpa.yaml")]
    last += sorted((core / "webhooks").glob("*.yaml")) + sorted(core.glob("999-*.yaml"))
    texts += [file.read_text() for file in last]
    whole = re.sub(r"ko://knative\.dev/serving/cmd/([a-z-]+)", r"dev.local/knative-\1:1",
                   "\n---\n".join(texts))
    return [document for document in re.split(r"(?m)^---\s*$", whole)
            if re.search(r"(?m)^kind:", document)]


def manifests(config):
    """(definitions, everything else) as YAML; kept in the cache beside the programs."""
    folder = pathlib.Path(settings.program("knative-controller")).parent.parent / "manifests"
    kept = (folder / "definitions.yaml", folder / "objects.yaml")
    # Written anew when the way of collecting them has changed.
    stamp = folder / "made-by"
    source = pathlib.Path(__file__).read_text()
    if not stamp.exists() or stamp.read_text() != source:
        folder.mkdir(exist_ok=True)
        documents = _collect()
        is_definition = [bool(re.search(r"(?m)^kind: CustomResourceDefinition\s*$", document))
                         for document in documents]
        for file, wanted in zip(kept, (True, False), strict=True):
            file.write_text("\n---\n".join(document for document, definition
                                           in zip(documents, is_definition, strict=True)
                                           if definition == wanted))
        stamp.write_text(source)
    return tuple(file.read_text() for file in kept)


def _definitions_missing(kubernetes):
    items = kubernetes.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
    waiting = [item["metadata"]["name"] for item in items
               if condition(item, "Established") != "True"]
    return f"{', '.join(waiting)} not established" if waiting or not items else ""


def apply(config, kubernetes):
    """Applies Knative unless this cluster has it; safe to repeat after an interruption."""
    mark = config.run / "knative-applied"
    if mark.exists():
        return False
    definitions, objects = manifests(config)
    kubernetes.apply(definitions)
    kubernetes.wait("Knative's custom resource definitions", 60,
                    lambda: _definitions_missing(kubernetes))
    kubernetes.apply(objects)
    kubernetes.apply_objects(ingress_objects())
    mark.touch()
    return True


def ingress_objects():
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": INGRESS_NAMESPACE}},
        *dns.service(INGRESS_SERVICE, INGRESS_NAMESPACE,
                     [{"name": "http", "port": 80, "target": INGRESS_PORT}]),
        *dns.role("cluster-ingress", [
            {"apiGroups": ["networking.internal.knative.dev"], "resources": ["ingresses"],
             "verbs": ["get", "list"]},
            {"apiGroups": ["networking.internal.knative.dev"], "resources": ["ingresses/status"],
             "verbs": ["patch"]},
            {"apiGroups": [""], "resources": ["services"], "verbs": ["list"]}]),
    ]


def ingress(config):
    address = f"{Node(1).address}:{INGRESS_PORT}"
    return Part("ingress", CONTROL_NODE,
                [sys.executable, ROOT / "tests/cluster/ingress.py", config.kubeconfig("ingress"),
                 address, INGRESS_CLASS, f"{INGRESS_SERVICE}.{INGRESS_NAMESPACE}.svc.cluster.local"],
                http_probe(address, "/healthz"), "own")


def deployments(kubernetes):
    """{name: available?} of Knative's deployments; empty when it is not installed."""
    found = kubernetes.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments")
    return {item["metadata"]["name"]: condition(item, "Available") == "True"
            and item["status"].get("observedGeneration") == item["metadata"]["generation"]
            for item in found["items"]}


def wait_available(kubernetes):
    def check():
        state = deployments(kubernetes)
        missing = [name for name in DEPLOYMENTS if not state.get(name)]
        return f"{', '.join(missing)} not available" if missing else ""
    kubernetes.wait("Knative", READY_SECONDS, check)

# SPDX-License-Identifier: Apache-2.0
"""The chart as helm renders it, for its tests."""
import functools
import json
import pathlib
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "charts/lambdadnn-operator"
RELEASE = "lambdadnn-operator"
NAMESPACE = "lambdadnn-system"
NEWEST = "1.36.3"
# The names that helm gives objects of this release.
NAME = "lambdadnn-operator"

# Everything that can be switched on at once.
EVERYTHING = {
    "networkPolicy": {"enabled": True, "extraEgress": [{"ports": [{"port": 9443}]}]},
    "metrics": {"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
                "prometheusRule": {"enabled": True, "alertLabels": {"team": "ml"}}},
    "grafanaDashboard": {"enabled": True},
    "objectStore": {"caSecret": "store-ca", "readable": ["s3://data/public"],
                    "allowedEndpoints": [
                        {"host": "minio.team-a.svc", "port": 9000, "peers": [{"podSelector": {}}]},
                        {"host": "*.example.com"}, {"host": "fd00::/8"}]},
    "jobs": {"allowed": {"images": ["registry.example/team/*", "a'b\\"], "serviceAccounts": [],
                         "priorityClasses": ["low"], "tolerationKeys": ["gpu"],
                         "nodeLabels": ["kubernetes.io/arch"], "affinityNamespaces": ["shared"],
                         "secrets": ["job-*"],
                         "runtimeClasses": ["gvisor"], "schedulers": ["volcano"],
                         "volumeTypes": ["emptyDir"], "resources": ["nvidia.com/*"]}},
    "minio": {"enabled": True, "image": {"repository": "example.org/minio", "tag": "1"}},
    "tracing": {"endpoint": "http://collector.monitoring:4318", "headersSecret": "collector",
                "resourceAttributes": {"deployment.environment.name": "a, b"}},
    "watchNamespaces": ["team-a", "team-b"],
    "imagePullSecrets": ["registry"],
    "functions": {"imagePullSecrets": ["registry"]},
    "global": {"imagePullSecrets": ["mirror"]},
    "commonLabels": {"cost-centre": "42"},
    "priorityClassName": "system-cluster-critical",
    "topologySpreadConstraints": [{
        "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "lambdadnn-operator"}}}],
    "extraEnv": [{"name": "NO_PROXY", "value": "*"}],
    "extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap",
                      "metadata": {"name": "{{ .Release.Name }}-own"}}],
}


@functools.cache
def program(name):
    found = subprocess.run([ROOT / "scripts/test_servers.sh", "path", name], capture_output=True,
                           text=True)
    if found.returncode != 0:
        sys.exit(f"error: {name} is not built; run scripts/test_servers.sh build {name}")
    return found.stdout.strip()


def helm(*words, values=None, check=True):
    """A helm command on the chart; `values` as a values file."""
    command = [program("helm"), *map(str, words)]
    if values is not None:
        command += ["--values", "-"]
    done = subprocess.run(command, input=None if values is None else yaml.safe_dump(values),
                          capture_output=True, text=True)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.stderr}")
    return done


def render(values=None, kube=NEWEST, check=True):
    return helm("template", RELEASE, CHART, "--namespace", NAMESPACE, "--kube-version", kube,
                values=values or {}, check=check)


def documents(text):
    """Of YAML. Read in C, as the schema of the CRD is long."""
    return yaml.load_all(text, Loader=yaml.CSafeLoader)


@functools.cache
def rendered(values):
    """What helm makes of these values, as JSON, once."""
    return render(json.loads(values)).stdout


def objects(values=None, hooks=False):
    """{(kind, namespace, name): object} of a release with these values."""
    made = {}
    for each in documents(rendered(json.dumps(values, sort_keys=True))):
        if not each:
            continue
        hook = "helm.sh/hook" in each["metadata"].get("annotations", {})
        if hook == hooks:
            key = (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"])
            assert key not in made, f"{key} is rendered twice"
            made[key] = each
    return made


def rights(rules):
    """{(resource as `kubectl auth can-i --list` names it, name of an object or ""): verbs} of PolicyRules."""
    found = {}
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                kind, slash, part = resource.partition("/")
                shown = kind + (f".{group}" if group else "") + slash + part
                for name in rule.get("resourceNames") or [""]:
                    found.setdefault((shown, name), set()).update(rule["verbs"])
    return found


def documented_rights():
    """{set: rights} of the table in docs/security.md."""
    text = (ROOT / "docs/security.md").read_text()
    found = {}
    for row in text.partition("## Rights of the operator")[2].partition("\n## ")[0].splitlines():
        if not row.startswith("| `"):
            continue
        resource, verbs, which, _ = (cell.strip() for cell in row.strip("|").split("|"))
        shown, _, names = resource.partition(" ")
        for name in names.split(", "):
            key = (shown.strip("`"), name)
            rows = found.setdefault(which, {})
            assert key not in rows, f"docs/security.md has {key} twice"
            rows[key] = set(verbs.split(", "))
    return found


def pods(values=None):
    """[(kind, spec of a pod)] of everything that runs, hooks included."""
    made = [*objects(values).values(), *objects(values, hooks=True).values()]
    return [(each["kind"], each["spec"] if each["kind"] == "Pod"
             else each["spec"]["template"]["spec"]) for each in made
            if each["kind"] in ("Pod", "Deployment", "StatefulSet", "Job")]


def images_of(of_pods):
    """Every image that these pods run or tell functions to run."""
    found = set()
    for pod in of_pods:
        for each in pod["containers"]:
            found.add(each["image"])
            found |= {word.split("=", 1)[1] for word in each["args"] if "-image=" in word}
    return sorted(found)


def refusal(values):
    """What helm says to values that it refuses."""
    done = render(values, check=False)
    assert done.returncode != 0, f"these values are taken: {values}"
    return done.stderr

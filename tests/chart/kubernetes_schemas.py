# SPDX-License-Identifier: Apache-2.0
"""JSON schemas of Kubernetes' kinds for kubeconform, made from the OpenAPI document in the source of
the test servers' Kubernetes, and those of CRDs: strict, without the network."""
import copy
import json
import pathlib
import subprocess

from chart_support import ROOT, documents

GROUP_KIND = "x-kubernetes-group-version-kind"


def source(*words):
    """The folder that `scripts/test_servers.sh source` prints."""
    done = subprocess.run([ROOT / "scripts/test_servers.sh", "source", *words],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return pathlib.Path(done.stdout.strip())


def strict(schema, nullable=False):
    """Unknown fields are refused; fields may be null, as the API server takes them."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {}
    for name, value in schema.items():
        if name in ("properties", "definitions"):
            made[name] = {field: strict(each) for field, each in value.items()}
        elif name not in ("description", "default", "example", GROUP_KIND):
            made[name] = strict(value)
    if "properties" in made and "additionalProperties" not in made and \
            not made.get("x-kubernetes-preserve-unknown-fields"):
        made["additionalProperties"] = False
    if made.get("x-kubernetes-int-or-string") or made.get("format") == "int-or-string":
        return {"type": ["integer", "string", "null"]}
    # A number or a text as users write them ("quantities").
    if isinstance(made.get("type"), str) and made["type"] != "object":
        made["type"] = [made["type"], "null"]
    made.pop("format", None)
    return made


def references(schema, found):
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            found.add(schema["$ref"].rsplit("/", 1)[1])
        for value in schema.values():
            references(value, found)
    elif isinstance(schema, list):
        for value in schema:
            references(value, found)
    return found


def write_kinds(swagger, kinds, folder):
    """KIND-GROUP-VERSION.json for each (apiVersion, kind); what such an object may hold."""
    definitions = json.loads(pathlib.Path(swagger).read_text())["definitions"]
    quantity = definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"]
    quantity.clear()
    quantity["type"] = ["string", "number", "null"]
    by_kind = {}
    for name, definition in definitions.items():
        for each in definition.get(GROUP_KIND, []):
            key = ("/".join(filter(None, (each["group"], each["version"]))), each["kind"])
            by_kind.setdefault(key, name)
    for api_version, kind in kinds:
        name = by_kind[(api_version, kind)]
        needed, new = set(), {name}
        while new:
            needed |= new
            new = set().union(*(references(definitions[each], set()) for each in new)) - needed
        schema = strict(copy.deepcopy(definitions[name]))
        schema["definitions"] = {each: strict(copy.deepcopy(definitions[each])) for each in needed}
        schema["properties"]["apiVersion"] = {"enum": [api_version]}
        schema["properties"]["kind"] = {"enum": [kind]}
        write(folder, api_version, kind, schema)


def write_crds(text, folder):
    """The same of the CRDs in a YAML text, for each version that they serve."""
    for crd in documents(text):
        if not crd or crd.get("kind") != "CustomResourceDefinition":
            continue
        for version in crd["spec"]["versions"]:
            schema = strict(version["schema"]["openAPIV3Schema"])
            # What the API server knows by itself.
            for name in ("apiVersion", "kind"):
                schema.setdefault("properties", {}).setdefault(name, {"type": "string"})
            schema["properties"]["metadata"] = {"type": "object"}
            write(folder, f"{crd['spec']['group']}/{version['name']}",
                  crd["spec"]["names"]["kind"], schema)


def write(folder, api_version, kind, schema):
    group, _, version = api_version.rpartition("/")
    name = "-".join(filter(None, (kind.lower(), group.split(".")[0], version)))
    (pathlib.Path(folder) / f"{name}.json").write_text(json.dumps(schema))

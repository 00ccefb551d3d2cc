# SPDX-License-Identifier: Apache-2.0
"""What the chart renders: with which values, accepted by helm's and others' checks. Nothing is
installed (install_test.py does).

--oldest: its schemas, too. Needs scripts/test_servers.sh build helm
kubeconform kube-score promtool.
"""
import json
import pathlib
import subprocess
import tempfile
import unittest

import yaml

import kubernetes_schemas
from chart_support import (
    CHART,
    EVERYTHING,
    NAME,
    NAMESPACE,
    NEWEST,
    ROOT,
    documents,
    helm,
    images_of,
    objects,
    pods,
    program,
    refusal,
    render,
)
from options import OPTIONS

VERSIONS = {"kubernetes": NEWEST}
OLDEST = {"kube-apiserver-oldest": "1.31.14"}  # as well, with --oldest

# What kube-score finds wrong, and why it is so.
EXCEPTIONS = {
    # A node that holds the image already must not need its registry, as after load-image.
    "container-image-pull-policy",
    # A limit of CPU would slow the operator down just when it has the most to do; memory has one.
    "container-resources",
    # MinIO's Service has an address of its own, which outlives its pod; its pods need no DNS names.
    "statefulset-has-servicename",
}


def deployment(values=None):
    return objects(values)[("Deployment", NAMESPACE, NAME)]


def container(workload):
    return workload["spec"]["template"]["spec"]["containers"][0]


def arguments(values=None):
    return container(deployment(values))["args"]


class Values(unittest.TestCase):
    """Each switch does what it says."""

    def test_images_are_named_by_registry_tag_and_digest(self):
        digest = "sha256:" + "0" * 64
        image = container(deployment({"image": {"registry": "r.example", "tag": "7",
                                                "digest": digest}}))["image"]
        self.assertEqual(image, f"r.example/lambdadnn-operator:7@{digest}")

    def test_one_registry_for_all_images(self):
        values = {**EVERYTHING, "global": {"imageRegistry": "mirror.example/x"}}
        images = images_of(pod for _, pod in pods(values))
        self.assertEqual(len(images), 4)  # the operator's, MinIO's, and two in its flags
        for image in images:
            self.assertTrue(image.startswith("mirror.example/x/"), image)

    def test_two_replicas_need_an_election(self):
        self.assertIn("leaderElection.enabled",
                      refusal({"leaderElection": {"enabled": False}}))
        alone = deployment({"leaderElection": {"enabled": False}, "replicaCount": 1})
        self.assertNotIn("--leader-elect", container(alone)["args"])
        # Else two of them would act at once while one replaces the other.
        self.assertEqual(alone["spec"]["strategy"], {"type": "Recreate"})

    def test_an_upgrade_needs_no_room_beside_what_there_is(self):
        strategy = deployment({})["spec"]["strategy"]
        self.assertEqual({"maxSurge": 0, "maxUnavailable": 1}, strategy["rollingUpdate"])

    def test_what_runs_once_finds_room_where_jobs_fill_the_nodes(self):
        for values in ({}, {"resources": {"limits": {"memory": "2Gi"}}}):
            for made in objects(values, hooks=True).values():
                pod = made["spec"] if made["kind"] == "Pod" else (
                    made["spec"]["template"]["spec"] if made["kind"] == "Job" else None)
                for each in pod["containers"] if pod else ():
                    requests = each["resources"]["requests"]
                    self.assertEqual(("1m", "32Mi"), (requests["cpu"], requests["memory"]))
                    self.assertIn("memory", each["resources"]["limits"])

    def test_namespaces_get_roles_and_the_cluster_none_for_jobs(self):
        made = objects({"watchNamespaces": ["a", "b"], "rbac": {"clusterReads": False}})
        self.assertIn("--namespaces=a,b", container(made[("Deployment", NAMESPACE, NAME)])["args"])
        for space in ("a", "b"):
            self.assertIn(("Role", space, NAME), made)
            self.assertIn(("RoleBinding", space, NAME), made)
        self.assertFalse([key for key in made if key[0] == "ClusterRoleBinding"])

    def test_namespaces_have_the_weights_of_the_values(self):
        args = container(deployment({"controller": {"namespaceWeights": {"b": 0.5, "a": 2}}}))["args"]
        self.assertIn("--namespace-weights=a=2,b=0.5", args)
        self.assertFalse([word for word in container(deployment({}))["args"] if "weights" in word])
        self.assertIn("namespaceWeights", refusal({"controller": {"namespaceWeights": {"a": 0}}}))

    def test_roles_are_the_rules_of_the_one_file(self):
        sets = yaml.safe_load((CHART / "files/rbac-rules.yaml").read_text())["sets"]
        made = objects()
        self.assertEqual(made[("ClusterRole", "", NAME)]["rules"],
                         sets["jobs"] + sets["knative"] + sets["isolation"] + sets["limits"])
        self.assertEqual(made[("ClusterRole", "", f"{NAME}-cluster-reads")]["rules"],
                         sets["optional"])
        self.assertEqual(made[("Role", NAMESPACE, f"{NAME}-lease")]["rules"], sets["lease"])

    def test_jobs_are_bounded_as_the_values_say(self):
        block = [{"to": [{"ipBlock": {"cidr": "192.0.2.7/32"}}], "ports": [{"port": 9000}]}]
        made = objects({"networkPolicy": {"jobs": {"store": block}}})
        name = ("ConfigMap", NAMESPACE, f"{NAME}-network-policies")
        said = yaml.safe_load(made[name]["data"]["network-policies.yaml"])
        self.assertEqual(said["store"], block)
        self.assertNotIn("knative", said)  # the operator's own default
        operator = made[("Deployment", NAMESPACE, NAME)]
        labels = operator["spec"]["template"]["metadata"]["labels"]
        [peer] = said["operators"]
        self.assertEqual({"kubernetes.io/metadata.name": NAMESPACE},
                         peer["namespaceSelector"]["matchLabels"])
        self.assertLessEqual(peer["podSelector"]["matchLabels"].items(), labels.items())
        [flag] = [word for word in container(operator)["args"] if "--network-policies=" in word]
        mounts = [each["mountPath"] for each in container(operator)["volumeMounts"]]
        self.assertIn(str(pathlib.PurePath(flag.split("=")[1]).parent), mounts)

    def test_jobs_are_not_bounded_where_that_is_switched_off(self):
        made = objects({"networkPolicy": {"jobs": {"enabled": False}}})
        self.assertNotIn(("ConfigMap", NAMESPACE, f"{NAME}-network-policies"), made)
        operator = container(made[("Deployment", NAMESPACE, NAME)])
        self.assertFalse([word for word in operator["args"] if "--network-policies" in word])
        self.assertFalse([each for each in operator["volumeMounts"]
                          if "network-policies" in each["name"]])
        self.assertIn("podSelectr", refusal(
            {"networkPolicy": {"jobs": {"knative": [{"podSelectr": {}}]}}}))

    def stores(self, values):
        """What the operator is told of stores, and the Deployment that tells it."""
        made = objects(values)
        config = made[("ConfigMap", NAMESPACE, f"{NAME}-store-endpoints")]
        return (yaml.safe_load(config["data"]["store-endpoints.yaml"]),
                made[("Deployment", NAMESPACE, NAME)])

    def test_jobs_may_name_the_stores_of_the_values_alone(self):
        said, operator = self.stores({})
        self.assertEqual({"allowedEndpoints": []}, said)  # the operator's own alone
        [flag] = [word for word in container(operator)["args"] if "--store-endpoints=" in word]
        mounts = [each["mountPath"] for each in container(operator)["volumeMounts"]]
        self.assertIn(str(pathlib.PurePath(flag.split("=")[1]).parent), mounts)
        entries = [{"host": "minio.team.svc", "port": 9000,
                    "peers": [{"namespaceSelector": {}, "podSelector": {}}]},
                   {"host": "*.example.com"}, {"host": "*"}, {"host": "10.0.0.7"},
                   {"host": "10.0.0.0/8"}, {"host": "fd00::/8"}, {"host": "fd00::7"}]
        peers = [{"ipBlock": {"cidr": "192.0.2.7/32"}}]
        said, changed = self.stores({"objectStore": {"allowedEndpoints": entries, "peers": peers}})
        self.assertEqual({"allowedEndpoints": entries, "peers": peers}, said)
        self.assertNotEqual(*(each["spec"]["template"]["metadata"]["annotations"]
                              for each in (operator, changed)))

    def test_packets_to_minio_go_to_its_pods(self):
        minio = {"enabled": True, "image": {"repository": "example.org/minio"}}
        [peer] = self.stores({"minio": minio})[0]["peers"]
        pods_of = objects({"minio": minio})[("StatefulSet", NAMESPACE, f"{NAME}-minio")]
        self.assertEqual({"kubernetes.io/metadata.name": NAMESPACE},
                         peer["namespaceSelector"]["matchLabels"])
        self.assertEqual(pods_of["spec"]["selector"]["matchLabels"],
                         peer["podSelector"]["matchLabels"])
        elsewhere = {"minio": minio, "objectStore": {"endpoint": "https://s3.example"}}
        self.assertNotIn("peers", self.stores(elsewhere)[0])

    def test_lists_of_stores_that_make_no_sense_are_refused(self):
        for entry, said in (({"port": 9000}, "host"), ({"host": ""}, "host"),
                            ({"host": "http://minio:9000"}, "host"),
                            ({"host": "minio:9000"}, "host"), ({"host": "a.*.b"}, "host"),
                            ({"host": "a", "port": 0}, "port"),
                            ({"host": "a", "port": "http"}, "port"),
                            ({"host": "a", "peers": [{}]}, "peers"),
                            ({"host": "a", "peers": [{"pods": {}}]}, "pods"),
                            ({"host": "a", "peer": []}, "peer")):
            self.assertIn(said, refusal({"objectStore": {"allowedEndpoints": [entry]}}))
        self.assertIn("peers", refusal({"objectStore": {"peers": [{}]}}))

    def test_pods_of_jobs_are_bounded_as_the_values_say(self):
        def told(values):
            made = objects(values)
            config = made[("ConfigMap", NAMESPACE, f"{NAME}-pod-rules")]
            return (yaml.safe_load(config["data"]["pod-rules.yaml"]), made)
        said, made = told({})
        none = dict.fromkeys(
            ("priorityClasses", "tolerationKeys", "affinityNamespaces", "runtimeClasses", "schedulers"), [])
        types = ["configMap", "downwardAPI", "emptyDir", "persistentVolumeClaim", "projected", "secret"]
        self.assertEqual(none | {"volumeTypes": types}, said)
        operator = made[("Deployment", NAMESPACE, NAME)]
        [flag] = [word for word in container(operator)["args"] if "--pod-rules=" in word]
        mounts = [each["mountPath"] for each in container(operator)["volumeMounts"]]
        self.assertIn(str(pathlib.PurePath(flag.split("=")[1]).parent), mounts)
        allowed = {"images": ["r.example/*", "a:1"], "serviceAccounts": [], "priorityClasses": None,
                   "tolerationKeys": ["*"], "nodeLabels": ["a.example/b"],
                   "affinityNamespaces": ["shared"], "secrets": ["s-*"],
                   "runtimeClasses": ["gvisor"], "schedulers": None, "volumeTypes": ["csi"],
                   "resources": ["nvidia.com/*"]}
        said, changed = told({"jobs": {"allowed": allowed}})
        self.assertEqual({name: names for name, names in allowed.items() if names is not None}, said)
        self.assertNotEqual(*(each["spec"]["template"]["metadata"]["annotations"] for each in (
            operator, changed[("Deployment", NAMESPACE, NAME)])))

    def test_the_api_server_refuses_jobs_unless_that_is_switched_off(self):
        policy = ("ValidatingAdmissionPolicy", "", f"{NAME}-jobs")
        binding = ("ValidatingAdmissionPolicyBinding", "", f"{NAME}-jobs")
        made = objects({})
        self.assertEqual(8, len(made[policy]["spec"]["validations"]))
        self.assertEqual({"policyName": f"{NAME}-jobs", "validationActions": ["Deny"]},
                         made[binding]["spec"])
        self.assertEqual(16, len(objects(EVERYTHING)[policy]["spec"]["validations"]))
        everything = dict.fromkeys(
            ("priorityClasses", "tolerationKeys", "affinityNamespaces", "runtimeClasses", "schedulers",
             "volumeTypes"))
        for values in ({"admissionPolicy": {"enabled": False}}, {"allowed": everything},
                       {"allowed": {name: ["*"] for name in everything}}):
            made = objects({"jobs": values})
            self.assertNotIn(policy, made)
            self.assertNotIn(binding, made)
        [term] = objects({"watchNamespaces": ["a", "b"]})[binding]["spec"]["matchResources"][
            "namespaceSelector"]["matchExpressions"]
        self.assertEqual({"key": "kubernetes.io/metadata.name", "operator": "In",
                          "values": ["a", "b"]}, term)

    def test_lists_of_names_that_make_no_sense_are_refused(self):
        for name, entry in (("images", "registry.example*"), ("images", "a*/b"), ("secrets", ""),
                            ("secrets", "a b"), ("secrets", "a\n"), ("secrets", "**"),
                            ("nodeLabels", 7), ("tolerationKeys", {"key": "gpu"})):
            self.assertIn(name, refusal({"jobs": {"allowed": {name: [entry]}}}), entry)
        self.assertIn("image", refusal({"jobs": {"allowed": {"image": []}}}))
        self.assertIn("images", refusal({"jobs": {"allowed": {"images": "*"}}}))

    def test_the_operator_is_bounded_unless_that_is_switched_off(self):
        name = ("NetworkPolicy", NAMESPACE, NAME)
        spec = objects({})[name]["spec"]
        self.assertEqual(["Ingress", "Egress"], spec["policyTypes"])
        labels = [spec["podSelector"]["matchLabels"]]
        for each in (objects({}), objects({}, hooks=True)):
            for made in each.values():
                if made["kind"] in ("Deployment", "Job"):
                    labels.append(made["spec"]["template"]["metadata"]["labels"])
                elif made["kind"] == "Pod":
                    labels.append(made["metadata"]["labels"])
        self.assertEqual(4, len(labels))
        [components] = spec["podSelector"]["matchExpressions"]
        for each in labels[1:]:
            self.assertLessEqual(labels[0].items(), each.items())
            self.assertIn(each[components["key"]], components["values"])
        self.assertEqual({8080, 8081}, {port["port"] for rule in spec["ingress"]
                                        for port in rule["ports"]})
        reached = {port["port"] for rule in spec["egress"] for port in rule["ports"]}
        self.assertLessEqual({53, 80, 443, 6443, 8012, 9000}, reached)
        [functions] = [rule for rule in spec["egress"] if rule.get("to") == [{"namespaceSelector": {}}]]
        # Both, whatever functions.tls says: jobs go on as they began.
        self.assertEqual([8012, 8443], [port["port"] for port in functions["ports"]])
        self.assertNotIn(name, objects({"networkPolicy": {"enabled": False}}))

    def test_the_operator_reaches_the_ports_of_all_stores(self):
        def ports(values):
            spec = objects({"networkPolicy": {"storePorts": []}, **values})[
                ("NetworkPolicy", NAMESPACE, NAME)]["spec"]
            return [port["port"] for port in spec["egress"][3]["ports"] or []]
        for endpoint, port in (("https://s3.example", 443), ("http://s3.example/", 80),
                               ("http://192.0.2.7:9001/", 9001), ("http://[fd00::7]:7", 7),
                               ("http://[fd00::7]", 80)):
            self.assertEqual([port], ports({"objectStore": {"endpoint": endpoint}}), endpoint)
        self.assertEqual([443, 7480], ports({"objectStore": {
            "endpoint": "https://s3.example",
            "allowedEndpoints": [{"host": "a", "port": 7480}, {"host": "b"},
                                 {"host": "c", "port": 443}]}}))

    def test_jobs_are_traced_where_a_collector_is_named(self):
        def variables(made):
            return {each["name"]: each.get("value", each.get("valueFrom")) for each in container(made)["env"]}

        def rule(made, ports):
            [found] = [each for each in made[("NetworkPolicy", NAMESPACE, NAME)]["spec"]["egress"]
                       if [port["port"] for port in each["ports"]] == ports]
            return found
        plain = objects({})
        said = variables(plain[("Deployment", NAMESPACE, NAME)])
        self.assertFalse([name for name in said if name.startswith("OTEL_")])
        peers = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
        values = {"tracing": {"endpoint": "http://collector.monitoring:4318/base", "headersSecret": "auth",
                              "headersKey": "otlp", "timeoutMilliseconds": 2500, "peers": peers,
                              "resourceAttributes": {"deployment.environment.name": "a, b=c+d", "shard": 7}}}
        made = objects(values)
        said = variables(made[("Deployment", NAMESPACE, NAME)])
        for name, value in (("EXPORTER_OTLP_ENDPOINT", "http://collector.monitoring:4318/base"),
                            ("EXPORTER_OTLP_HEADERS", {"secretKeyRef": {"name": "auth", "key": "otlp"}}),
                            ("EXPORTER_OTLP_TIMEOUT", "2500"), ("SERVICE_NAME", "lambdadnn-operator")):
            self.assertEqual(value, said["OTEL_" + name])
        self.assertEqual(f"k8s.namespace.name={NAMESPACE},k8s.pod.name=$(LAMBDADNN_POD_NAME),"
                         "deployment.environment.name=a%2C%20b%3Dc%2Bd,shard=7", said["OTEL_RESOURCE_ATTRIBUTES"])
        # The kubelet puts in only what was defined before.
        self.assertLess(*map(list(said).index, ("LAMBDADNN_POD_NAME", "OTEL_RESOURCE_ATTRIBUTES")))
        self.assertEqual(peers, rule(made, [4318])["to"])
        rules = [len(each[("NetworkPolicy", NAMESPACE, NAME)]["spec"]["egress"]) for each in (plain, made)]
        self.assertEqual(rules[0] + 1, rules[1])
        for endpoint, port in (("https://otlp.example", 443), ("http://[fd00::7]/x:1", 80), ("http://c:7/", 7)):
            self.assertNotIn("to", rule(objects({"networkPolicy": {"storePorts": [1], "apiServerPorts": [2]},
                                                 "tracing": {"endpoint": endpoint}}), [port]))
        for wrong, name in (({"endpoint": "collector:4318"}, "endpoint"), ({"timeoutMilliseconds": 0}, "timeout"),
                            ({"endpoint": "http://user:secret@c"}, "endpoint"), ({"headers": "a=b"}, "headers"),
                            ({"resourceAttributes": {"a b": "c"}}, "a b"),
                            ({"resourceAttributes": {"a": []}}, "resourceAttributes")):
            self.assertIn(name, refusal({"tracing": wrong}))

    def test_functions_are_reached_over_tls_unless_that_is_switched_off(self):
        def told(values):
            operator = container(objects(values)[("Deployment", NAMESPACE, NAME)])
            return [word for word in operator["args"] if word.endswith("function-tls")]
        self.assertEqual(["--function-tls"], told({}))
        self.assertEqual(["--no-function-tls"], told({"functions": {"tls": False}}))
        self.assertIn("tls", refusal({"functions": {"tls": "yes"}}))

    def test_functions_pull_with_the_secrets_of_the_values(self):
        def told(values):
            operator = container(objects(values)[("Deployment", NAMESPACE, NAME)])
            return [word for word in operator["args"] if "--image-pull-secrets" in word]
        self.assertEqual([], told({"imagePullSecrets": ["charts-own"]}))
        names = {"functions": {"imagePullSecrets": ["registry", "mirror", "registry"]}}
        self.assertEqual(["--image-pull-secrets=registry,mirror"], told(names))
        self.assertIn("imagePullSecret", refusal(
            {"functions": {"imagePullSecrets": [{"name": "registry"}]}}))

    def test_without_rbac_there_is_no_role_of_the_operator(self):
        values = {"rbac": {"create": False, "aggregateRoles": False}, "platformReaders": False}
        made = {**objects(values), **objects(values, hooks=True)}
        self.assertFalse([key for key in made if "Role" in key[0]])

    def test_an_account_of_ones_own(self):
        values = {"serviceAccount": {"create": False, "name": "mine"}}
        made = objects(values)
        self.assertFalse([key for key in made if key[0] == "ServiceAccount"])
        pod = made[("Deployment", NAMESPACE, NAME)]["spec"]["template"]["spec"]
        self.assertEqual(pod["serviceAccountName"], "mine")
        subjects = made[("ClusterRoleBinding", "", NAME)]["subjects"]
        self.assertEqual([each["name"] for each in subjects], ["mine"])

    def test_the_crd_is_kept_unless_told(self):
        (source,) = documents(next((ROOT / "crds").glob("*.yaml")).read_text())
        name = ("CustomResourceDefinition", "", source["metadata"]["name"])
        kept = objects()[name]
        self.assertEqual(kept["spec"], source["spec"])
        self.assertEqual(kept["metadata"]["annotations"]["helm.sh/resource-policy"], "keep")
        self.assertNotIn("annotations", objects({"crds": {"keep": False}})[name]["metadata"])
        self.assertNotIn(name, objects({"crds": {"enabled": False}}))

    def test_the_store_and_its_secret(self):
        values = {"objectStore": {"uri": "s3://b/p", "endpoint": "https://s3.example:9000",
                                  "existingSecret": "keys", "accessKeyKey": "id",
                                  "caSecret": "ca", "pathStyle": False, "signPayload": False,
                                  "roleArn": "arn:aws:iam::1:role/r"}}
        operator = container(deployment(values))
        self.assertIn("--store=s3://b/p", operator["args"])
        self.assertIn("--store-ca-file=/etc/lambdadnn/store-ca/ca.crt", operator["args"])
        variables = {each["name"]: each.get("value", each.get("valueFrom"))
                     for each in operator["env"]}
        self.assertEqual(variables["LAMBDADNN_S3_ENDPOINT"], "https://s3.example:9000")
        self.assertEqual({variables[f"LAMBDADNN_S3_{name}"] for name in ("PATH_STYLE", "SIGN_PAYLOAD")}, {"false"})
        self.assertEqual(variables["LAMBDADNN_S3_ROLE_ARN"], "arn:aws:iam::1:role/r")
        # A volume, not the environment, so that another key reaches a running operator.
        folder = variables["LAMBDADNN_S3_CREDENTIALS_DIR"]
        mount, = (each for each in operator["volumeMounts"] if each["mountPath"] == folder)
        pod = deployment(values)["spec"]["template"]["spec"]
        volume, = (each for each in pod["volumes"] if each["name"] == mount["name"])
        self.assertEqual(volume["secret"], {
            "secretName": "keys", "items": [{"key": "id", "path": "accessKeyId"},
                                            {"key": "secretAccessKey", "path": "secretAccessKey"}]})
        self.assertNotIn("LAMBDADNN_S3_CREDENTIALS_DIR",
                         [each["name"] for each in container(deployment({}))["env"]])

    def test_minio_becomes_the_store(self):
        minio = {"minio": {"enabled": True, "image": {"repository": "example.org/minio"}}}
        made = objects(minio)
        operator = container(made[("Deployment", NAMESPACE, NAME)])
        self.assertIn("--store=s3://lambdadnn", operator["args"])
        self.assertIn({"name": "LAMBDADNN_S3_ENDPOINT",
                       "value": f"http://{NAME}-minio.{NAMESPACE}.svc:9000"}, operator["env"])
        secret = made[("Secret", NAMESPACE, f"{NAME}-minio")]["stringData"]
        self.assertGreaterEqual(len(secret["secretAccessKey"]), 32)
        self.assertIn("minio.image.repository", refusal({"minio": {"enabled": True}}))
        # Without a volume claim, too.
        minio["minio"]["persistence"] = {"enabled": False}
        self.assertNotIn("volumeClaimTemplates",
                         objects(minio)[("StatefulSet", NAMESPACE, f"{NAME}-minio")]["spec"])

    def test_a_changed_platform_restarts_the_operator(self):
        def stamp(**platform):
            return deployment({"platform": platform})["spec"]["template"]["metadata"]["annotations"]
        self.assertNotEqual(stamp(maxFunctions=8), stamp(maxFunctions=9))

    def test_the_selector_depends_on_names_alone(self):
        self.assertEqual(deployment()["spec"]["selector"],
                         deployment(EVERYTHING)["spec"]["selector"])
        for kind in ("Deployment", "PodDisruptionBudget"):
            spec = objects()[(kind, NAMESPACE, NAME)]["spec"]
            # The pods of hooks and of MinIO are none of the operator's.
            self.assertEqual(spec["selector"]["matchLabels"]["app.kubernetes.io/component"],
                             "operator")

    def test_every_pod_is_restricted(self):
        made = pods(EVERYTHING)
        self.assertEqual(sorted(kind for kind, _ in made),
                         ["Deployment", "Job", "Pod", "StatefulSet"])
        for _, pod in made:
            self.assertTrue(pod["securityContext"]["runAsNonRoot"])
            self.assertEqual(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault")
            for each in pod["containers"]:
                self.assertFalse(each["securityContext"]["allowPrivilegeEscalation"])
                self.assertEqual(each["securityContext"]["capabilities"], {"drop": ["ALL"]})
                self.assertTrue(each["securityContext"]["readOnlyRootFilesystem"])

    def test_every_object_is_labelled(self):
        made = {**objects(EVERYTHING), **objects(EVERYTHING, hooks=True)}
        for key, each in made.items():
            if key[2] == f"{NAME}-own":
                continue
            labels = each["metadata"]["labels"]
            self.assertEqual(labels["app.kubernetes.io/instance"], NAME, key)
            self.assertEqual(labels["cost-centre"], "42", key)

    def test_a_namespace_of_its_own(self):
        spaces = {key[1] for key in objects({**EVERYTHING, "namespaceOverride": "elsewhere"})}
        self.assertEqual(spaces, {"", "elsewhere", "team-a", "team-b"})

    def test_the_hook_of_the_uninstallation_mounts_nothing(self):
        hook = objects(EVERYTHING, hooks=True)[("Job", NAMESPACE, f"{NAME}-uninstall")]
        pod = hook["spec"]["template"]["spec"]
        self.assertNotIn("volumes", pod)
        self.assertNotIn("env", pod["containers"][0])
        self.assertIn("--namespaces=team-a,team-b", pod["containers"][0]["args"])
        off = objects({"uninstall": {"prepare": False}}, hooks=True)
        self.assertEqual({key[0] for key in off}, {"Pod"})

    def test_without_metrics_there_is_no_service(self):
        values = {"metrics": {"enabled": False}}
        self.assertIn("--metrics-address=0", arguments(values))
        self.assertFalse([key for key in objects(values) if key[0] == "Service"])
        for name in ("serviceMonitor", "podMonitor", "prometheusRule"):
            self.assertIn(f"metrics.{name}.enabled",
                          refusal({"metrics": {"enabled": False, name: {"enabled": True}}}))

    def test_one_monitor_collects_the_metrics(self):
        both = {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}}
        self.assertIn("enable one of them", refusal({"metrics": both}))
        made = objects({"metrics": {"podMonitor": {"enabled": True, "labels": {"team": "a"}}}})
        monitor = made[("PodMonitor", NAMESPACE, NAME)]
        self.assertEqual(monitor["metadata"]["labels"]["team"], "a")
        pods = made[("Deployment", NAMESPACE, NAME)]["spec"]["template"]
        wanted = monitor["spec"]["selector"]["matchLabels"]
        self.assertEqual(wanted, {name: pods["metadata"]["labels"][name] for name in wanted})
        ports = [port["name"] for port in pods["spec"]["containers"][0]["ports"]]
        self.assertIn(monitor["spec"]["podMetricsEndpoints"][0]["port"], ports)

    def test_typing_errors_are_refused_by_name(self):
        for values, said in (({"replicas": 3}, "replicas"),
                             ({"crds": {"kept": True}}, "kept"),
                             ({"image": {"tagg": "1"}}, "tagg"),
                             ({"platform": {"memory": {"minMB": 1}}}, "minMB"),
                             ({"replicaCount": "two"}, "replicaCount"),
                             ({"objectStore": {"uri": "http://b"}}, "uri"),
                             ({"logging": {"level": "loud"}}, "level")):
            self.assertIn(said, refusal(values))


class Checks(unittest.TestCase):
    """What others' programs say to it."""

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.rendered = {}
        for name, values in (("default", {}), ("everything", EVERYTHING),
                             ("podMonitor", {"metrics": {"podMonitor": {"enabled": True}}})):
            cls.rendered[name] = cls.folder / f"{name}.yaml"
            cls.rendered[name].write_text(render(values).stdout)

    def passes(self, *command):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_helm_lint(self):
        for values in ({}, EVERYTHING):
            helm("lint", "--strict", "--kube-version", NEWEST, CHART, values=values)

    def test_a_package_renders_what_the_folder_does(self):
        """Its CRDs are a link in the folder."""
        helm("package", CHART, "--destination", self.folder)
        packed, = self.folder.glob("*.tgz")
        done = helm("template", NAME, packed, "--namespace", NAMESPACE, "--kube-version", NEWEST, values={})
        self.assertEqual(done.stdout, self.rendered["default"].read_text())

    def test_schemas_of_kubernetes(self):
        everything = list(documents(self.rendered["everything"].read_text()))
        everything += documents(self.rendered["default"].read_text())
        kinds = {(each["apiVersion"], each["kind"]) for each in everything
                 if each and each["apiVersion"].split("/")[0] != "monitoring.coreos.com"}
        monitoring = kubernetes_schemas.source("prometheus-operator")
        crds = [monitoring / "example/prometheus-operator-crd" /
                f"monitoring.coreos.com_{name}.yaml" for name in ("servicemonitors", "podmonitors",
                                                                  "prometheusrules")]
        crds += (ROOT / "crds").glob("*.yaml")
        for server, version in {**VERSIONS, **(OLDEST if OPTIONS.oldest else {})}.items():
            folder = self.folder / version
            folder.mkdir()
            swagger = kubernetes_schemas.source(server, "k8s.io/kubernetes") / \
                "api/openapi-spec/swagger.json"
            kubernetes_schemas.write_kinds(swagger, sorted(kinds), folder)
            for crd in crds:
                kubernetes_schemas.write_crds(crd.read_text(), folder)
            conform = [program("kubeconform"), "-strict", "-summary", "-schema-location",
                       f"{folder}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"]
            said = self.passes(*conform, *self.rendered.values())
            self.assertIn("Invalid: 0, Errors: 0, Skipped: 0", said)
            self.assertNotIn("Valid: 0", said)
            self.refuses_what_is_wrong(conform)

    def refuses_what_is_wrong(self, conform):
        """Else the schemas above say nothing."""
        wrong = self.folder / "wrong.yaml"
        text = self.rendered["default"].read_text()
        for right, typed in (("revisionHistoryLimit", "revisionsHistoryLimit"),
                             ("maxUnavailable", "maxUnavailible"),
                             ("roleRef:", "rolesRef:")):
            self.assertIn(right, text)
            wrong.write_text(text.replace(right, typed))
            done = subprocess.run([*conform, wrong], capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0, typed)

    def test_the_quickstart_is_of_the_crds_schema(self):
        for crd in (ROOT / "crds").glob("*.yaml"):
            kubernetes_schemas.write_crds(crd.read_text(), self.folder)
        jobs = sorted((ROOT / "examples/quickstart").glob("*.yaml"))
        self.assertTrue(jobs)
        self.passes(program("kubeconform"), "-strict", "-schema-location",
                    f"{self.folder}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json", *jobs)

    def test_kube_score(self):
        for rendered in self.rendered.values():
            ignored = [word for each in sorted(EXCEPTIONS) for word in ("--ignore-test", each)]
            text = "---\n".join(yaml.safe_dump(each) for each in
                                documents(rendered.read_text())
                                if each and each["kind"] != "CustomResourceDefinition")
            done = subprocess.run([program("kube-score"), "score", "--output-format", "ci",
                                   *ignored, "-"], input=text, capture_output=True, text=True)
            found = [line for line in done.stdout.splitlines()
                     if line.startswith(("[CRITICAL]", "[WARNING]"))]
            self.assertEqual(found, [])
            self.assertIn("[OK]", done.stdout, done.stderr)

    def test_alerts(self):
        made = objects(EVERYTHING)
        rules = made[("PrometheusRule", NAMESPACE, NAME)]["spec"]
        for group in rules["groups"]:
            for rule in group["rules"]:
                # As alerts_test.yaml has them; here they are those of any release.
                self.assertEqual(rule["labels"].pop("team"), "ml")
        (self.folder / "alerts.yaml").write_text(yaml.safe_dump(rules))
        source = yaml.safe_load((CHART / "files/alerts.yaml").read_text())
        self.assertEqual(rules, source)
        self.passes(program("promtool"), "check", "rules", self.folder / "alerts.yaml")
        tests = (ROOT / "tests/chart/alerts_test.yaml").read_text()
        (self.folder / "alerts_test.yaml").write_text(tests)
        self.passes(program("promtool"), "test", "rules", self.folder / "alerts_test.yaml")
        tested = {each["alertname"] for test in yaml.safe_load(tests)["tests"]
                  for each in test["alert_rule_test"]}
        self.assertEqual(tested, {rule["alert"] for group in source["groups"]
                                  for rule in group["rules"]})

    def test_the_dashboard_asks_what_prometheus_understands(self):
        dashboard = json.loads((CHART / "files/dashboard.json").read_text())
        asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        self.assertEqual(len({panel["id"] for panel in dashboard["panels"]}),
                         len(dashboard["panels"]))
        rules = {"groups": [{"name": "dashboard", "rules": [
            {"record": f"asked:{number}", "expr": text.replace("$__rate_interval", "5m")}
            for number, text in enumerate(asked)]}]}
        file = self.folder / "dashboard.yaml"
        file.write_text(yaml.safe_dump(rules))
        self.passes(program("promtool"), "check", "rules", file)

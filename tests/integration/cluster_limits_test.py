# SPDX-License-Identifier: Apache-2.0
"""What a cluster with Knative allows functions, as the planner sees it: a real kube-apiserver with
nodes, quotas and Knative's ConfigMaps, and Knative's kinds without Knative. No function runs."""
import json
import os
import subprocess
import unittest

from memory import mebibytes
from operator_support import ROOT, Cluster, access_rules
from options import OPTIONS
from s3_servers import BUCKET, CREDENTIALS, RealServer

PLATFORM = """
memory: {min: 128Mi, max: 1024Mi, step: 64Mi}
milliCpuPerGiB: 500
sidecarMemory: 64Mi
maxFunctions: 32
functionTimeoutSeconds: 300
prices: {currency: USD, gibSecond: "0.0000166667"}
"""
SPACE = "team"
SETS = ("jobs", "knative", "isolation", "limits")
KNATIVE = "knative-serving"
GPU = "nvidia.com/gpu"
FOR_GPUS = {"functions": {"gpu": 1}, "podTemplate": {"workers": {"tolerations": [
    {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]}}}
SERVICES = f"/apis/serving.knative.dev/v1/namespaces/{SPACE}/services"
# What Knative's webhook says of a feature that is off.
REFUSAL = "must not set the field(s): spec.template.spec.nodeSelector"


def kind(group, version, plural, name, schema):
    """A definition of one of Knative's kinds."""
    return {"metadata": {"name": f"{plural}.{group}"}, "spec": {
        "group": group, "scope": "Namespaced",
        "names": {"plural": plural, "singular": name.lower(), "kind": name},
        "versions": [{"name": version, "served": True, "storage": True,
                      "subresources": {"status": {}},
                      "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                          "spec": schema, "status": {
                              "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}]}}


ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
# Refuses a node selector, as Knative does without the feature.
SERVICE_SPEC = {**ANYTHING, "properties": {"template": {**ANYTHING, "properties": {"spec": {
    **ANYTHING, "properties": {"nodeSelector": {
        "type": "object", "additionalProperties": {"type": "string"}}},
    "x-kubernetes-validations": [{"rule": "!has(self.nodeSelector)", "message": REFUSAL}]}}}}}


class ClusterLimits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster = Cluster(OPTIONS.bin, train=0)
        cls.addClassCleanup(cluster.close)
        cls.minio = RealServer("minio")
        cls.addClassCleanup(cls.minio.close)
        for name in (SPACE, KNATIVE, "lambdadnn-system"):
            cls.post("/api/v1/namespaces", {"metadata": {"name": name}})
        for definition in (
                kind("serving.knative.dev", "v1", "services", "Service", SERVICE_SPEC),
                kind("autoscaling.internal.knative.dev", "v1alpha1", "podautoscalers",
                     "PodAutoscaler", ANYTHING)):
            cls.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        cluster.wait_for("Knative's kinds are served",
                         lambda: cluster.api("GET", SERVICES)[0] == 200)
        cls.platform = cluster.folder / "platform.yaml"
        cls.platform.write_text(PLATFORM)
        cls.post("/api/v1/namespaces/lambdadnn-system/configmaps", {
            "metadata": {"name": "lambdadnn-platform"}, "data": {"platform.yaml": PLATFORM}})
        for name, data in (("config-defaults", {"max-revision-timeout-seconds": "60"}),
                           ("config-autoscaler", {}), ("config-features", {})):
            cls.post(f"/api/v1/namespaces/{KNATIVE}/configmaps",
                     {"metadata": {"name": name}, "data": data})

    @classmethod
    def post(cls, path, body):
        status, made = cls.cluster.api("POST", path, body)
        assert status == 201, made
        return made

    def setUp(self):
        self.undo = []
        self.addCleanup(lambda: [self.cluster.api("DELETE", path) for path in self.undo])

    def create(self, path, body):
        made = self.post(path, body)
        self.undo.append(f"{path}/{made['metadata']['name']}")

    def node(self, name, memory, cpu="2", gpus=0, tainted=True):
        """Those with GPUs have a taint, which keeps other pods away."""
        self.create("/api/v1/nodes", {"metadata": {"name": name}})
        allocatable = {"memory": memory, "cpu": cpu, "pods": "50"}
        taints = None
        if gpus:
            allocatable[GPU] = str(gpus)
        if gpus and tainted:
            taints = [{"key": GPU, "effect": "NoSchedule"}]
        # Nodes are born with the taint of those that are not ready, and without a status.
        for part, change in (("", {"spec": {"taints": taints}}), ("/status", {"status": {
                "allocatable": allocatable}})):
            status, answer = self.cluster.api("PATCH", f"/api/v1/nodes/{name}{part}", change)
            self.assertEqual(status, 200, answer)

    def job(self, name, **spec):
        """Not created yet, a file. Its store is the operator's own: where functions are pods
        a job may not name one on loopback."""
        path = self.cluster.manifest(name, SPACE, backend="Knative", **spec)
        job = json.loads(path.read_text())
        del job["spec"]["objectStore"]
        path.write_text(json.dumps(job))
        return path

    def plan(self, path, kubeconfig=None, more=()):
        """What `kubectl lambdadnn plan` says: (exit code, JSON or its error)."""
        done = subprocess.run(
            [OPTIONS.bin / "kubectl-lambdadnn", "plan", "-f", path, "-n", SPACE, "-o", "json",
             "--kubeconfig", kubeconfig or self.cluster.plane.kubeconfig, *more],
            capture_output=True, text=True, timeout=60,
            env={**os.environ, "HOME": str(self.cluster.folder)})
        return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr

    def let_read_platform(self, user):
        path = "/apis/rbac.authorization.k8s.io/v1/namespaces/lambdadnn-system/"
        self.create(path + "roles", {"metadata": {"name": "platform"}, "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]})
        self.create(path + "rolebindings", {
            "metadata": {"name": "platform"},
            "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"kind": "Role", "name": "platform",
                        "apiGroup": "rbac.authorization.k8s.io"}})

    def doctor(self, kubeconfig=None):
        """(exit code, what it says)"""
        done = subprocess.run(
            [OPTIONS.bin / "kubectl-lambdadnn", "doctor", "-n", SPACE,
             "--kubeconfig", kubeconfig or self.cluster.plane.kubeconfig],
            capture_output=True, text=True, timeout=60,
            env={**os.environ, "HOME": str(self.cluster.folder)})
        return done.returncode, done.stdout + done.stderr

    def configure(self, name, data):
        """Of Knative, until the test's end."""
        path = f"/api/v1/namespaces/{KNATIVE}/configmaps/{name}"
        undone = dict.fromkeys(data)
        self.addCleanup(lambda: self.cluster.api("PATCH", path, {"data": undone}))
        status, answer = self.cluster.api("PATCH", path, {"data": data})
        self.assertEqual(status, 200, answer)

    def free_job(self, name="free", **spec):
        """One whose size the planner chooses, that wants the most memory it may have."""
        path = self.job(name, **spec)
        job = json.loads(path.read_text())
        job["spec"]["objective"] = {"budget": "1000"}  # the fastest plan
        del job["spec"]["aggregation"]
        path.write_text(json.dumps(job))
        return path

    def start_operator(self, name, sets, without=None, more=()):
        """One of namespace `team`: what it reads of the cluster is optional."""
        cluster = self.cluster
        cluster.grant(f"{name}-cluster", ["optional"], without)
        subject = [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}]
        status, bound = cluster.api(
            "PATCH", f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{name}-cluster",
            {"subjects": subject})
        assert status == 200, bound
        kubeconfig = cluster.operator_user(name, sets, without, [SPACE])
        flags = ["--backend", "Knative", "--platform", self.platform, "--namespaces", SPACE,
                 "--worker-image", "worker:1", "--server-image", "server:1",
                 "--store", f"s3://{BUCKET}/own", *more]
        environment = {**CREDENTIALS, "LAMBDADNN_S3_ENDPOINT": f"http://127.0.0.1:{self.minio.port}"}
        check = subprocess.run(
            [OPTIONS.bin / "lambdadnn-operator", "--check", "--kubeconfig", kubeconfig, *flags],
            capture_output=True, text=True, env={**os.environ, **environment})
        operator = cluster.start_operator(None, *flags, name=f"operator-{name}",
                                          kubeconfig=kubeconfig, environment=environment)
        self.addCleanup(lambda: operator.alive() and operator.kill())
        return operator, check

    def reason(self, name, condition):
        job = self.cluster.get(name, SPACE)
        for found in (job or {}).get("status", {}).get("conditions", []):
            if found["type"] == condition:
                return f"{found['status']}/{found['reason']}: {found['message']}"
        return ""

    def wait_reason(self, name, condition, words):
        return self.cluster.wait_for(f"{name} {condition} {words}", lambda: (
            self.reason(name, condition) if self.reason(name, condition).startswith(words) else ""),
            150)

    def delete(self, name):
        self.cluster.api("DELETE", self.cluster.job_path(name, SPACE))
        self.cluster.wait_for(f"{name} is gone", lambda: self.cluster.get(name, SPACE) is None)

    def services(self):
        status, listed = self.cluster.api("GET", SERVICES)
        self.assertEqual(status, 200, listed)
        return [item["metadata"]["name"] for item in listed["items"]]

    def test_plan_follows_nodes_quotas_and_limit_ranges(self):
        code, plan = self.plan(self.free_job())
        self.assertEqual(code, 0, plan)
        self.assertGreater(mebibytes(plan["memory"]), 448, "the choice without limits")
        self.assertEqual([words for words in plan["cluster"]["narrowed"] if "60 s" in words],
                         plan["cluster"]["narrowed"])
        self.assertEqual(plan["cluster"]["notCounted"], [])
        self.node("small", "600Mi")
        self.node("other", "600Mi")
        code, plan = self.plan(self.free_job())
        self.assertEqual(code, 0, plan)
        self.assertLessEqual(mebibytes(plan["memory"]), 512)
        self.assertIn("a function has at most 512 MiB (the most that a node has left)",
                      plan["cluster"]["narrowed"])
        self.create(f"/api/v1/namespaces/{SPACE}/resourcequotas", {
            "metadata": {"name": "q"}, "spec": {"hard": {"requests.memory": "900Mi"}}})
        code, plan = self.plan(self.free_job())
        self.assertEqual(code, 0, plan)
        used = plan["functions"] * (mebibytes(plan["memory"]) + 64)
        if "serverMemory" in plan:  # no worker serves
            aggregation = plan["aggregation"]
            servers = aggregation.get("spread", 1) * sum(aggregation["layers"][:-1])
            used += servers * (mebibytes(plan["serverMemory"]) + 64)
        self.assertLessEqual(used, 900)
        self.assertIn("all functions have 900 MiB (a ResourceQuota)", plan["cluster"]["narrowed"])
        self.create(f"/api/v1/namespaces/{SPACE}/limitranges", {
            "metadata": {"name": "r"}, "spec": {"limits": [
                {"type": "Container", "max": {"memory": "300Mi"}}]}})
        code, plan = self.plan(self.free_job())
        self.assertEqual(code, 0, plan)
        self.assertLessEqual(mebibytes(plan["memory"]), 256)
        # Functions of 384 MiB fit no more.
        code, error = self.plan(self.job("fixed"))
        self.assertEqual(code, 2, error)
        self.assertIn("a function has at most 256 MiB (a LimitRange)", error)

    def test_plan_has_the_gpus_that_nodes_have_free(self):
        self.node("plain", "8Gi", "8")
        code, error = self.plan(self.free_job(**FOR_GPUS))
        self.assertEqual(code, 3, error)
        self.assertIn("all workers together have 0 GPUs (the free nvidia.com/gpu of the nodes)", error)
        self.node("first", "8Gi", "8", gpus=1)
        self.node("second", "4Gi", "8", gpus=2)
        self.create("/api/v1/namespaces/default/pods", {"metadata": {"name": "other"}, "spec": {
            "nodeName": "second", "terminationGracePeriodSeconds": 0, "containers": [
                {"name": "c", "image": "i", "resources": {"limits": {GPU: "1"}}}]}})
        code, plan = self.plan(self.free_job(**FOR_GPUS))
        self.assertEqual(code, 0, plan)
        self.assertEqual((plan["functions"], plan["gpu"]), (2, 1))
        self.assertIn("all workers have 2 GPUs (the free nvidia.com/gpu of the nodes)",
                      plan["cluster"]["narrowed"])
        code, plan = self.plan(self.free_job())
        self.assertGreater(plan["functions"], 2, "without GPUs there may be more")
        # Nobody tolerates the nodes with GPUs.
        code, error = self.plan(self.free_job(functions={"gpu": 1}))
        self.assertIn("all workers together have 0 GPUs", error)
        # And more than there are is one sentence.
        code, error = self.plan(self.job("three", **FOR_GPUS))
        self.assertEqual(code, 2, error)
        self.assertIn("each function has a GPU of its own (functions.gpu), and there are 2 for 3", error)

    def test_the_example_with_gpus_is_taken_and_planned(self):
        example = ROOT / "examples/quickstart/gpu.yaml"
        done = self.cluster.kubectl("apply", "--dry-run=server", "-n", SPACE, "-f", example)
        self.assertIn("digits-gpu created (server dry run)", done.stdout)
        self.node("gpus", "8Gi", "8", gpus=3, tainted=False)
        profile = {"trainingSamples": 12000, "trainingBytes": 9408000, "modelBytes": 14000000,
                   "trainingRate.slope": "0", "trainingRate.intercept": "3000"}
        sets = [part for field, value in profile.items() for part in ("--set", f"spec.profile.{field}={value}")]
        code, plan = self.plan(example, more=sets)
        self.assertEqual(code, 0, plan)
        self.assertEqual(plan["gpu"], 1)
        self.assertLessEqual(plan["functions"], 3)

    def test_plan_says_what_its_user_may_not_read(self):
        user = self.cluster.operator_user("reader", ("jobs",), namespaces=[SPACE])
        self.let_read_platform("reader")

        def planned():
            code, plan = self.plan(self.free_job(), user)
            return plan if code == 0 else None
        plan = self.cluster.wait_for("the user may read the platform", planned, every=1)
        told = "\n".join(plan["cluster"]["notCounted"])
        for words in ("nodes", "longest timeout", "largest scale", "ResourceQuotas", "LimitRanges"):
            self.assertIn(words, told)
        self.assertEqual(plan["cluster"]["narrowed"], [])

    def test_doctor_says_what_holds_jobs_back(self):
        code, said = self.doctor()
        self.assertEqual(code, 0, said)
        self.assertIn("rules for isolation hold in namespace team", said)
        self.assertIn("warning  Knative: a request ends after 60 s, not the platform's 300", said)
        self.configure("config-autoscaler", {"max-scale-limit": "8"})
        code, said = self.doctor()
        self.assertEqual(code, 0, said)
        self.assertIn("warning  Knative: jobs have at most 8 of the platform's 32 functions", said)
        # The command that it names is all that it takes.
        raised, = [line for line in said.splitlines() if "max-scale-limit" in line]
        self.configure("config-autoscaler", json.loads(raised.split("-p '")[1].rstrip("'"))["data"])
        self.assertNotIn("max-scale-limit", self.doctor()[1])
        index, = [at for at, rule in enumerate(access_rules()["isolation"])
                  if rule["resources"] == ["networkpolicies"]]
        user = self.cluster.operator_user("half", SETS, ("isolation", index, "create"), [SPACE])
        self.let_read_platform("half")

        def told():
            code, said = self.doctor(user)
            return (code, said) if "is published" in said else None
        code, said = self.cluster.wait_for("the user's rules are in force", told, every=1)
        self.assertEqual(code, 0, said)
        self.assertIn("warning  access: may not create networkpolicies in networking.k8s.io in "
                      "namespace team; jobs run all the same, less bounded", said)

    def test_a_limit_of_scale_is_told_before_anything_is_made(self):
        self.configure("config-autoscaler", {"max-scale-limit": "1"})
        operator, check = self.start_operator("scale", SETS)
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        self.cluster.create_job(self.job("scale"))
        message = self.wait_reason("scale", "Provisioned", "False/ClusterTooSmall")
        self.assertIn("max-scale-limit in ConfigMap knative-serving/config-autoscaler", message)
        self.assertEqual(self.services(), [])
        self.delete("scale")
        self.assertEqual(operator.stop(), 0)

    def pods_of(self, service):
        template = self.cluster.api("GET", f"{SERVICES}/{service}")[1]["spec"]["template"]
        return template, template["spec"]["containers"][0]

    def test_functions_have_the_operators_images_and_secrets_and_gpus_where_they_are_free(self):
        operator, check = self.start_operator(
            "puller", SETS, more=("--image-pull-secrets", "registry,mirror", "--worker-gpu-image", "worker:cuda"))
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        for name, gpus in (("plain", 0), ("gpus", 3)):
            self.node(name, "8Gi", "8", gpus)
        self.cluster.create_job(self.job("on-gpus", **FOR_GPUS))
        self.cluster.wait_for("its services", lambda: self.services() == ["on-gpus-servers", "on-gpus-workers"])
        template, worker = self.pods_of("on-gpus-workers")
        self.assertEqual(worker["image"], "worker:cuda")
        for kind in ("requests", "limits"):
            self.assertEqual(worker["resources"][kind][GPU], "1")
        self.assertEqual(template["spec"]["tolerations"], FOR_GPUS["podTemplate"]["workers"]["tolerations"])
        template, server = self.pods_of("on-gpus-servers")
        self.assertEqual(server["image"], "server:1")
        self.assertNotIn(GPU, server["resources"]["limits"])
        self.assertNotIn("tolerations", template["spec"])
        self.cluster.create_job(self.job("puller"))
        self.cluster.wait_for("its services", lambda: "puller-workers" in self.services())
        status, account = self.cluster.api(
            "GET", f"/api/v1/namespaces/{SPACE}/serviceaccounts/puller-lambdadnn")
        self.assertEqual(status, 200, account)
        self.assertEqual(account["imagePullSecrets"], [{"name": "registry"}, {"name": "mirror"}])
        template = self.cluster.api("GET", f"{SERVICES}/puller-workers")[1]["spec"]["template"]
        self.assertEqual(template["spec"]["serviceAccountName"], "puller-lambdadnn")
        annotations = template["metadata"]["annotations"]
        self.assertEqual(annotations["autoscaling.knative.dev/class"],
                         "kpa.autoscaling.knative.dev")
        for name in ("on-gpus", "puller"):
            self.delete(name)
        self.assertEqual(operator.stop(), 0)

    def test_each_optional_rule_that_is_missing_is_named_and_the_job_goes_on(self):
        self.node("large", "8Gi", "8")
        told = {"nodes": ["the nodes' capacity"], "pods": ["the requests of other pods"],
                "configmaps": ["Knative's longest timeout", "Knative's largest scale",
                               "Knative's features"],
                "resourcequotas": ["ResourceQuotas", "LimitRanges"]}
        operator, check = self.start_operator("with-all", SETS)
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        self.assertNotIn("may not", check.stdout)
        self.cluster.create_job(self.job("with-all"))
        message = self.wait_reason("with-all", "Provisioned", "True/Planned")
        self.assertIn("a request ends after 60 s (Knative's max-revision-timeout-seconds)", message)
        self.assertEqual(self.reason("with-all", "Degraded"), "")
        self.cluster.wait_for("its services", lambda: len(self.services()) == 2)
        service = self.cluster.api("GET", f"{SERVICES}/with-all-workers")[1]
        self.assertEqual(service["spec"]["template"]["spec"]["timeoutSeconds"], 60)
        self.delete("with-all")
        self.assertEqual(operator.stop(), 0)
        rules = access_rules()
        # Without the right to watch, what was listed counts until it is known that it may not be watched.
        missing = [(which, index, rule["verbs"][0], rule["resources"][0])
                   for which in ("limits", "optional") for index, rule in enumerate(rules[which])]
        for which, index, verb, resource in missing:
            name = f"no-{resource}"
            with self.subTest(name):
                operator, check = self.start_operator(name, SETS, (which, index, verb))
                self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
                self.assertIn("warning", check.stdout)
                if resource == "customresourcedefinitions":  # for --check alone
                    self.assertIn("its version cannot be compared", check.stdout)
                    operator.kill()
                    continue
                self.assertIn(f"may not {verb} {resource}", check.stdout)
                self.cluster.create_job(self.job(name))
                message = self.wait_reason(name, "Degraded", "True/LimitsUnknown")
                for words in told[resource]:
                    self.assertIn(words, message)
                for other in set(sum(told.values(), [])) - set(told[resource]):
                    self.assertNotIn(other, message)
                self.cluster.wait_for("its services", lambda: len(self.services()) == 2)
                self.delete(name)
                self.assertEqual(operator.stop(), 0)

    def test_a_cluster_that_is_too_small_or_refuses_is_waited_for(self):
        self.node("small", "300Mi")
        operator, _ = self.start_operator("waits", SETS)
        self.cluster.create_job(self.job("waits"))
        message = self.wait_reason("waits", "Provisioned", "False/ClusterTooSmall")
        self.assertIn("the most that a node has left", message)
        self.assertEqual(self.services(), [])
        self.node("large", "8Gi", "8")
        self.wait_reason("waits", "Provisioned", "True/Planned")
        self.cluster.create_job(self.job("refused", podTemplate={"spec": {"nodeSelector": {"zone": "a"}}}))
        message = self.wait_reason("refused", "Accepted", "False/UnsupportedByCluster")
        self.assertIn(REFUSAL, message)
        self.assertIn("kubernetes.podspec-nodeselector", message)
        self.assertEqual([name for name in self.services() if name.startswith("refused")], [])
        secrets = self.cluster.api("GET", f"/api/v1/namespaces/{SPACE}/secrets")[1]["items"]
        self.assertEqual([s["metadata"]["name"] for s in secrets
                          if s["metadata"]["name"].startswith("refused")], [])
        for name in ("waits", "refused"):
            self.delete(name)
        self.assertEqual(operator.stop(), 0)

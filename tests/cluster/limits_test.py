# SPDX-License-Identifier: Apache-2.0
"""What a real cluster allows and refuses, as a job's conditions tell it: Knative's configuration
and webhook, its nodes, a quota that is used up. No function gets ready: their image is nowhere.

On a cluster of its own, or on the one that LAMBDADNN_CLUSTER_DIR names, which stays.
The operator is that of build/PRESET. Needs root, and once the parts of the cluster
(scripts/cluster.sh build).
"""
import pathlib

import settings
from cluster_case import BesideOperator
from options import OPTIONS

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUCKET = "limits"
JOBS = "/apis/lambdadnn.io/v1alpha1/namespaces/default/serverlesstrainingjobs"
SERVICES = "/apis/serving.knative.dev/v1/namespaces/default/services"
PODS = "/api/v1/namespaces/default/pods"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
DEFAULTS = "/api/v1/namespaces/knative-serving/configmaps/config-defaults"
PLATFORM = """
memory: {min: 128Mi, max: 1024Mi, step: 64Mi}
milliCpuPerGiB: 200
sidecarMemory: 64Mi
maxFunctions: 32
functionTimeoutSeconds: 300
prices: {currency: USD, gibSecond: "0.0000166667"}
"""
# With a sidecar each: 2 x (256 + 64) + 128 + 64.
JOB_MIB = 832


def spec(functions, **fields):
    return {
        "model": {"builtin": {"name": "mlp", "parameters": {"hidden": [128]}}},
        "dataset": {"renderedDigits": {"train": 1000, "test": 200, "seed": 1}},
        "training": {"epochs": 1, "globalBatchSize": 60, "seed": 7,
                     "optimizer": {"name": "SGD", "learningRate": "0.05"}},
        "objective": {"fixed": {"functions": functions, "memory": "256Mi"}},
        "aggregation": {"shards": 1, "layers": [1, functions], "serverMemory": "128Mi"},
        "profile": {"trainingSamples": 1000, "trainingBytes": 784000, "modelBytes": 407080,
                    "trainingRate": {"slope": "2", "intercept": "0"}},
        "backend": "Knative",
        "objectStore": {"endpoint": f"http://{settings.S3_ADDRESS}", "bucket": BUCKET,
                        "credentialsSecretRef": {"name": "store"}},
        **fields}


class Limits(BesideOperator):
    BUCKET = BUCKET
    PLATFORM = PLATFORM

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.request("PATCH", DEFAULTS, {"data": {"max-revision-timeout-seconds": "60",
                                                 "revision-timeout-seconds": "60",
                                                 "revision-response-start-timeout-seconds": "60"}})
        cls.addClassCleanup(cls.request, "PATCH", DEFAULTS, {"data": {
            "max-revision-timeout-seconds": None, "revision-timeout-seconds": None,
            "revision-response-start-timeout-seconds": None}})
        cls.operator = cls.run_operator(
            ROOT / f"build/{OPTIONS.preset}/bin/lambdadnn-operator", "--worker-image",
            "dev.local/nowhere/worker:1", "--server-image", "dev.local/nowhere/server:1")
        cls.addClassCleanup(cls.stop)

    @classmethod
    def stop(cls):
        cls.operator.terminate()
        cls.operator.wait()

    def create(self, name, functions=2, **fields):
        self.addCleanup(self.gone, name)
        self.request("POST", JOBS, {
            "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
            "metadata": {"name": name}, "spec": spec(functions, **fields)})

    def gone(self, name):
        self.kube.request("DELETE", f"{JOBS}/{name}")
        self.wait(f"{name} is gone", lambda: self.kube.get(f"{JOBS}/{name}") is None)

    def said(self, name, condition, words):
        """The message, once the condition says STATUS/REASON."""
        def check():
            job = self.kube.get(f"{JOBS}/{name}")
            for each in job.get("status", {}).get("conditions", []):
                if each["type"] == condition and f"{each['status']}/{each['reason']}" == words:
                    return each["message"] or "-"
        return self.wait(f"{condition} {words} of {name}", check)

    def test_knatives_longest_timeout_is_the_plans(self):
        self.create("short")
        message = self.said("short", "Provisioned", "True/Planned")
        self.assertIn("a request ends after 60 s", message)
        service = self.wait("the Service", lambda: self.kube.get(f"{SERVICES}/short-workers"))
        self.assertEqual(60, service["spec"]["template"]["spec"]["timeoutSeconds"])

    def test_what_the_webhook_refuses_is_told_before_anything_is_made(self):
        self.create("refused", podTemplate={"spec": {"nodeSelector": {"kubernetes.io/arch": "amd64"}}})
        message = self.said("refused", "Accepted", "False/UnsupportedByCluster")
        print(message, flush=True)
        self.assertIn("must not set the field(s)", message)
        self.assertIn("kubernetes.podspec-nodeselector", message)
        self.assertIsNone(self.kube.get(f"{SERVICES}/refused-workers"))

    def test_what_a_job_says_of_its_pods_is_what_they_have(self):
        volumes = [{"name": "scratch", "emptyDir": {"sizeLimit": "16Mi"}},
                   {"name": "keys", "secret": {"secretName": "store"}}]
        mounts = [{"name": "scratch", "mountPath": "/scratch"},
                  {"name": "keys", "mountPath": "/keys", "readOnly": True}]
        self.create("templated", podTemplate={
            "metadata": {"labels": {"team": "vision"}, "annotations": {"example.com/a": "b"}},
            "spec": {"volumes": volumes, "containers": [
                {"name": "worker", "env": [{"name": "MODE", "value": "fast"}], "volumeMounts": mounts,
                 "resources": {"requests": {"ephemeral-storage": "8Mi"}}}]}})

        def pod_of(group):
            pods = self.kube.get(f"{PODS}?labelSelector=lambdadnn.io/job-name=templated,"
                                 f"lambdadnn.io/group={group}")["items"]
            return pods[0] if pods else None
        worker = self.wait("a worker", lambda: pod_of("workers"))
        self.assertEqual("vision", worker["metadata"]["labels"]["team"])
        self.assertEqual("b", worker["metadata"]["annotations"]["example.com/a"])
        self.assertLessEqual({"scratch", "keys"}, {each["name"] for each in worker["spec"]["volumes"]})
        [function] = [each for each in worker["spec"]["containers"] if each["name"] == "function"]
        self.assertEqual("256Mi", function["resources"]["requests"]["memory"])
        self.assertEqual("8Mi", function["resources"]["requests"]["ephemeral-storage"])
        self.assertIn({"name": "MODE", "value": "fast"}, function["env"])
        self.assertLessEqual({"/scratch", "/keys"},
                             {each["mountPath"] for each in function["volumeMounts"]})
        server = self.wait("a server", lambda: pod_of("servers"))
        self.assertFalse({"scratch", "keys"} &
                         {each["name"] for each in server["spec"].get("volumes", [])})

    def test_more_than_the_nodes_have_is_waited_for(self):
        self.create("huge", 30)
        message = self.said("huge", "Provisioned", "False/ClusterTooSmall")
        print(message, flush=True)
        self.assertIn("the free capacity of the nodes", message)
        self.assertIsNone(self.kube.get(f"{SERVICES}/huge-workers"))

    def test_a_quota_that_is_used_up_is_told_with_what_is_missing(self):
        self.request("POST", QUOTAS, {"metadata": {"name": "narrow"}, "spec": {"hard": {
            "requests.memory": f"{JOB_MIB * 3 // 2}Mi"}}})
        self.addCleanup(self.kube.request, "DELETE", f"{QUOTAS}/narrow")
        # Whichever is first holds its pods while they wait for an image that never comes.
        self.create("one")
        self.create("two")
        def refused():
            for name in ("one", "two"):
                job = self.kube.get(f"{JOBS}/{name}")
                for each in job.get("status", {}).get("conditions", []):
                    if each["reason"] == "QuotaExceeded":
                        return each["message"]
        message = self.wait("QuotaExceeded", refused)
        print(message, flush=True)
        self.assertIn("ResourceQuota narrow", message)
        self.assertRegex(message, r"\d+ MiB of requests\.memory are missing")

# SPDX-License-Identifier: Apache-2.0
"""The access rules are all that the operator needs and nothing more: with each of them taken away a
job's life is not what it is with all. The key of a job shows nowhere but in its Secret.

--share I/N takes each N-th of the rules.
"""
import base64
import json
import time
import unittest

from api_proxy import ApiProxy
from operator_support import Cluster, access_rules
from options import OPTIONS, shared

TRAINING = {"epochs": 12}
LIFE_SECONDS = 60
LAST = {("serverlesstrainingjobs", "delete"): "deleted", ("secrets", "delete"): "deleted",
        ("events", "create"): "events", ("events", "patch"): "series of events"}


def verb_of(request):
    """As access rules call it."""
    if request.method == "GET":
        return "watch" if request.watch else "get" if request.name else "list"
    return {"POST": "create", "PUT": "update"}.get(request.method, request.method.lower())


class Access(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(OPTIONS.bin)
        cls.host = cls.cluster.start_host()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()

    def start(self, name, kubeconfig, *flags, lease=None):
        operator = self.cluster.start_operator(
            self.host, "--leader-elect", "--lease-name", lease or name, *flags,
            name=f"operator-{name}", kubeconfig=kubeconfig)
        self.addCleanup(operator.kill)  # a failed test leaves none to the next one
        return operator

    def events(self, name):
        _, events = self.cluster.api("GET", "/apis/events.k8s.io/v1/namespaces/default/events")
        return [e for e in events["items"] if e["regarding"].get("name") == name]

    def phase(self, name):
        return ((self.cluster.get(name) or {}).get("status") or {}).get("phase")

    def life(self, name, seconds, without=None):
        """What is missing of a whole life: run, suspended, taken over by an operator that knows
        nothing of it, resumed and suspended once more (so that events come again), complete,
        deleted by its time to live; "" when nothing is. And what the operator was refused:
        {(verb, resource)}."""
        cluster = self.cluster
        cluster.operator_user(name, without=without)
        proxy = ApiProxy(cluster.plane, name)
        refused = set()

        def note(request, status):
            if status == 403:
                refused.add((verb_of(request),
                             "/".join(filter(None, (request.resource, request.subresource)))))
        proxy.after = note
        try:
            return self.lived(name, seconds, proxy.kubeconfig(cluster.folder, name)), refused
        finally:
            proxy.close()

    def lived(self, name, seconds, kubeconfig):
        cluster = self.cluster
        operator = self.start(name, kubeconfig)
        cluster.create_job(cluster.manifest(name, training=TRAINING, ttlSecondsAfterFinished=1,
                                            suspend=True))
        try:
            for step, suspended in enumerate((False, True, False, True, False)):
                before = "Suspended" if not suspended else "Running"
                cluster.wait_for(before, lambda: self.phase(name) == before, seconds)
                if step == 2:
                    operator.stop()
                    operator = self.start(f"{name}-next", kubeconfig, lease=name)
                cluster.patch_job(name, {"spec": {"suspend": suspended}})
            uid = cluster.get(name)["metadata"]["uid"]
            cluster.wait_for("deleted", lambda: cluster.get(name) is None, seconds)
            time.sleep(1)  # the last events are on their way
        except AssertionError as error:
            return str(error).split(":")[0]  # what was waited for
        finally:
            operator.kill()
        told = [e for e in self.events(name) if e["regarding"]["uid"] == uid]
        if not told:
            return "events"
        if not any(e.get("series") for e in told):
            return "series of events"
        secrets = cluster.api("GET", "/api/v1/namespaces/default/secrets")[1]["items"]
        return "its secret stays" if any(s["metadata"]["name"].startswith(f"{name}-")
                                         for s in secrets) else ""

    def test_every_rule_is_needed(self):
        self.assertEqual(self.life("with-all", LIFE_SECONDS), ("", set()))
        superfluous = []
        rules = [(which, index, rule["resources"][0], verb) for which in ("jobs", "lease")
                 for index, rule in enumerate(access_rules()[which]) for verb in rule["verbs"]]
        taken = shared(rules)
        self.assertTrue(taken)
        for which, index, resource, verb in taken:
            name = f"no-{verb}-{resource.replace('/', '-')}"
            # Rules whose absence shows only at the end of a job take the whole job.
            last = LAST.get((resource, verb))
            missing, refused = self.life(name, LIFE_SECONDS if last else 12, (which, index, verb))
            print(f"without {verb} {resource}: no {missing}", flush=True)
            # A slow machine may miss something as well, but is refused nothing.
            if (not missing or (last and missing != last) or refused != {(verb, resource)}):
                superfluous.append(f"{name}: {missing}, refused: {refused}")
            self.cluster.api("PATCH", self.cluster.job_path(name),
                             {"metadata": {"finalizers": None}})
            self.cluster.api("DELETE", self.cluster.job_path(name))
        print(f"{len(taken)} of {len(rules)} rules taken away", flush=True)
        self.assertEqual(superfluous, [])

    def test_the_key_of_a_job_is_nowhere_else(self):
        cluster = self.cluster
        operator = self.start("keys", cluster.operator_user("keys"), "--enable-debug",
                              "--log-level", "debug")
        cluster.create_job(cluster.manifest("secretive", training=TRAINING))
        cluster.wait_for("running", lambda: self.phase("secretive") == "Running")
        _, secret = cluster.api(
            "GET", "/api/v1/namespaces/default/secrets/secretive-lambdadnn-key")
        coded = secret["data"]["key"]
        key = base64.b64decode(coded).decode()
        self.assertGreaterEqual(len(key), 32)

        status, page = operator.described("default/secretive")
        self.assertEqual(status, 200)
        self.assertIn('"decision"', page)
        job = cluster.wait_complete("secretive")
        shown = {"debug": page, "status": json.dumps(job), "log": operator.text(),
                 "events": json.dumps(self.events("secretive")),
                 "host's log": self.host.text(),
                 "metrics": operator.page("metrics", "/metrics")[1]}
        for what, text in shown.items():
            self.assertNotIn(key, text, what)
            self.assertNotIn(coded, text, what)
        operator.stop()

    def test_the_debug_page_is_the_leaders_and_only_where_it_is_enabled(self):
        cluster = self.cluster
        kubeconfig = cluster.operator_user("debug")

        def start(name, *flags):
            return self.start(name, kubeconfig, *flags, lease="debug")

        leader = start("debug-leader", "--enable-debug")
        cluster.wait_for("it leads", lambda: leader.metric("leader_election_master_status") == 1)
        standby = start("debug-standby", "--enable-debug")
        standby.wait_for_line("standby")
        cluster.create_job(cluster.manifest("looked-at", training={"epochs": 1}))
        cluster.wait_complete("looked-at")
        status, text = leader.described("default/looked-at")
        self.assertEqual(status, 200)
        self.assertEqual(set(json.loads(text)), {"snapshot", "policy", "decision"})
        self.assertEqual(leader.described("default/nobody")[0], 404)
        self.assertEqual(leader.described("default"), (404, "ask for /debug/jobs/NAMESPACE/NAME\n"))
        self.assertEqual(standby.described("default/looked-at"), (503, "this process does not lead\n"))
        self.assertEqual((standby.stop(), leader.stop()), (0, 0))
        plain = start("debug-plain")
        cluster.wait_for("it leads", lambda: plain.metric("leader_election_master_status") == 1)
        self.assertEqual(plain.described("default/looked-at")[0], 404)
        self.assertEqual(plain.stop(), 0)

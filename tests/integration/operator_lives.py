# SPDX-License-Identifier: Apache-2.0
"""Lives of jobs under an operator that may be killed anywhere in them (operator_kill_test.py), and
what the operator writes in them."""
import collections
import time

# Fewer functions than the digits have: starting them is most of what a life costs.
JOB = {"training": {"epochs": 10},
       "objective": {"fixed": {"functions": 2, "memory": "384Mi"}},
       "aggregation": {"layers": [1, 2, 2]}}
SEEN = 10  # iterations, before anybody disturbs a job
GONE_SECONDS = 60
# In the end a life of which leaders are elected (--leader-elect).
LIVES = ("complete", "suspend", "replan", "fail", "delete", "lead")


class WriteLog:
    """Names what each write about one job changes, and each write of the Lease, by what it carries."""

    def __init__(self, job_name):
        self.job_name = job_name  # tells the name, once it has one
        self.conditions, self.counts, self.holder = {}, collections.Counter(), None

    def names(self, request):
        """The changes in a request, each with its number of occurrence; [] for anything else."""
        if request.method == "GET" or request.watch:
            return []
        numbered = []
        for name in self.changes(request):
            self.counts[name] += 1
            numbered.append((name, self.counts[name]))
        return numbered

    def changes(self, request):
        body = request.body or {}
        if request.resource == "leases":
            return self.lease(request.method, body)
        if not self.about_the_job(request, body):
            return []
        if request.resource == "events":
            # What is told again becomes a series, at some time.
            return [f"event {body['reason']}"] if request.method == "POST" else []
        if request.subresource == "status":
            return self.status(body.get("status", {}))
        if request.method == "PATCH":
            taken = body.get("metadata", {}).get("finalizers") == []
            return ["finalizer taken" if taken else "finalizer set"]
        return [f"{request.method} {request.resource}"]

    def about_the_job(self, request, body):
        """Another one's end may be under way still."""
        name = self.job_name()
        if request.resource == "events":
            return request.method == "POST" and body.get("regarding", {}).get("name") == name
        told = request.name or body.get("metadata", {}).get("name", "")
        return name is not None and told.startswith(name)

    def lease(self, method, body):
        holder = body.get("spec", {}).get("holderIdentity")
        before, self.holder = self.holder, holder
        if method == "POST":
            return ["lease made"]
        if holder == "":
            return ["lease released"]
        if holder == before:
            return ["lease renewed"]
        return ["lease taken" if before == "" else "lease taken over"]

    def status(self, status):
        found = []
        for condition in status.get("conditions") or []:
            value = (condition["status"], condition["reason"])
            if self.conditions.get(condition["type"]) != value:
                self.conditions[condition["type"]] = value
                found.append(f"status {condition['type']}={value[0]} {value[1]}")
        found += [f"status {field}" for field in
                  ("plan", "profile", "startTime", "completionTime", "model") if field in status]
        found += [f"status execution.{field}" for field in
                  ("functions", "incarnation", "firstIteration", "plannedFor")
                  if field in (status.get("execution") or {})]
        return found


class Lives:
    """Each method takes one job through a life and says how it ended. Once the operator has been
    killed (`struck`), what only takes time at the end of a life goes on beside the next one:
    finish()."""

    def __init__(self, test):
        self.test, self.cluster, self.operate = test, test.cluster, test.operate
        self.count, self.name, self.digest = 0, None, None
        self.struck = lambda: False
        self.ends = []  # (what, deadline, condition)

    def begin(self, **spec):
        self.count += 1
        self.name = f"life-{self.count:04}"
        path = self.cluster.manifest(self.name, **{**JOB, **spec})
        return self.name, self.cluster.create_job(path)

    def until(self, name, what, condition, seconds=180):
        """The job, once the condition holds; the operator is started again when it has died."""
        def look():
            self.operate()
            job = self.cluster.get(name)
            return (job or {"gone": True}) if condition(job) else None
        try:
            return self.cluster.wait_for(f"{name}: {what}", look, seconds, every=0.05)
        except AssertionError as error:
            page = self.operate().described(f"default/{name}")[1]
            raise AssertionError(f"{page[-6000:]}\n{str(error)[-3000:]}") from None

    def running(self, name):
        """Iterations have been heard of, of all those who tell of them the first."""
        return self.until(name, "running", lambda job: self.ended(job) or max(
            self.test.functions.heard[job["metadata"]["uid"]],
            job.get("status", {}).get("progress", {}).get("iteration", 0)) >= SEEN)

    def ended(self, job):
        return any(self.cluster.condition(job, kind) for kind in ("Complete", "Failed"))

    def completed(self, name):
        job = self.until(name, "ended", self.ended)
        assert self.cluster.condition(job, "Complete"), job["status"]["conditions"]
        assert job["status"]["model"]["digest"] == self.digest, "the digest is another one"
        return job

    def left(self, name, job, results):
        """What a job that has ended has in the store and at the API server."""
        left = [key for key in self.cluster.store_keys(job)
                if not (results and "/results/" in key)]
        _, secrets = self.cluster.api("GET", "/api/v1/namespaces/default/secrets")
        return left + [item["metadata"]["name"] for item in secrets["items"]
                       if item["metadata"]["name"].startswith(name)]

    def nothing_left(self, name, job, results=True):
        left = []

        def clean():
            self.operate()
            left[:] = [*self.cluster.functions().values(), *self.left(name, job, results)]
            return not left
        try:
            self.cluster.wait_for("clean", clean, 40)
        except AssertionError:
            raise AssertionError(f"{name} left behind: {left}\n{self.cluster.tails()}") from None

    def gone(self, name, job, results):
        """The job goes, and all that it may not leave."""
        self.cluster.wait_for(f"{name}: no function", lambda: self.operate() and
                              not self.cluster.functions(), GONE_SECONDS)
        self.ends.append((f"{name}: deleted and nothing left", time.monotonic() + GONE_SECONDS,
                          lambda: self.cluster.get(name) is None and
                          not self.left(name, job, results)))
        if not self.struck():
            self.finish()

    def finish(self, wait=True):
        """What was still to come of earlier lives has come, or (without `wait`) may come yet."""
        while self.ends:
            self.operate()
            self.ends = [end for end in self.ends if not end[2]()]
            for what, deadline, _ in self.ends:
                assert time.monotonic() < deadline, f"{what}: not in time; {self.cluster.tails()}"
            if not wait:
                return
            time.sleep(0.05)

    def complete(self):
        name, job = self.begin(ttlSecondsAfterFinished=1)
        self.completed(name)
        self.gone(name, job, results=True)

    def suspend(self):
        name, job = self.begin()
        self.running(name)
        self.cluster.patch_job(name, {"spec": {"suspend": True}})
        self.until(name, "suspended", lambda seen: self.ended(seen) or
                   self.cluster.condition(seen, "Suspended"))
        self.cluster.patch_job(name, {"spec": {"suspend": False}})
        self.completed(name)
        self.nothing_left(name, job)

    def replan(self):
        name, job = self.begin()
        self.running(name)
        # Another memory: other functions, the same arithmetic.
        self.cluster.patch_job(name, {"spec": {"objective": {"fixed": {"memory": "448Mi"}}}})
        self.completed(name)
        self.nothing_left(name, job)

    def fail(self):
        # Another model than was profiled, which a function finds.
        name, job = self.begin(profile={"modelBytes": 400000})
        job = self.until(name, "failed", self.ended)
        assert self.cluster.condition(job, "Failed"), job["status"]["conditions"]
        self.nothing_left(name, job)

    def delete(self):
        # Too long to complete before it is deleted, however late that is: its results would stay.
        name, job = self.begin(training={"epochs": 400})
        self.running(name)
        self.cluster.api("DELETE", self.cluster.job_path(name))
        self.gone(name, job, results=False)

    def lead(self):
        """One leader gives the Lease back, the next is killed, the third takes it over."""
        self.test.replace_operator("--leader-elect", "--lease-namespace", "default",
                                   "--lease-name", f"lease-{self.count:04}")
        name, job = self.begin()
        self.running(name)
        self.until(name, "renewed", lambda _: self.test.log.counts["lease renewed"] > 0)
        self.test.stop_operator()
        self.until(name, "another leads", lambda _: self.test.log.counts["lease taken"] +
                   self.test.log.counts["lease taken over"] > 0)
        self.completed(name)
        if not self.struck():
            self.test.operator.kill()
        self.cluster.api("DELETE", self.cluster.job_path(name))
        self.gone(name, job, results=True)
        self.finish()
        self.test.replace_operator()

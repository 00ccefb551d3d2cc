# SPDX-License-Identifier: Apache-2.0
"""A training run on real S3 servers: the bits of a run on a folder, every iteration's requests and
bytes as the formulas of common/plan say, and nothing left but results."""
import collections
import unittest

from options import OPTIONS
from run_support import Bench
from s3_servers import CREDENTIALS, EXCHANGE, CountingProxy, RealServer

EPOCHS = ("--set", "spec.training.epochs=4")
SPREAD_AND_CLIPPED = ("--set", "spec.training.epochs=2", "--set", "spec.aggregation.shards=4",
                      "--set", "spec.aggregation.spread=2",
                      "--set", "spec.training.optimizer.clip.globalNorm=0.5")
# kMaxMissesPerObject of common/plan: what one reader may ask in vain for one object.
MISSES_PER_OBJECT = 128
DELETED_TOGETHER = 8  # kGarbageObjects of garbage_collector.h


def most_live(requests):
    """The most objects that were there at once, from the successful PUTs and DELETEs."""
    live, most = set(), 0
    for request in requests:
        if not 200 <= request.status < 300:
            continue
        if request.method == "PUT":
            live.add(request.key)
        elif request.method == "DELETE":
            live.discard(request.key)
        most = max(most, len(live))
    return most


class RealStoreRun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bench = Bench(OPTIONS.bin)
        cls.addClassCleanup(cls.bench.close)
        cls.reference = cls.bench.run(*EPOCHS)

    def train_on(self, name, length=EPOCHS, reference=None):
        server = RealServer(name)
        self.addCleanup(server.close)
        proxy = CountingProxy(server.port)
        self.addCleanup(proxy.close)
        run = self.bench.run(*length, *proxy.options(), environment=CREDENTIALS)
        self.assertEqual(run.digest(), (reference or self.reference).digest())
        self.assertEqual(run.functions(), {}, "processes were left behind")

        requests = run.report()["requests"]
        formula = requests["predictedPerIteration"]
        self.assertGreater(formula["puts"], 0)
        counts = proxy.exchanged()
        self.assertEqual(sorted(counts), list(range(requests["iterations"])))
        for iteration, count in sorted(counts.items()):
            self.assertEqual(count, formula, f"iteration {iteration}")

        found, missed = collections.Counter(), collections.Counter()
        for request in proxy.requests:
            if request.method == "GET" and EXCHANGE.match(request.key):
                (missed if request.status == 404 else found)[request.key] += 1
        for key, misses in missed.items():
            self.assertLessEqual(misses, MISSES_PER_OBJECT * found[key], key)

        # Functions tell what they put and deleted at their own moments, servers but one at the end alone,
        # and each deletes several objects at a time.
        aggregation = run.report()["plan"]["aggregation"]
        roles = aggregation["layers"][-1] + sum(aggregation["layers"][:-1]) * aggregation["spread"]
        self.assertAlmostEqual(run.report()["store"]["liveObjectsMax"], most_live(proxy.requests),
                               delta=2 * formula["puts"] + roles * DELETED_TOGETHER)

        left = server.keys()
        self.assertTrue(left)
        self.assertEqual([key for key in left if "/results/" not in key], [])

    def test_minio(self):
        self.train_on("minio")

    def test_minio_with_spread_and_clipping_by_global_norm(self):
        self.train_on("minio", SPREAD_AND_CLIPPED, self.bench.run(*SPREAD_AND_CLIPPED))

    def test_versitygw(self):
        self.train_on("versitygw")

# SPDX-License-Identifier: Apache-2.0
"""The replay of recorded runs tells how far predictions are off, and of which plans."""
import copy
import json
import pathlib
import tempfile
import unittest

import prediction_records
import record
import replay
from options import OPTIONS

CONFIGURATION = ("mlp", "small", 8, 2, 512)
NAME = "mlp-small-e8-n2-m512-k1-l1"
AGGREGATION = {"shards": 1, "layers": [1, 2]}
PLATFORM = {"memory": {"min": "128Mi", "max": "1024Mi", "step": "64Mi"}, "milliCpuPerGiB": 1000, "maxFunctions": 8,
            "functionTimeoutSeconds": 600, "store": {"bytesPerSecond": 1e9, "requestSeconds": "0.001"},
            "prices": {"currency": "USD", "gibSecond": "0.0000166667"}}
PROFILE = {"trainingSamples": 3000, "trainingBytes": 2352000, "modelBytes": 814120,
           "trainingRate": {"slope": "2", "intercept": "0"}, "coldStartSeconds": "1"}


class Replay(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lambdadnn-replay-test-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.lambdadnn = OPTIONS.bin / "lambdadnn"
        self.record = {"name": NAME, "heldOut": prediction_records.is_held_out(NAME),
                       "job": record.job_of(CONFIGURATION, AGGREGATION),
                       "platform": PLATFORM, "runs": []}

    def exact(self, way=None, **changes):
        """A run that took what is predicted of this way to exchange, but for these changes."""
        run = {"profile": PROFILE, "terms": {}, "seconds": 0, "disturbed": False,
               "plan": {"functions": 2, "memory": "512Mi", "aggregation": {**AGGREGATION, **(way or {})}}}
        predicted = prediction_records.predict(self.lambdadnn, self.record, run)
        self.p90 = predicted.p90
        return {**run, "seconds": predicted.seconds, "terms": predicted.terms, "cost": predicted.cost, **changes}

    def write(self, *runs):
        self.record["runs"] = list(runs)
        (self.folder / f"{self.record['name']}.json").write_text(json.dumps(self.record))

    def test_what_took_what_was_predicted_has_no_error(self):
        self.write(self.exact())
        errors = prediction_records.errors_of(self.lambdadnn, prediction_records.load(self.folder)[0])
        self.assertAlmostEqual(errors.total, 0, delta=1e-6)
        for name, error in [*errors.terms.items(), *errors.phases.items()]:
            self.assertAlmostEqual(error, 0, delta=1e-6, msg=name)
        self.assertIn("computeSeconds", errors.phases)
        self.assertIsNone(errors.left)

    def test_a_plan_is_predicted_with_the_way_to_exchange_that_it_had(self):
        ways = ({"transport": "ObjectStore"}, {"transport": "Direct"})
        runs = [self.exact(way) for way in ways]
        for way, run in zip(ways, runs, strict=True):
            said = copy.deepcopy(self.record)
            said["job"]["spec"]["aggregation"] |= way
            self.assertEqual(run["seconds"], prediction_records.predict(self.lambdadnn, said, run).seconds)
        self.assertNotEqual(runs[0]["seconds"], runs[1]["seconds"], "each way takes another time")
        self.assertEqual(prediction_records.spread_of({"runs": runs}), 0)
        self.write(*runs)  # the planner chose another way for each
        errors = prediction_records.errors_of(self.lambdadnn, prediction_records.load(self.folder)[0])
        self.assertAlmostEqual(errors.total, 0, delta=1e-6)

    def test_errors_are_told_in_all_and_by_term(self):
        run = self.exact()
        run["seconds"] *= 2
        run["terms"]["computeSeconds"] += run["seconds"] / 2
        compute = run["terms"]["computeSeconds"]
        run["left"] = {"estimated": 4.0, "actual": 5.0}
        run["secondsBeforePlan"] = 7.0
        self.write(run)
        errors = prediction_records.errors_of(self.lambdadnn, prediction_records.load(self.folder)[0])
        self.assertAlmostEqual(errors.total, -0.5, delta=1e-6)
        self.assertAlmostEqual(errors.terms["computeSeconds"], -0.5, delta=1e-6)
        self.assertAlmostEqual(errors.terms["communicationSeconds"], 0, delta=1e-6)
        self.assertAlmostEqual(errors.phases["computeSeconds"], -run["seconds"] / 2 / compute, delta=1e-6)
        text = "\n".join(replay.replay(self.lambdadnn, self.folder))
        self.assertIn("compute, where it is at least 5% of the run: median", text)
        self.assertIn("estimated after 10% of the iterations of what was left: median 20.0%, worst -20.0% of 1 plans",
                      text)
        self.assertIn(f"{NAME}   1/1    0.0%   -50.0%", text)
        self.assertIn("before the plan: median 7.0 s, at most 7.0 s of 1 runs", text)
        self.assertIn("all: median 50.0%, worst -50.0% of 1 plans", text)

    def test_phases_and_what_was_left_stand_beside_what_repeats_differ_by(self):
        first, second = self.exact(left={"estimated": 5.0, "actual": 5.0}), self.exact()
        second["terms"]["computeSeconds"] *= 1.5
        second["left"] = {"estimated": 5.0, "actual": 6.0}
        self.write(first, second)
        lines = replay.replay(self.lambdadnn, self.folder)
        for begin, spread in (("compute, where", "50.0%"), ("comm, where", "0.0%"), ("estimated after", "20.0%")):
            told = next(line for line in lines if line.startswith(begin))
            self.assertTrue(told.endswith(f"; repeats differ by {spread}, at most {spread}"), told)

    def test_what_a_run_has_shown_corrects_the_next_prediction(self):
        twice = self.exact({"transport": "ObjectStore", "placement": "Dedicated"})
        for name in ("computeSeconds", "communicationSeconds"):
            twice["seconds"] += twice["terms"][name]
            twice["terms"][name] *= 2
        self.write(twice)
        self.assertIsNone(prediction_records.next_error_of(self.lambdadnn, self.record))
        self.write(twice, copy.deepcopy(twice))
        self.assertAlmostEqual(prediction_records.next_error_of(self.lambdadnn, self.record), 0, delta=1e-6)
        self.assertIn("the next run, by what one run has shown: median 0.0%, worst -0.0% of 1 plans",
                      [line.replace("+", "-") for line in replay.replay(self.lambdadnn, self.folder)])

    def test_the_factor_of_an_exchange_is_that_of_its_way(self):
        ways = {("ObjectStore", "Dedicated", 1): "runStoreFactor", ("ObjectStore", "Workers", 1): "runAloneFactor",
                ("ObjectStore", "Workers", 2): "runStoreWorkersFactor", ("Direct", "Dedicated", 2): "runDirectFactor",
                ("Direct", "Workers", 2): "runDirectWorkersFactor"}
        for (transport, placement, functions), name in ways.items():
            plan = {"functions": functions, "aggregation": {"transport": transport, "placement": placement}}
            self.assertEqual(prediction_records.exchange_factor_of(plan), name)

    def test_disturbed_runs_count_only_where_there_are_no_others(self):
        slow = self.exact(disturbed=True)
        slow["seconds"] *= 4
        self.write(self.exact(), slow, copy.deepcopy(slow))
        total = prediction_records.errors_of(self.lambdadnn, self.record).total
        self.assertAlmostEqual(total, 0, delta=1e-6)
        self.assertIn("repeats of one plan differ by: median 300.0%, worst 300.0%",
                      replay.replay(self.lambdadnn, self.folder))
        self.write(slow)
        total = prediction_records.errors_of(self.lambdadnn, self.record).total
        self.assertAlmostEqual(total, -0.75, delta=1e-6)

    def test_a_plan_may_be_as_far_off_as_its_repeats_differ(self):
        near, far = self.exact(), self.exact()
        near["seconds"] *= 1.05
        far["seconds"] *= 1.4
        far["cost"] *= 2
        self.write(near)
        told = replay.replay(self.lambdadnn, self.folder)
        self.assertIn("within 12%: 1 of 1 plans; within that or what repeats differ by: 1", told)
        self.assertIn("cost: median 0.0%, worst +0.0% of 1 plans", told)
        self.write(far)
        told = replay.replay(self.lambdadnn, self.folder)
        self.assertIn("within 12%: 0 of 1 plans; within that or what repeats differ by: 0; "
                      f"not {NAME} -28.6%", told)
        self.assertIn("cost: median 50.0%, worst -50.0% of 1 plans", told)
        self.write(far, copy.deepcopy(far), self.exact())
        self.assertIn("within 12%: 0 of 1 plans; within that or what repeats differ by: 1",
                      replay.replay(self.lambdadnn, self.folder))

    def test_runs_below_p50_and_p90_are_counted(self):
        quick, usual, slow = self.exact(), self.exact(), self.exact()
        quick["seconds"] *= 0.9
        usual["seconds"] = (usual["seconds"] + self.p90) / 2
        slow["seconds"] = self.p90 * 1.01
        self.write(quick, usual, slow, copy.deepcopy(slow))
        self.assertIn("all: 25% of 4 runs below p50, 50% below p90", replay.replay(self.lambdadnn, self.folder))

    def test_runs_are_drawn_or_it_is_said_what_is_missing(self):
        self.write(self.exact(), self.exact(seconds=9.0))
        picture = self.folder / "runs.svg"
        try:
            replay.plot(self.lambdadnn, self.folder, picture)
        except SystemExit as error:
            self.assertIn("install python3-matplotlib", str(error))
            self.assertFalse(picture.exists())
            return
        drawn = picture.read_text()
        self.assertIn("2 runs", drawn)
        self.assertIn("actual seconds", drawn)

    def test_what_is_no_record_is_named(self):
        for text in ("{", "{}", "[1]", '{"name": "other", "runs": [{}]}'):
            path = self.folder / "some.json"
            path.write_text(text)
            with self.assertRaises(SystemExit) as ended:
                prediction_records.load(self.folder)
            self.assertIn(f"{path} is no record of a plan", str(ended.exception))

    def test_the_first_estimate_after_a_tenth_of_the_iterations_counts(self):
        points = [{"iteration": iteration, "time": time, "seconds": 18.0}
                  for iteration, time in ((1, 2.0), (19, 3.0), (21, 4.0), (60, 9.0))]
        report = {"beforePlan": {"iterations": 10}, "plan": {"iterations": 110}, "actual": {"seconds": 20.0},
                  "curves": {"estimates": points}}
        self.assertEqual(prediction_records.left_of(report), {"left": {"estimated": 14.0, "actual": 16.0}})
        report["curves"]["estimates"] = points[:2]
        self.assertEqual(prediction_records.left_of(report), {})

    def test_a_machine_that_does_other_work_is_noticed(self):
        self.assertFalse(prediction_records.is_disturbed([1.02, 1.0], 1.0))
        self.assertTrue(prediction_records.is_disturbed([1.0, 1.2], 1.0))
        self.assertTrue(prediction_records.is_disturbed([1.2, 1.2], 1.0))

    def test_a_third_of_the_plans_is_held_out(self):
        names = [name for group in record.named_groups() for name, _, _ in group]
        held_out = sum(map(prediction_records.is_held_out, names))
        self.assertIn(held_out, range(len(names) // 5, len(names) // 2 + 1))
        self.assertEqual(len(set(names)), len(names))
        self.assertEqual(len(names), len(record.PLANS) + 4 * len(record.CONFIGURATIONS))

    def test_the_way_of_exchange_that_was_fastest_is_compared_with_the_one_predicted(self):
        configuration = prediction_records.configuration_name(*CONFIGURATION)
        for way in prediction_records.WAYS:
            self.assertEqual(replay.ways_of(self.lambdadnn, prediction_records.load(self.folder)), [])
            name = prediction_records.name_of_way(configuration, *way)
            aggregation = dict(zip(("transport", "placement"), way, strict=True))
            self.record |= {"name": name, "heldOut": prediction_records.is_held_out(name),
                            "job": record.job_of(CONFIGURATION, aggregation)}
            # Dedicated servers are never predicted fastest: what a worker has for itself takes it nothing.
            self.write(self.exact(seconds=10.0 if way == ("ObjectStore", "Dedicated") else 20.0))
        ((named, chosen, fastest, slower),) = replay.ways_of(self.lambdadnn, prediction_records.load(self.folder))
        self.assertEqual((named, fastest), (configuration, ("ObjectStore", "Dedicated")))
        self.assertNotEqual(chosen, fastest)
        self.assertAlmostEqual(slower, 1)
        self.assertIn("the fastest of four ways is the one predicted in 0 of 1, "
                      "the one predicted at most 100.0% slower", replay.replay(self.lambdadnn, self.folder))

    def test_the_records_of_the_repository_can_be_replayed(self):
        lines = replay.replay(self.lambdadnn, prediction_records.RECORDS)
        self.assertTrue(lines)

# SPDX-License-Identifier: Apache-2.0
"""Records of runs, which tell what a plan took, with all that a prediction of it needs: JSON files of one plan
each (docs/development.md, Prediction records)."""
import hashlib
import json
import pathlib
import statistics
import subprocess
import tempfile
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDS = ROOT / "tests/prediction/records"
# Terms of a prediction, whose seconds are of one iteration where the second column says so.
TERMS = (("coldStartSeconds", False), ("loadSeconds", False), ("computeSeconds", True),
         ("communicationSeconds", True), ("evaluationSeconds", False), ("checkpointSeconds", False),
         ("sliceOverheadSeconds", False), ("releaseSeconds", False))
# Where a plan was run.
MACHINE, CLUSTER = "machine", "cluster"
# How functions exchange gradients and weights.
WAYS = tuple((transport, placement)
             for transport in ("ObjectStore", "Direct") for placement in ("Dedicated", "Workers"))
# Of a machine that does nothing else the probes before and after a run take the same time.
PROBE_TOLERANCE = 0.05
# How far off a total may be, where repeats of the plan do not differ by more.
MOST_ERROR = 0.12
# Shorter phases are not told how far they are off.
LEAST_PHASE = 0.05
# Of the iterations that were predicted, after which a run's own estimate is compared with what was left.
ESTIMATED_FROM = 0.1


def configuration_name(model, data, epochs, functions, memory):
    return f"{model}-{data}-e{epochs}-n{functions}-m{memory}"


def name_of_way(configuration, transport, placement):
    return f"{configuration}-{transport}-{placement}"


def is_held_out(name):
    """A third of all plans, by their names: no model is fitted to them."""
    return hashlib.sha256(name.encode()).digest()[0] % 3 == 0


def is_disturbed(probes, quiet):
    """Whether a probe took longer than on the machine at rest, or they differ."""
    return max(probes) > quiet * (1 + PROBE_TOLERANCE) or max(probes) > min(probes) * (1 + PROBE_TOLERANCE)


def left_of(report):
    """What a run's first estimate after a tenth of its iterations said of the seconds that were left, and these."""
    before, iterations = report["beforePlan"], report["plan"]["iterations"]
    begin = before["iterations"] + ESTIMATED_FROM * (iterations - before["iterations"])
    for point in report["curves"]["estimates"]:
        if point["iteration"] >= begin:
            return {"left": {"estimated": point["seconds"] - point["time"],
                             "actual": report["actual"]["seconds"] - point["time"]}}
    return {}


def run_of(report, probes, quiet):
    """What one run's report tells of it, raw."""
    before = report["beforePlan"]
    return {"profile": report["profile"],
            # Of each run, as the planner may choose another one by another profile where the job leaves it a choice.
            "plan": {key: report["plan"][key] for key in ("functions", "memory", "serverMemory", "aggregation")
                     if key in report["plan"]},
            "seconds": report["actual"]["seconds"] - before["seconds"],
            "secondsBeforePlan": before["seconds"],
            "cost": report["actual"]["cost"] - before["cost"],
            "terms": {name: report["phases"][name] for name, _ in TERMS if name in report["phases"]},
            "workers": report["phases"]["workers"], "servers": report["phases"]["servers"],
            "latencies": report["store"]["latencies"],
            **left_of(report), "probeSeconds": probes, "disturbed": is_disturbed(probes, quiet)}


def load(folder=RECORDS):
    """All records of a folder; a sentence in place of a traceback where one is none."""
    records = []
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        try:
            record = json.loads(path.read_text())
            name, runs = record["name"], record["runs"]
            assert record.get("place", MACHINE) in (MACHINE, CLUSTER)
            assert name == path.stem and runs and record["heldOut"] == is_held_out(name)
            assert record["job"] and record["platform"]
            for run in runs:
                assert run["seconds"] > 0 and run["profile"] and run["terms"]
                assert run["plan"]["functions"] and run["plan"]["memory"]
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            raise SystemExit(f"error: {path} is no record of a plan ({error!r}); record it anew") from None
        records.append(record)
    return records


def by_place(records):
    """[(place, its records)], without places that have none."""
    places = [(place, [record for record in records if record.get("place", MACHINE) == place])
              for place in (MACHINE, CLUSTER)]
    return [(place, those) for place, those in places if those]


class Predicted(typing.NamedTuple):
    seconds: float
    p90: float  # seconds that nine of ten runs stay below
    terms: dict  # seconds, of all iterations
    cost: float


def predict(lambdadnn, record, run):
    """What the program predicts of this run's profile."""
    job = json.loads(json.dumps(record["job"]))
    job["spec"]["profile"] = run["profile"]
    # Those that say nothing of it ran when functions did not connect to each other.
    job["spec"].setdefault("peerChannel", "None")
    # What the run's way to exchange was, also where the job left it open and this version would choose another.
    ran = run["plan"]["aggregation"]
    job["spec"]["aggregation"] |= {key: ran[key] for key in ("transport", "placement", "spread") if key in ran}
    with tempfile.TemporaryDirectory(prefix="lambdadnn-replay-") as folder:
        job_file, platform_file = pathlib.Path(folder, "job.json"), pathlib.Path(folder, "platform.json")
        job_file.write_text(json.dumps(job))
        # Records of before price books are in US dollars without saying so.
        platform = {**record["platform"], "prices": {"currency": "USD", **record["platform"].get("prices", {})}}
        platform_file.write_text(json.dumps(platform))
        done = subprocess.run([lambdadnn, "predict", "-f", job_file, "--platform", platform_file, "-o", "json"],
                              capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"error: no prediction for the record {record['name']}: {done.stderr.strip()}")
    predicted = json.loads(done.stdout)["predicted"]
    iterations = float(predicted["iterations"])
    terms = {name: float(predicted.get(name, 0)) * (iterations if each else 1) for name, each in TERMS}
    return Predicted(float(predicted["seconds"]), float(predicted["p90Seconds"]), terms, float(predicted["cost"]))


def exchange_factor_of(plan):
    """The number of a profile by which such a plan's exchange is multiplied (RunFactors)."""
    ran = plan["aggregation"]
    serves = ran.get("placement", "Dedicated") == "Workers"
    if serves and plan["functions"] == 1:
        return "runAloneFactor"
    return ("runDirect" if ran.get("transport") == "Direct" else "runStore") + ("Workers" if serves else "") + "Factor"


def next_error_of(lambdadnn, record):
    """Median of predicted / actual - 1 of runs, each predicted by the profile of the run before it and by what that
    run showed of the model (run_learning.h); None for fewer than two."""
    errors, runs = [], counted_runs(record)
    for run, following in zip(runs, runs[1:], strict=False):
        predicted = predict(lambdadnn, record, run).terms
        shown = {name: run["terms"].get(term, 0) / predicted[term]
                 for name, term in (("runComputeFactor", "computeSeconds"),
                                    ("runEvaluationFactor", "evaluationSeconds"),
                                    (exchange_factor_of(run["plan"]), "communicationSeconds")) if predicted[term] > 0}
        profile = run["profile"] | {name: str(factor) for name, factor in shown.items() if factor > 0}
        errors.append(predict(lambdadnn, record, {**following, "profile": profile}).seconds / following["seconds"] - 1)
    return statistics.median(errors) if errors else None


def counted_runs(record):
    """Those that were not disturbed; all, if each was."""
    return [run for run in record["runs"] if not run["disturbed"]] or record["runs"]


def spread_of(record):
    """How much longer the longest run took than the shortest of the same plan: no prediction can be nearer to all of
    them."""
    return spread_among(record["runs"], lambda run: run["seconds"])


def spread_among(runs, seconds_of):
    """The same of what `seconds_of` gives of each run."""
    seconds = {}
    for run in runs:
        seconds.setdefault(json.dumps(run["plan"], sort_keys=True), []).append(seconds_of(run))
    return max(max(each) / min(each) - 1 for each in seconds.values())


class Errors(typing.NamedTuple):
    """Of a plan; medians over the runs that count, but for `below`."""
    total: float  # predicted / actual - 1
    cost: float | None  # the same; None where nothing costs anything
    terms: dict  # (predicted - actual) / seconds in all
    phases: dict  # predicted / actual - 1 of the terms that take at least LEAST_PHASE of the run
    phase_spreads: dict  # what repeats differ by in these
    left: float | None  # estimated / actual - 1 of what was left after ESTIMATED_FROM
    left_spread: float | None  # what repeats differ by in what was left
    below: list  # of all runs, whether each stayed below its p50 and its p90


def errors_of(lambdadnn, record):
    totals, costs, terms, below = [], [], {name: [] for name, _ in TERMS}, []
    phases, left = {}, []
    counted = counted_runs(record)
    for run in record["runs"]:
        seconds, p90, predicted, cost = predict(lambdadnn, record, run)
        below.append((run["seconds"] <= seconds, run["seconds"] <= p90))
        if run not in counted:
            continue
        totals.append(seconds / run["seconds"] - 1)
        if run.get("cost"):
            costs.append(cost / run["cost"] - 1)
        for name, _ in TERMS:
            actual = run["terms"].get(name, 0)
            terms[name].append((predicted[name] - actual) / run["seconds"])
            if actual >= LEAST_PHASE * run["seconds"]:
                phases.setdefault(name, []).append(predicted[name] / actual - 1)
        if "left" in run:
            left.append(run["left"]["estimated"] / run["left"]["actual"] - 1)
    phase_spreads = {name: spread_among([run for run in counted if run["terms"].get(name)],
                                        lambda run, name=name: run["terms"][name]) for name in phases}
    told = [run for run in counted if "left" in run]
    return Errors(statistics.median(totals), statistics.median(costs) if costs else None,
                  {name: statistics.median(each) for name, each in terms.items()},
                  {name: statistics.median(each) for name, each in phases.items()}, phase_spreads,
                  statistics.median(left) if left else None,
                  spread_among(told, lambda run: run["left"]["actual"]) if told else None, below)

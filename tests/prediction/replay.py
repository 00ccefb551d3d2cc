#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays recorded runs: what the model predicts of each, against what it took. Needs no machine to itself and
takes seconds.

    tests/prediction/replay.py [--bin build/release/bin] [--records tests/prediction/records] [--plot FILE.svg]

Errors in all are predicted / actual - 1; those of the terms are parts of the actual time in all. With --plot all
runs are drawn, too: predicted against actual seconds, with p90.
"""
import argparse
import pathlib
import statistics

import prediction_records

SHORT = {"coldStartSeconds": "start", "loadSeconds": "load", "computeSeconds": "compute",
         "communicationSeconds": "comm", "evaluationSeconds": "eval", "checkpointSeconds": "ckpt",
         "sliceOverheadSeconds": "slices", "releaseSeconds": "release"}

MARKERS = {prediction_records.MACHINE: "o", prediction_records.CLUSTER: "^"}


def summary(name, errors):
    """Median and worst of the absolute errors of some plans."""
    if not errors:
        return f"{name}: no plan"
    return (f"{name}: median {statistics.median(map(abs, errors)):.1%}, "
            f"worst {max(errors, key=abs):+.1%} of {len(errors)} plans")


def beyond(rows):
    """How many of the rows (name, error, what repeats differ by) are within MOST_ERROR, or within what repeats differ
    by; and the others."""
    far = [(name, error) for name, error, spread in rows
           if abs(error) > max(prediction_records.MOST_ERROR, spread)]
    near = sum(abs(error) <= prediction_records.MOST_ERROR for _, error, _ in rows)
    return (f"within {prediction_records.MOST_ERROR:.0%}: {near} of {len(rows)} plans; within that or what repeats "
            f"differ by: {len(rows) - len(far)}"
            + (f"; not {', '.join(f'{name} {error:+.1%}' for name, error in far)}" if far else ""))


def coverage(name, below):
    """How many of some runs stayed below their p50 and their p90."""
    if not below:
        return f"{name}: no run"
    shares = [statistics.mean(each) for each in zip(*below, strict=True)]
    return f"{name}: {shares[0]:.0%} of {len(below)} runs below p50, {shares[1]:.0%} below p90"


def before_plans(records):
    """A line for what came before the plans, where that was recorded: nearly all of it profiling."""
    seconds = [run["secondsBeforePlan"] for record in records for run in prediction_records.counted_runs(record)
               if "secondsBeforePlan" in run]
    return [f"before the plan: median {statistics.median(seconds):.1f} s, at most {max(seconds):.1f} s of "
            f"{len(seconds)} runs"] if seconds else []


def phase_summaries(errors):
    """A line for each phase of some plans, and one for what their own estimates said early of what was left."""
    def beside(spreads):
        return f"; repeats differ by {statistics.median(spreads):.1%}, at most {max(spreads):.1%}"

    lines = []
    for name, _ in prediction_records.TERMS:
        those = [of for of in errors if name in of.phases]
        if those:
            lines.append(summary(f"{SHORT[name]}, where it is at least {prediction_records.LEAST_PHASE:.0%} of the run",
                                 [of.phases[name] for of in those]) + beside([of.phase_spreads[name] for of in those]))
    left = [of for of in errors if of.left is not None]
    return lines + ([summary(f"estimated after {prediction_records.ESTIMATED_FROM:.0%} of the iterations of what was "
                             "left", [of.left for of in left]) + beside([of.left_spread for of in left])]
                    if left else [])


def ways_of(lambdadnn, records):
    """Of each configuration that was run in every way of exchange: its name, the way that is predicted fastest from
    one profile, the one that was, and how much longer the former took."""
    by_name = {record["name"]: record for record in records}
    rows = []
    for configuration in sorted({name.removesuffix("-" + "-".join(prediction_records.WAYS[0])) for name in by_name}):
        those = {way: by_name.get(prediction_records.name_of_way(configuration, *way))
                 for way in prediction_records.WAYS}
        if None in those.values():
            continue
        profile = prediction_records.counted_runs(those[prediction_records.WAYS[0]])[0]["profile"]
        predicted = {way: prediction_records.predict(lambdadnn, record,
                                                     {**record["runs"][0], "profile": profile}).seconds
                     for way, record in those.items()}
        actual = {way: statistics.median(run["seconds"] for run in prediction_records.counted_runs(record))
                  for way, record in those.items()}
        chosen, fastest = min(predicted, key=predicted.get), min(actual, key=actual.get)
        rows.append((configuration, chosen, fastest, actual[chosen] / actual[fastest] - 1))
    return rows


def choices(rows):
    """What the rows of ways_of tell."""
    if not rows:
        return []
    width = max(len(configuration) for configuration, *_ in rows)
    lines = ["", f"{'':{width}}  predicted fastest, and fastest:"]
    lines += [f"{configuration:{width}}  {' '.join(chosen)}, {' '.join(fastest)}: {slower:+.1%}"
              for configuration, chosen, fastest, slower in rows]
    agree = sum(chosen == fastest for _, chosen, fastest, _ in rows)
    return [*lines, f"the fastest of four ways is the one predicted in {agree} of {len(rows)}, the one predicted at "
                    f"most {max(slower for *_, slower in rows):.1%} slower"]


def replay(lambdadnn, folder):
    """The table, a line a plan, its sums, and how well ways of exchange are told apart."""
    records = prediction_records.load(folder)
    if not records:
        return [f"no records in {folder}; tests/prediction/record.py makes them"]
    width = max(len(record["name"]) for record in records)
    lines = [f"{'':{width}}  runs {'spread':>7} {'all':>8}"
             + "".join(f"{SHORT[name]:>9}" for name, _ in prediction_records.TERMS)]
    sums = []
    for place, those in prediction_records.by_place(records):
        by_kind, below, each = {False: [], True: []}, {False: [], True: []}, []
        for record in those:
            errors = prediction_records.errors_of(lambdadnn, record)
            each.append(errors)
            by_kind[record["heldOut"]].append(errors.total)
            below[record["heldOut"]] += errors.below
            quiet = sum(not run["disturbed"] for run in record["runs"])
            spread = prediction_records.spread_of(record)
            lines.append(f"{record['name']:{width}} {quiet:>3}/{len(record['runs'])} {spread:>7.1%} "
                         f"{errors.total:>+8.1%}"
                         + "".join(f"{errors.terms[name]:>+9.1%}" for name, _ in prediction_records.TERMS)
                         + ("  held out" if record["heldOut"] else ""))
        spreads = [prediction_records.spread_of(record) for record in those]
        rows = [(record["name"], errors.total, spread)
                for record, errors, spread in zip(those, each, spreads, strict=True)]
        costs = [errors.cost for errors in each if errors.cost is not None]
        following = [prediction_records.next_error_of(lambdadnn, record) for record in those]
        sums += ["", *([f"on a {place}:"] if place != prediction_records.MACHINE else []),
                 summary("all", by_kind[False] + by_kind[True]), summary("fitted", by_kind[False]),
                 summary("held out", by_kind[True]), beyond(rows), *([summary("cost", costs)] if costs else []),
                 coverage("all", below[False] + below[True]), coverage("fitted", below[False]),
                 coverage("held out", below[True]), *phase_summaries(each), *before_plans(those),
                 f"repeats of one plan differ by: median {statistics.median(spreads):.1%}, worst {max(spreads):.1%}",
                 summary("the next run, by what one run has shown", [error for error in following
                                                                     if error is not None])]
    return lines + sums + choices(ways_of(lambdadnn, records))


def plot(lambdadnn, folder, file):
    """Draws all runs that count, each with a line up to its p90."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise SystemExit("error: --plot draws with Matplotlib, which is not installed; install python3-matplotlib"
                         ) from None
    pyplot.rcParams.update({"svg.hashsalt": "lambdadnn", "svg.fonttype": "none", "font.family": "sans-serif"})
    figure, axes = pyplot.subplots(figsize=(6, 6), layout="constrained")
    seconds = []
    for place, records in prediction_records.by_place(prediction_records.load(folder)):
        for held_out, label, colour in ((False, "fitted", "#1f6feb"), (True, "held out", "#d1570f")):
            runs = [(run["seconds"], *prediction_records.predict(lambdadnn, record, run)[:2])
                    for record in records if record["heldOut"] == held_out
                    for run in prediction_records.counted_runs(record)]
            if not runs:
                continue
            actual, p50, p90 = zip(*runs, strict=True)
            seconds += actual + p50
            axes.vlines(actual, p50, p90, color=colour, linewidth=0.8, alpha=0.4)
            axes.scatter(actual, p50, s=16, marker=MARKERS[place], color=colour, zorder=3,
                         label=f"{place}, {label}: {len(runs)} runs")
    ends = (min(seconds) / 1.2, max(seconds) * 1.2)
    axes.plot(ends, ends, color="#666666", linewidth=0.8, zorder=1)
    axes.fill_between(ends, [0.9 * end for end in ends], [1.1 * end for end in ends], color="#666666", alpha=0.12,
                      linewidth=0, label="within 10 %")
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal", xlabel="actual seconds",
             ylabel="predicted seconds: point p50, line to p90")
    ticks = [each for each in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500) if ends[0] < each < ends[1]]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)
    axes.legend(loc="upper left", frameon=False)
    figure.savefig(file, metadata={"Date": None, "Creator": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=prediction_records.ROOT / "build/release/bin")
    parser.add_argument("--records", type=pathlib.Path, default=prediction_records.RECORDS)
    parser.add_argument("--plot", type=pathlib.Path, help="also draw the runs into this file (.svg, .png)")
    options = parser.parse_args()
    print("\n".join(replay(options.bin / "lambdadnn", options.records)))
    if options.plot is not None:
        plot(options.bin / "lambdadnn", options.records, options.plot)


if __name__ == "__main__":
    main()

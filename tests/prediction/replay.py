#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays recorded runs: what the model predicts of each, against what it took. Needs no machine to itself and
takes seconds.

    tests/prediction/replay.py [--bin build/release/bin] [--records tests/prediction/records]

Errors in all are predicted / actual - 1; those of the terms are parts of the actual time in all.
"""
import argparse
import pathlib
import statistics

import prediction_records

SHORT = {"coldStartSeconds": "start", "loadSeconds": "load", "computeSeconds": "compute",
         "communicationSeconds": "comm", "evaluationSeconds": "eval", "checkpointSeconds": "ckpt",
         "sliceOverheadSeconds": "slices", "releaseSeconds": "release"}


def summary(name, errors):
    """Median and worst of the absolute errors of some plans."""
    if not errors:
        return f"{name}: no plan"
    return (f"{name}: median {statistics.median(map(abs, errors)):.1%}, "
            f"worst {max(errors, key=abs):+.1%} of {len(errors)} plans")


def coverage(name, below):
    """How many of some runs stayed below their p50 and their p90."""
    if not below:
        return f"{name}: no run"
    shares = [statistics.mean(each) for each in zip(*below, strict=True)]
    return f"{name}: {shares[0]:.0%} of {len(below)} runs below p50, {shares[1]:.0%} below p90"


def replay(lambdadnn, folder):
    """The table, a line a plan, and its sums."""
    records = prediction_records.load(folder)
    if not records:
        return [f"no records in {folder}; tests/prediction/record.py makes them"]
    width = max(len(record["name"]) for record in records)
    lines = [f"{'':{width}}  runs {'spread':>7} {'all':>8}"
             + "".join(f"{SHORT[name]:>9}" for name, _ in prediction_records.TERMS)]
    by_kind, below = {False: [], True: []}, {False: [], True: []}
    for record in records:
        total, terms, covered = prediction_records.errors_of(lambdadnn, record)
        by_kind[record["heldOut"]].append(total)
        below[record["heldOut"]] += covered
        quiet = sum(not run["disturbed"] for run in record["runs"])
        spread = prediction_records.spread_of(record)
        lines.append(f"{record['name']:{width}} {quiet:>3}/{len(record['runs'])} {spread:>7.1%} {total:>+8.1%}"
                     + "".join(f"{terms[name]:>+9.1%}" for name, _ in prediction_records.TERMS)
                     + ("  held out" if record["heldOut"] else ""))
    spreads = [prediction_records.spread_of(record) for record in records]
    return [*lines, "", summary("all", by_kind[False] + by_kind[True]), summary("fitted", by_kind[False]),
            summary("held out", by_kind[True]),
            coverage("all", below[False] + below[True]), coverage("fitted", below[False]),
            coverage("held out", below[True]),
            f"repeats of one plan differ by: median {statistics.median(spreads):.1%}, worst {max(spreads):.1%}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=prediction_records.ROOT / "build/release/bin")
    parser.add_argument("--records", type=pathlib.Path, default=prediction_records.RECORDS)
    options = parser.parse_args()
    print("\n".join(replay(options.bin / "lambdadnn", options.records)))


if __name__ == "__main__":
    main()

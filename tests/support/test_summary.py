#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/test.sh counts of one run of run_ctest.py.

    test_summary.py RESULTS.json TIER TIMES

Prints how many passed, failed, were skipped, were cached (of those that passed) and did not end; then a
line for everything that did not run. Adds the seconds of each test to the file TIMES.
"""
import json
import sys


def main():
    results, tier, times = sys.argv[1:]
    with open(results) as file:
        run = json.load(file)
    print(run["passed"], len(run["failed"]), run["skipped"], run["cached"], len(run["missing"]))
    for name in run["missing"]:
        print(f"{name} did not end")
    for line in [*run["notes"], *run["left_out"]]:
        print(line)
    with open(times, "a") as file:
        for name, seconds in run["seconds"].items():
            file.write(f"{seconds:8.1f} {tier:12} {name}\n")


if __name__ == "__main__":
    main()

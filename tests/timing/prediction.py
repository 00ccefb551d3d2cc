# SPDX-License-Identifier: Apache-2.0
"""How far predicted time may be from actual time, and how it is told."""
import statistics

TOLERANCE = 0.15  # of the median over runs


def error_of(report, what):
    """Of one run, told as `what`: |predicted / actual - 1|, both without profiling, which is over when the
    prediction is made."""
    plan, predicted, actual = report["plan"], report["predicted"], report["actual"]["seconds"]
    profiling = predicted["profilingSeconds"]
    error = (predicted["seconds"] - profiling) / (actual - profiling) - 1
    print(f"{what}: {plan['functions']} x {plan['memory']}, "
          f"predicted {predicted['seconds']:.1f} s, actual {actual:.1f} s "
          f"({error:+.1%}; {profiling:.1f} s of both are profiling; residual "
          f"{float(report['profile'].get('residual', 0)):.1%})", flush=True)
    return abs(error)


def check(test, name, errors):
    """Fails the test when their median is beyond the tolerance."""
    median = statistics.median(errors)
    print(f"{name}: median error {median:.1%} of {len(errors)} runs", flush=True)
    test.assertLessEqual(median, TOLERANCE, f"{name}: predicted time is off by {median:.1%}")

# SPDX-License-Identifier: Apache-2.0
"""How far predicted time may be from actual time, and how it is told."""
import statistics

TOLERANCE = 0.15  # of the median over runs


def error_of(report, what):
    """Of one run, told as `what`: |predicted / actual - 1|, both without what was over when the prediction
    was made, profiling above all."""
    plan, predicted, actual = report["plan"], report["predicted"], report["actual"]["seconds"]
    before = report["beforePlan"]["seconds"]
    error = (predicted["seconds"] - before) / (actual - before) - 1
    print(f"{what}: {plan['functions']} x {plan['memory']}, "
          f"predicted {predicted['seconds']:.1f} s, actual {actual:.1f} s "
          f"({error:+.1%}; {before:.1f} s of both were before the plan; residual "
          f"{float(report['profile'].get('residual', 0)):.1%})", flush=True)
    return abs(error)


def check(test, name, errors):
    """Fails the test when their median is beyond the tolerance."""
    median = statistics.median(errors)
    print(f"{name}: median error {median:.1%} of {len(errors)} runs", flush=True)
    test.assertLessEqual(median, TOLERANCE, f"{name}: predicted time is off by {median:.1%}")

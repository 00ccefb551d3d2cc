# SPDX-License-Identifier: Apache-2.0
"""Memory as statuses and reports say it."""


def mebibytes(quantity):
    """Of "1728Mi", which is how the product writes a function's memory."""
    assert quantity.endswith("Mi"), quantity
    return int(quantity.removesuffix("Mi"))

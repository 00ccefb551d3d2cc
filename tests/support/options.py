# SPDX-License-Identifier: Apache-2.0
"""What the command line of a run of the tests says (tests/conftest.py), for tests and what helps them."""
import argparse

import turns

OPTIONS = argparse.Namespace()


def shared(items):
    """Those of this run's share (--share), at least one if there is any."""
    which, parts = turns.share(OPTIONS.share)
    return items[which % max(1, len(items))::parts]

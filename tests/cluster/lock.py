# SPDX-License-Identifier: Apache-2.0
"""One command at a time changes a cluster; who waits is told whom for."""
import contextlib
import datetime
import fcntl
import os
import time

from settings import ClusterError, log

WAIT_SECONDS = 900


@contextlib.contextmanager
def held(config, what):
    """Holds the lock beside the run folder while the block runs. The file stays: deleting it would
    let two hold it."""
    path = f"{config.run}.lock"
    with open(path, "a+") as file:
        deadline = time.monotonic() + WAIT_SECONDS
        told = None
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                file.seek(0)
                holder = file.read().strip() or "somebody"
                if holder != told:
                    log(f"waiting for the cluster at {config.run}, held by {holder}")
                    told = holder
                if time.monotonic() > deadline:
                    raise ClusterError(f"the cluster at {config.run} is held by {holder} since more "
                                       f"than {WAIT_SECONDS} s; see what that process does") from None
                time.sleep(0.2)
        os.ftruncate(file.fileno(), 0)
        now = datetime.datetime.now().strftime("%H:%M:%S")
        file.write(f"process {os.getpid()} (cluster.sh {what}) since {now}\n")
        file.flush()
        try:
            yield
        finally:
            os.ftruncate(file.fileno(), 0)

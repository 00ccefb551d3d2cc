#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the exchange of an iteration through MinIO beside the two patterns of LambdaML (Jiang et al., SIGMOD 2021).

    /usr/bin/python3 tests/bench/lambdaml_python.py [build/release/bin/exchange_bench]

AllReduce: each worker puts its gradient, the first one lists until all are there, gets and adds them up and puts the
sum, which the others ask for until it is there. ScatterReduce: the same for one part of the gradient by each worker.
As published they are Python with boto3, and what is no longer needed is deleted; they sleep between questions, which
these do not. Ours: workers that serve, through the same kind of store, one shard, and as many as workers, told by
doorbells. Rows are measured in turns; medians are printed. Workers of LambdaML are processes; CPU seconds are of all
workers, and of the store. With the store on the same cores no exchange of the same objects takes less than its CPU
time over their number, whatever the workers do: the line below each row says how many times as fast ours
is, and how many times as fast it could be at most.
"""
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import time

import boto3
import botocore.config
import numpy

sys.path.extend([str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("integration", "support")])
import s3_servers

GRID = ((1, 2), (1, 4), (1, 8), (10, 2), (10, 4))  # MB, workers
REPEATS = 3
ITERATIONS = 5


class Store:
    """What LambdaML's workers ask a bucket for; counts the requests."""

    def __init__(self, url):
        self.requests = 0
        self.client = boto3.client(
            "s3", endpoint_url=url, region_name=s3_servers.REGION, aws_access_key_id=s3_servers.ACCESS_KEY,
            aws_secret_access_key=s3_servers.SECRET_KEY,
            config=botocore.config.Config(s3={"addressing_style": "path"}))

    def put(self, key, vector):
        self.requests += 1
        self.client.put_object(Bucket=s3_servers.BUCKET, Key=key, Body=vector.tobytes())

    def get(self, key):
        self.requests += 1
        body = self.client.get_object(Bucket=s3_servers.BUCKET, Key=key)["Body"].read()
        return numpy.frombuffer(body, dtype=numpy.float32)

    def wait_for(self, key):
        while True:
            try:
                return self.get(key)
            except self.client.exceptions.NoSuchKey:
                pass

    def names(self, prefix):
        self.requests += 1
        listed = self.client.list_objects_v2(Bucket=s3_servers.BUCKET, Prefix=prefix)
        return [entry["Key"] for entry in listed.get("Contents", [])]

    def delete(self, keys):
        self.requests += 1
        self.client.delete_objects(Bucket=s3_servers.BUCKET, Delete={"Objects": [{"Key": key} for key in keys]})

    def sum_of(self, prefix, own, others):
        """Of one's own vector and those that the others put below the prefix, which go then."""
        total, done = own.copy(), set()
        while len(done) < others:
            for key in self.names(prefix):
                if key not in done:
                    total += self.get(key)
                    done.add(key)
        if done:
            self.delete(sorted(done))
        return total


def all_reduce(store, vector, rank, workers, iteration):
    if rank > 0:
        store.put(f"{iteration}/parts/{rank}", vector)
        return store.wait_for(f"{iteration}/sum")
    total = store.sum_of(f"{iteration}/parts/", vector, workers - 1)
    store.put(f"{iteration}/sum", total)
    return total


def scatter_reduce(store, vector, rank, workers, iteration):
    parts = numpy.array_split(vector, workers)
    for other in range(workers):
        if other != rank:
            store.put(f"{iteration}/{other}/parts/{rank}", parts[other])
    parts[rank] = store.sum_of(f"{iteration}/{rank}/parts/", parts[rank], workers - 1)
    store.put(f"{iteration}/{rank}/sum", parts[rank])
    for other in range(workers):
        if other != rank:
            parts[other] = store.wait_for(f"{iteration}/{other}/sum")
    return numpy.concatenate(parts)


def work(pattern, url, rank, workers, megabytes, barrier, told):
    store = Store(url)
    vector = numpy.full(megabytes * 250_000, rank + 1, dtype=numpy.float32)
    pattern(store, vector, rank, workers, "warm")
    barrier.wait()
    store.requests, begin, cpu = 0, time.perf_counter(), time.process_time()
    for iteration in range(ITERATIONS):
        total = pattern(store, vector, rank, workers, iteration)
    seconds = (time.perf_counter() - begin) / ITERATIONS
    cpu = (time.process_time() - cpu) / ITERATIONS
    if total[0] != workers * (workers + 1) / 2 or total[-1] != total[0]:
        raise RuntimeError(f"wrong sum {total[0]}")
    told.put((seconds, cpu, store.requests / ITERATIONS))


def cpu_seconds_of(pid):
    # After the name in brackets; user and system time are fields 14 and 15 of proc(5).
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def lambdaml(pattern, workers, megabytes):
    """Seconds of an iteration; CPU seconds of all workers and of the store; requests."""
    server = s3_servers.RealServer("minio")
    try:
        url = f"http://{server.host}:{server.port}"
        barrier, told = multiprocessing.Barrier(workers + 1), multiprocessing.Queue()
        processes = [multiprocessing.Process(target=work, args=(pattern, url, rank, workers, megabytes, barrier,
                                                                told)) for rank in range(workers)]
        for process in processes:
            process.start()
        barrier.wait()
        store_cpu = cpu_seconds_of(server.process.pid)
        rows = [told.get(timeout=300) for _ in processes]
        store_cpu = (cpu_seconds_of(server.process.pid) - store_cpu) / ITERATIONS
        for process in processes:
            process.join()
        seconds, cpu, requests = zip(*rows, strict=True)
        return statistics.mean(seconds), sum(cpu), store_cpu, sum(requests)
    finally:
        server.close()


def ours(program, workers, megabytes, shards):
    """The same of the functions' own code."""
    done = subprocess.run([program, str(workers), str(megabytes), str(shards)], check=True, capture_output=True,
                          text=True)
    return tuple(map(float, done.stdout.split()))


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else str(s3_servers.ROOT / "build/release/bin/exchange_bench")
    print(" MB |  n | what           |    ms | CPU ms | of MinIO | requests | CPU ms a request")
    for megabytes, workers in GRID:
        ways = {"AllReduce": lambda: lambdaml(all_reduce, workers, megabytes),
                "ScatterReduce": lambda: lambdaml(scatter_reduce, workers, megabytes),
                "ours, K = 1": lambda: ours(program, workers, megabytes, 1),
                "ours, K = n": lambda: ours(program, workers, megabytes, workers)}
        rows = {name: [] for name in ways}
        for _ in range(REPEATS):
            for name, measure in ways.items():
                rows[name].append(measure())
        medians = {name: [statistics.median(column) for column in zip(*of, strict=True)] for name, of in rows.items()}
        for name, (seconds, cpu, store_cpu, requests) in medians.items():
            print(f"{megabytes:3} | {workers:2} | {name:14} | {seconds * 1e3:5.0f} | {cpu * 1e3:6.0f} | "
                  f"{store_cpu * 1e3:8.0f} | {requests:8.0f} | {cpu * 1e3 / requests:6.2f}", flush=True)
        theirs = min(medians[name][0] for name in ("AllReduce", "ScatterReduce"))
        best = min((medians[name] for name in ("ours, K = 1", "ours, K = n")), key=lambda row: row[0])
        least = best[2] / os.cpu_count()
        print(f"{megabytes:3} | {workers:2} | the faster of each: {theirs / best[0]:.1f} times as fast, "
              f"of at most {theirs / least:.1f}", flush=True)


if __name__ == "__main__":
    main()

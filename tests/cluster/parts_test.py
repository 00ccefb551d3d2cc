# SPDX-License-Identifier: Apache-2.0
"""What of the test cluster can be tested without root and without a cluster: the stand-in ingress,
the images, the sizes of nodes, daemons' records, the lock."""
import asyncio
import fcntl
import io
import json
import os
import pathlib
import re
import subprocess
import tarfile
import tempfile
import types
import unittest
from unittest import mock

import chaos_test
import images
import ingress
import lock
import nodes
import openfaas_chaos_test
import processes
import settings

CLASS = "test.class"


def kingress(name, host, service, port, generation=1, appended=None):
    return {
        "metadata": {"name": name, "namespace": "default", "generation": generation,
                     "annotations": {"networking.knative.dev/ingress.class": CLASS}},
        "spec": {"rules": [{"hosts": [host], "http": {"paths": [
            {"splits": [{"serviceNamespace": "default", "serviceName": service,
                         "servicePort": port, "percent": 100, "appendHeaders": appended or {}}]}
        ]}}]}}


class RowsOfChaos(unittest.TestCase):
    def test_each_is_held_to_what_the_figures_say(self):
        recovery = (settings.ROOT / "docs/benchmarks.md").read_text().split("Recovery on a real cluster", 1)[1]
        on_knative, behind_a_gateway = recovery.split("The images", 1)[0].split("behind a real gateway", 1)
        for case, figures in ((chaos_test.Chaos, on_knative),
                              (openfaas_chaos_test.OpenFaasChaos, behind_a_gateway)):
            rows = {name.removeprefix("test_") for name in dir(case) if name.startswith("test_")}
            self.assertEqual(rows, set(case.RECOVERY))
            for row, seconds in case.RECOVERY.items():
                with self.subTest(row):
                    if seconds is not None:
                        self.assertRegex(figures, rf"(?<![\d.]){re.escape(str(seconds))}(?![\d.])")


class FakeApi:
    """Ingresses and services as an API server lists them; remembers what was reported."""

    def __init__(self, ingresses, services):
        self.ingresses, self.services, self.reported = ingresses, services, []

    def call(self, method, path, body=None, content_type=None):
        if method == "PATCH":
            self.reported.append(path.split("/")[-2])
            return 200, {}
        if path.endswith("/ingresses"):
            return 200, {"items": self.ingresses}
        return 200, {"items": [{"metadata": {"namespace": "default", "name": name},
                                "spec": {"clusterIP": address}}
                               for name, address in self.services.items()]}


class Ingress(unittest.TestCase):
    def router(self, ingresses, services):
        router = ingress.Router(FakeApi(ingresses, services), CLASS, "balancer.test")
        router.sync()
        return router

    def test_ready_only_when_its_service_has_an_address(self):
        router = self.router([kingress("a", "a.test", "svc", 80), kingress("b", "b.test", "no", 80)],
                             {"svc": "127.0.0.1"})
        self.assertEqual(["a"], router.api.reported)

    def test_other_classes_are_left_alone(self):
        other = kingress("a", "a.test", "svc", 80)
        other["metadata"]["annotations"] = {"networking.knative.dev/ingress.class": "other"}
        router = self.router([other], {"svc": "127.0.0.1"})
        self.assertEqual(([], {}), (router.api.reported, router.routes))

    def test_reported_again_after_a_change_only(self):
        item = kingress("a", "a.test", "svc", 80)
        item["status"] = {"observedGeneration": 1,
                          "conditions": [{"type": "Ready", "status": "True"}]}
        self.assertEqual([], self.router([item], {"svc": "127.0.0.1"}).api.reported)
        item["metadata"]["generation"] = 2
        self.assertEqual(["a"], self.router([item], {"svc": "127.0.0.1"}).api.reported)

    def test_appended_headers_replace_those_of_the_client(self):
        first, fields, host = ingress.parse_head(
            b"POST /x HTTP/1.1\r\nhost: a.test:80\r\nRevision: forged\r\nConnection: keep-alive\r\n\r\n")
        self.assertEqual("a.test", host)
        head = ingress.rewrite_head(first, fields, host, {}, {"appendHeaders": {"revision": "r1"}})
        self.assertEqual(b"POST /x HTTP/1.1\r\nhost: a.test:80\r\nrevision: r1\r\n"
                         b"Connection: close\r\n\r\n", head)

    def exchange(self, request, answer, service_port=None, host="a.test"):
        """What a client gets that sends `request` (bytes after the head line and Host), and what the
        service behind received."""
        received = bytearray()

        async def service(reader, writer):
            while not received.endswith(b"END"):
                received.extend(await reader.read(1 << 16))
            writer.write(answer)
            writer.close()

        async def run():
            behind = await asyncio.start_server(service, "127.0.0.1", 0)
            port = service_port or behind.sockets[0].getsockname()[1]
            router = self.router([kingress("a", "a.test", "svc", port)], {"svc": "127.0.0.1"})
            front = await asyncio.start_server(
                lambda reader, writer: ingress.serve(router, reader, writer), "127.0.0.1", 0)
            async with behind, front:
                reader, writer = await asyncio.open_connection(*front.sockets[0].getsockname())
                writer.write(b"POST / HTTP/1.1\r\nHost: " + host.encode() + b"\r\n" + request)
                result = await reader.read()
                writer.close()
            return result
        return asyncio.run(run()), bytes(received)

    def test_bodies_of_any_length_pass_as_they_are(self):
        body, answer = os.urandom(3 << 20) + b"END", b"HTTP/1.1 200 OK\r\n\r\n" + os.urandom(3 << 20)
        got, received = self.exchange(b"\r\n" + body, answer)
        self.assertTrue(got == answer)
        self.assertTrue(received.endswith(b"\r\n\r\n" + body))

    def test_unknown_host_is_not_found(self):
        got, received = self.exchange(b"\r\n", b"", host="b.test")
        self.assertTrue(got.startswith(b"HTTP/1.1 404 "))
        self.assertEqual(b"", received)

    def test_nobody_behind_is_unavailable(self):
        got, _ = self.exchange(b"\r\n", b"", service_port=1)
        self.assertTrue(got.startswith(b"HTTP/1.1 503 "))


class Images(unittest.TestCase):
    def test_same_program_gives_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "program")
            program.write_bytes(b"#!/bin/true\n")
            archives = []
            for name in ("one", "two"):
                images.write_archive(f"{folder}/{name}", "dev.local/x:1", program, "x")
                archives.append(pathlib.Path(folder, name).read_bytes())
            self.assertEqual(*archives)
            with tarfile.open(fileobj=io.BytesIO(archives[0])) as archive:
                manifest = json.load(archive.extractfile("manifest.json"))[0]
                layer = archive.extractfile(manifest["Layers"][0]).read()
                image = json.load(archive.extractfile(manifest["Config"]))
            self.assertEqual(["dev.local/x:1"], manifest["RepoTags"])
            self.assertEqual(images.USER, image["config"]["User"])
            with tarfile.open(fileobj=io.BytesIO(layer)) as files:
                self.assertEqual(b"#!/bin/true\n", files.extractfile("x").read())


class Sizes(unittest.TestCase):
    def test_nodes_together_offer_no_more_than_the_machine(self):
        for cores, memory_mib, count in ((1, 8192, 1), (2, 16001, 2), (3, 24107, 8)):
            with mock.patch.object(settings, "machine", lambda: (cores, memory_mib)):
                cpu, share_mib = settings.node_share(count)
                self.assertLessEqual(cpu * count, cores * 1000)
                self.assertLessEqual(share_mib * count, memory_mib - settings.RESERVED_MIB)
                config = settings.Settings("/tmp/x")
                kubelet = nodes._kubelet_settings(config, settings.Node(1), "/g", count)
                reserved = kubelet["systemReserved"]
                self.assertEqual(f"{cores * 1000 - cpu}m", reserved["cpu"])
                self.assertEqual(memory_mib - share_mib - settings.EVICTION_MIB,
                                 int(reserved["memory"].removesuffix("Mi")))

    def test_too_many_nodes_are_refused_with_the_way_out(self):
        with mock.patch.object(settings, "machine", lambda: (2, 6000)):
            with self.assertRaisesRegex(settings.ClusterError, "take fewer"):
                settings.node_share(3)

    def test_run_folder_that_is_too_long_for_sockets_is_refused(self):
        with self.assertRaisesRegex(settings.ClusterError, "at most 45 characters"):
            settings.Settings("/tmp/" + "x" * 41)


class Records(unittest.TestCase):
    def test_process_of_another_start_is_not_taken_for_the_daemon(self):
        with tempfile.TemporaryDirectory() as folder:
            config = types.SimpleNamespace(pids=pathlib.Path(folder), name="none")
            daemons = processes.Processes(config, network=None)
            started = processes.start_ticks(os.getpid())
            for ticks, pid in ((started, os.getpid()), (started - 1, None)):
                (config.pids / "part").write_text(json.dumps(
                    {"pid": os.getpid(), "started": ticks, "command": [], "namespace": 1}))
                self.assertEqual(pid, daemons.pid("part"))
            self.assertFalse(daemons.signal("part", 0))
            (config.pids / "part").write_text("cut sh")
            self.assertIsNone(daemons.pid("part"))

    def test_dead_child_that_nobody_waited_for_is_gone(self):
        child = subprocess.Popen(["true"])
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        self.assertIsNone(processes.start_ticks(child.pid))
        child.wait()


class Lock(unittest.TestCase):
    def test_waiter_is_told_for_whom_and_gives_up(self):
        with tempfile.TemporaryDirectory() as folder:
            config = types.SimpleNamespace(run=f"{folder}/run")
            with lock.held(config, "up"):
                self.assertIn("(cluster.sh up)", pathlib.Path(f"{folder}/run.lock").read_text())
                with mock.patch.object(lock, "WAIT_SECONDS", 0), mock.patch.object(
                        lock, "log") as told:
                    with self.assertRaisesRegex(settings.ClusterError, "cluster.sh up"):
                        with lock.held(config, "down"):
                            pass
                    self.assertIn(f"process {os.getpid()}", told.call_args[0][0])
            with open(f"{folder}/run.lock") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.assertEqual("", file.read())

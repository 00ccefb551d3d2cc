#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Object stores that mean harm, each at a port of its own, for tests of those who ask them.

    hostile_store.py COUNT [ADDRESS]     at an address of this machine, loopback unless told

Prints a line of JSON, [[mode, port], ...], when all of them listen, and ends with its standard input.
"""
import asyncio
import json
import os
import sys

BLOCK = b"x" * 65536
HUGE = b"Content-Length: 1099511627776\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
CHUNK = b"10000\r\n" + BLOCK + b"\r\n"
PAGE = (b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t"
        b"</NextContinuationToken></ListBucketResult>")


async def drip(writer, head):
    writer.write(head)
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(1)


async def flood(writer, head, piece):
    writer.write(head)
    while True:
        writer.write(piece)
        await writer.drain()


async def drips_heads(writer):
    await drip(writer, b"HTTP/1.1 200 OK\r\nX-Long: ")


async def drips_bodies(writer):
    await drip(writer, b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n")


async def floods_by_length(writer):
    await flood(writer, b"HTTP/1.1 200 OK\r\n" + HUGE, BLOCK)


async def floods_by_chunks(writer):
    await flood(writer, b"HTTP/1.1 200 OK\r\n" + CHUNKED, CHUNK)


async def refuses_for_ever(writer):
    await flood(writer, b"HTTP/1.1 503 Busy\r\n" + CHUNKED, CHUNK)


async def hangs(_):
    await asyncio.sleep(3600)


async def lists_for_ever(writer):
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(PAGE) + PAGE)
    await writer.drain()


MODES = (drips_heads, drips_bodies, floods_by_length, floods_by_chunks, refuses_for_ever, hangs,
         lists_for_ever)


async def serve(mode, reader, writer):
    """Requests without a body, which all are that a store is asked first."""
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            await mode(writer)
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass
    finally:
        writer.close()


async def main(count, address="127.0.0.1"):
    servers = []
    for number in range(count):
        mode = MODES[number % len(MODES)]
        server = await asyncio.start_server(
            lambda reader, writer, mode=mode: serve(mode, reader, writer), address, 0)
        servers.append((mode.__name__, server))
    print(json.dumps([[name, server.sockets[0].getsockname()[1]] for name, server in servers]),
          flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)  # whatever is still being flooded


if __name__ == "__main__":
    try:
        asyncio.run(main(int(sys.argv[1]), *sys.argv[2:]))
    except KeyboardInterrupt:
        pass

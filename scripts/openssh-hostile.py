#!/usr/bin/python3
"""An authenticated SSH client that turns hostile.

usage: openssh-hostile.py PORT KEY METHOD ATTACK [MEGABYTES [LIMIT_KB]]

Logs in on 127.0.0.1 with compression METHOD (zlib@openssh.com or
zstd@sshflow.org), finds the server process of the session, sends one packet and
prints what came of it as NAME=VALUE lines: wire (bytes of the packet's
payload), closed (1 or 0), seconds (until the connection was closed, or until
the server answered the next request), cpu (seconds that the server process
took) and extra_kb (by how much its peak memory was seen to rise). With LIMIT_KB the
server process cannot get more than that on top of what it has.

ATTACK: bomb (an SSH_MSG_IGNORE of MEGABYTES zeroes, compressed), garbage (bytes
that are no compressed data), empty (compressed data that decode to nothing).
"""

import asyncio
import os
import resource
import sys
import time
import zlib

import asyncssh
import asyncssh.compression
import zstandard

MSG_IGNORE = 2
ZSTD = "zstd@sshflow.org"


class Zlib(asyncssh.compression.Compressor):
    """The client's zlib stream, and the packets that abuse it."""

    def __init__(self):
        self.stream = zlib.compressobj(9)
        self.instead = None

    def pack(self, pieces):
        out = [self.stream.compress(piece) for piece in pieces]
        return b"".join(out) + self.stream.flush(zlib.Z_SYNC_FLUSH)

    def compress(self, data):
        if self.instead is not None:
            data, self.instead = self.instead, None
            return data
        return self.pack([data])

    garbage = b"\xff" * 200
    empty = b"\x00\x00\x00\xff\xff"


class Zstd(Zlib):
    """The same for zstd: everything on stream 1 (doc/zstd-sshflow.md)."""

    def __init__(self):
        super().__init__()
        self.stream = zstandard.ZstdCompressor(
            level=3, write_content_size=False).compressobj()

    def pack(self, pieces):
        out = [self.stream.compress(piece) for piece in pieces]
        out.append(self.stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
        return b"\x01" + b"".join(out)

    garbage = b"\x01" + b"\xff" * 200
    empty = b"\x00"


class ZstdDecompressor(asyncssh.compression.Decompressor):
    """Reads what the server sends."""

    def __init__(self):
        self.streams = {}

    def feed(self, number, data):
        out = b""
        while data:
            stream = self.streams.get(number)
            if stream is None or stream.eof:
                stream = zstandard.ZstdDecompressor().decompressobj()
                self.streams[number] = stream
            out += stream.decompress(data)
            data = stream.unused_data if stream.eof else b""
        return out

    def decompress(self, data):
        tag, body = data[0], data[1:]
        if tag == 0:
            return body
        if tag <= 4:
            return self.feed(tag, body)
        return self.feed(tag - 4, (len(body) << 3).to_bytes(3, "little") + body)


def usage_of(pid):
    """CPU seconds and peak kB of a process."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    with open(f"/proc/{pid}/status") as status:
        peak = next(line for line in status if line.startswith("VmHWM"))
    return ((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
            int(peak.split()[1]))


def limit_memory(pid, more_kb):
    """Lets a process have only so much more memory than it has."""
    with open(f"/proc/{pid}/status") as status:
        size = next(line for line in status if line.startswith("VmSize"))
    limit = (int(size.split()[1]) + more_kb) * 1024
    resource.prlimit(pid, resource.RLIMIT_AS, (limit, limit))


async def watch(pid, last, done):
    """The last usage of a process that could be read before it went."""
    while not done.is_set():
        try:
            last = usage_of(pid)
        except (OSError, StopIteration):
            break
        await asyncio.sleep(0.002)
    return last


async def attack(port, key, method, kind, megabytes, limit_kb):
    conn = await asyncssh.connect(
        "127.0.0.1", port, username="root", client_keys=[key], known_hosts=None,
        config=None, agent_path=None, compression_algs=[method])
    shell = await conn.create_process("echo $PPID; exec sleep 300")
    pid = int(await shell.stdout.readline())
    compressor = conn._compressor
    if kind == "bomb":
        size = megabytes * 1000000
        header = bytes([MSG_IGNORE]) + size.to_bytes(4, "big")
        zeroes = [bytes(1000000)] * megabytes
        compressor.instead = compressor.pack([header] + zeroes)
    else:
        compressor.instead = getattr(compressor, kind)
    wire = len(compressor.instead)
    cpu, peak = usage_of(pid)
    done = asyncio.Event()
    if limit_kb:
        limit_memory(pid, limit_kb)
    watcher = asyncio.ensure_future(watch(pid, (cpu, peak), done))
    start = time.monotonic()
    conn.send_packet(MSG_IGNORE)
    closed = asyncio.ensure_future(conn.wait_closed())
    answer = asyncio.ensure_future(conn.run("true"))
    await asyncio.wait({closed, answer}, return_when=asyncio.FIRST_COMPLETED,
                       timeout=240)
    seconds = time.monotonic() - start
    answered = answer.done() and answer.exception() is None
    done.set()
    last_cpu, last_peak = await watcher
    print(f"wire={wire}", f"closed={int(not answered)}",
          f"seconds={seconds:.3f}", f"cpu={last_cpu - cpu:.2f}",
          f"extra_kb={last_peak - peak}", sep="\n", flush=True)
    os._exit(0)


def main():
    port, key, method, kind = sys.argv[1:5]
    megabytes, limit_kb = (int(arg) for arg in (sys.argv[5:] + ["0", "0"])[:2])
    algs = asyncssh.compression
    algs.register_compression_alg(ZSTD.encode(), Zstd, ZstdDecompressor, True, False)
    algs._cmp_compressors[b"zlib@openssh.com"] = Zlib
    asyncio.run(attack(int(port), key, method, kind, megabytes, limit_kb))


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""AsyncSSH for openssh-peers.

openssh-asyncssh.py server|download|upload ADDRESS PORT FOLDER

FOLDER holds key, authorized_keys and the data. The clients print the SHA-256
of what arrived.
"""

import asyncio
import hashlib
import sys

import asyncssh

MODE, ADDRESS, PORT, FOLDER = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]


async def pump(reader, writer):
    while block := await reader.read(1 << 16):
        writer.write(block)
        await writer.drain()
    writer.write_eof()


async def handle(process):
    child = await asyncio.create_subprocess_shell(
        process.command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    to_child = asyncio.create_task(pump(process.stdin, child.stdin))
    await pump(child.stdout, process.stdout)
    to_child.cancel()
    process.exit(await child.wait())


async def serve():
    await asyncssh.listen(
        ADDRESS, PORT, process_factory=handle, encoding=None,
        server_host_keys=[f"{FOLDER}/key"], authorized_client_keys=f"{FOLDER}/authorized_keys")
    await asyncio.Event().wait()


async def transfer():
    options = {"port": PORT, "known_hosts": None, "client_keys": [f"{FOLDER}/key"]}
    async with asyncssh.connect(ADDRESS, **options) as connection:
        if MODE == "upload":
            result = await connection.run("sha256sum", stdin=f"{FOLDER}/data", check=True,
                                          encoding=None)
            print(result.stdout.decode().split()[0])
            return
        digest = hashlib.sha256()
        async with connection.create_process(f"cat {FOLDER}/data", encoding=None) as process:
            while block := await process.stdout.read(1 << 16):
                digest.update(block)
        print(digest.hexdigest())


asyncio.run(serve() if MODE == "server" else transfer())

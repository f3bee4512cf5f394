#!/usr/bin/python3
"""An AsyncSSH server for libssh2-interop: libssh2-asyncssh.py KEYS-FOLDER."""

import asyncio
import logging
import os
import subprocess
import sys

import asyncssh

KEYS = sys.argv[1]
HOME = "/run/libssh2/home"


class Server(asyncssh.SSHServer):
    pass


async def handle(process):
    done = subprocess.Popen(
        process.command, shell=True, cwd=HOME, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    await process.redirect(stdin=done.stdin, stdout=done.stdout, stderr=done.stderr)
    await process.stdout.drain()
    await process.stderr.drain()
    process.exit(done.wait())
    await process.wait_closed()


class Files(asyncssh.SFTPServer):
    def __init__(self, channel):
        os.chdir(HOME)
        super().__init__(channel)


async def main():
    await asyncssh.listen(
        "127.0.0.1", 4711, server_factory=Server, process_factory=handle, encoding=None,
        server_host_keys=[f"{KEYS}/ssh_host_ed25519_key"],
        authorized_client_keys=f"{KEYS}/authorized_keys", sftp_factory=Files, allow_scp=True,
        compression_algs=["zlib@openssh.com", "none"], rekey_bytes=500000)
    await asyncio.Event().wait()


logging.basicConfig(level=logging.DEBUG)
asyncssh.set_debug_level(1)
asyncio.run(main())

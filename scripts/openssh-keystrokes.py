#!/usr/bin/python3
"""Types into a terminal session and looks at the lengths of what the client sends.

usage: openssh-keystrokes.py PORT SSH [OPTION…]

Runs SSH with the options and a terminal, through a proxy in front of the server
on PORT of 127.0.0.1. From when the terminal is ready until the last key the
proxy notes every piece that it reads from the client; two packets that come
together are one piece of twice the length. Prints how many pieces there were of
each length; fails unless all packets are of one length, but for those that several
keys share, and as many as the keys and the chaff that the client says it sent.

The first key and the first chaff may be longer on the zlib wire, because nothing
like them is in the history yet; they are printed and not judged.
"""

import collections
import os
import random
import re
import select
import socket
import subprocess
import sys
import threading
import time

KEYS = 100
READY = b"ready to type"


class Proxy:
    """Passes one connection on and notes the client's writes."""

    def __init__(self, port):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.target = port
        self.lengths = []
        self.noting = False
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        client, _ = self.listener.accept()
        server = socket.create_connection(("127.0.0.1", self.target))
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            for end in select.select([client, server], [], [])[0]:
                data = end.recv(1 << 16)
                if not data:
                    client.close()
                    server.close()
                    return
                if end is client and self.noting:
                    self.lengths.append(len(data))
                (server if end is client else client).sendall(data)


def main():
    port, ssh, options = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    proxy = Proxy(port)
    remote = f"stty raw -echo; printf '{READY.decode()}'; head -c {KEYS} >/dev/null; sleep 3"
    client = subprocess.Popen(
        [ssh, "-vvv", "-tt", "-o", f"Port={proxy.port}", *options, "127.0.0.1", remote],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    log = []
    reader = threading.Thread(target=lambda: log.append(client.stderr.read()))
    reader.start()
    seen = b""
    while READY not in seen:
        data = os.read(client.stdout.fileno(), 4096)
        if not data:
            break
        seen += data
    time.sleep(0.5)
    proxy.noting = True
    # Words and pauses: keys that pack well and keys that do not, and time in
    # which there is nothing but chaff.
    typed = random.Random(7)
    for i in range(KEYS):
        key = b"e" if i % 3 else bytes([typed.randrange(32, 127)])
        client.stdin.write(key)
        client.stdin.flush()
        time.sleep(typed.choice([0.06, 0.1, 0.3]))
    # The last chaff comes two seconds after the last key.
    time.sleep(2.5)
    proxy.noting = False
    client.stdin.close()
    client.wait(30)
    reader.join(30)
    text = log[0].decode(errors="replace")
    method = re.search(r"kex: client->server .* compression: (\S+)", text).group(1)
    cipher = re.search(r"kex: client->server cipher: (\S+)", text).group(1)
    chaff = sum(int(n) for n in re.findall(r"stopping: .*\((\d+) chaff packets sent\)", text))
    *first, others = *proxy.lengths[:2], proxy.lengths[2:]
    one = min(others)
    packets = 2 + sum(length // one for length in others)
    lengths = collections.Counter(others)
    print(
        f"{os.path.basename(os.path.dirname(os.path.dirname(ssh))):16} {method:17} {cipher:30}",
        f"{KEYS} keys, {chaff} chaff packets; bytes on the wire: first {first[0]} and {first[1]},",
        ", ".join(f"{count} of {length}" for length, count in sorted(lengths.items())),
    )
    # On a busy machine keys share a packet, which then may be longer.
    shared = chaff + KEYS - packets
    odd = sum(count for length, count in lengths.items() if length % one != 0)
    return chaff >= KEYS and -2 <= shared <= KEYS / 2 and odd <= max(shared, 0)


sys.exit(0 if main() else 1)

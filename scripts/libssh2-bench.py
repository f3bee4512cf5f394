"""Runs what libssh2-bench measures, and summarises it; see there."""

import argparse
import hashlib
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time

MB = 1000000
PORT = 2222
# Names of the transfers of part long: how they run, and MB for stock and patched.  What a
# round trip limits needs no more bytes to be measured.
LONG = {
    "tcp": ("tcp", 400, 0),
    "exec": ("exec", 400, 400),
    "scp": ("scp", 400, 400),
    "curl": ("curl", 40, 400),
    "libcurl 16 KiB": ("libcurl", 8, 400),
    "upload": ("put", 20, 20),
    "upload behind": ("behind", 0, 100),
}


class Bench:
    def __init__(self, args):
        self.args = args
        self.at = {"client": [], "server": []}
        self.host = "127.0.0.1"
        if args.link:
            lab, control = args.link
            self.host = "10.99.0.2"
            for end in self.at:
                self.at[end] = [lab, "link", "exec", control, end]
        self.server = []
        self.data = {}

    def file(self, mb):
        """A file of so many MB, and its hash."""
        size = max(int(mb * self.args.scale * MB), 1000)
        path = f"{self.args.work}/data-{size}"
        if path not in self.data:
            if not os.path.exists(path) or os.path.getsize(path) != size:
                with open(path, "wb") as out:
                    left = size
                    while left:
                        block = os.urandom(min(left, 1 << 20))
                        out.write(block)
                        left -= len(block)
            with open(path, "rb") as data:
                self.data[path] = _digest(data)
        return path, size, self.data[path]

    def start_server(self, sshd, port=PORT, options=()):
        work = self.args.work
        log = f"{work}/sshd-{port}.log"
        config = f"{work}/sshd-{port}.conf"
        with open(config, "w") as out:
            out.write("\n".join((
                f"Port {port}", f"ListenAddress {self.host}", "PidFile none", "StrictModes no",
                "UsePAM no", f"HostKey {work}/key", f"AuthorizedKeysFile {work}/key.pub",
                "PermitRootLogin yes", "Subsystem sftp internal-sftp", "MaxStartups 100",
                "PubkeyAcceptedAlgorithms +ssh-rsa", "HostKeyAlgorithms +ssh-rsa",
                *options)) + "\n")
        self.server.append(subprocess.Popen(
            self.at["server"] + [sshd, "-D", "-f", config, "-E", log]))
        self.wait_for(port)

    def start_tcp(self, path):
        code = ("import socket,sys\ns=socket.create_server((sys.argv[1],2223))\n"
                "while 1:\n c=s.accept()[0]\n c.sendfile(open(sys.argv[2],'rb'))\n c.close()")
        self.server.append(subprocess.Popen(
            self.at["server"] + [sys.executable, "-c", code, self.host, path]))
        time.sleep(1)

    def wait_for(self, port):
        code = "import socket,sys\nsocket.create_connection((sys.argv[1],int(sys.argv[2])),5)"
        for _ in range(50):
            if subprocess.run(self.at["client"] + [sys.executable, "-c", code, self.host,
                                                   str(port)], capture_output=True).returncode == 0:
                return
            time.sleep(0.1)
        sys.exit(f"nothing listens on port {port}")

    def client(self, library, command, stdin=None):
        env = dict(os.environ, LD_LIBRARY_PATH=os.environ[library.upper()])
        done = subprocess.run(self.at["client"] + command, env=env, stdin=stdin,
                              capture_output=True, text=True, timeout=900)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: {done.stderr.strip()} ({done.returncode})")
        return done.stdout.split()

    def transfer(self, how, library, mb, comp="", port=PORT):
        """Runs one transfer and checks what it moved. Returns bytes and seconds."""
        work = self.args.work
        path, size, digest = self.file(mb)
        copy = f"{work}/copy"
        url = f"sftp://root@{self.host}:{port}{path}"
        tool = [f"{work}/transfer"]
        ssh = [self.host, str(port), "root", f"{work}/key"]
        curl = ["curl", "-sS", "--insecure", "--key", f"{work}/key", "--pubkey",
                f"{work}/key.pub", "-w", "%{stderr}%{size_download} %{size_upload} "
                "%{time_total} %{time_appconnect}"]
        if comp:
            curl.append("--compressed-ssh")
        if how in ("curl", "curl-put"):
            env = dict(os.environ, LD_LIBRARY_PATH=os.environ[library.upper()])
            if how == "curl":
                command = curl + ["-o", copy, url]
            else:
                command = curl + ["-T", path, f"sftp://root@{self.host}:{port}{copy}"]
            done = subprocess.run(self.at["client"] + command, env=env, capture_output=True,
                                  text=True, timeout=900)
            if done.returncode:
                sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
            down, up, total, connected = done.stderr.split()
            moved, seconds = int(down) + int(up), float(total) - float(connected)
            with open(copy, "rb") as data:
                got = _digest(data)
        elif how == "libcurl":
            moved, seconds = self.client(library, [f"{work}/libcurl", url, f"{work}/key"])
            got = digest
        elif how in ("put", "behind"):
            behind = str(4 * 1024 * 1024) if how == "behind" else "0"
            with open(path, "rb") as data:
                moved, seconds = self.client(
                    library, tool + ["put"] + ssh + [copy, "65536", behind] +
                    ([comp] if comp else []), data)[:2]
            with open(copy, "rb") as data:
                got = _digest(data)
        else:
            if how == "tcp":
                ssh[1] = "2223"
            what = f"cat {path}" if how == "exec" else path
            moved, seconds, got = self.client(
                library, tool + [how] + ssh + [what, "65536", "0"] +
                ([comp] if comp else []))[:3]
        if int(moved) != size or got != digest:
            sys.exit(f"{how} with the {library} library: {moved} of {size} bytes, hash {got}")
        return size, float(seconds)

    def record(self, part, name, library, size, seconds, **more):
        line = dict(part=part, name=name, library=library, bytes=size, seconds=seconds, **more)
        with open(self.args.results, "a") as out:
            out.write(json.dumps(line) + "\n")
        print(f"{part:9} {name:24} {library:9} {size / MB:7.1f} MB  {seconds:8.3f} s  "
              f"{size / MB / seconds:8.2f} MB/s", flush=True)

    def long(self):
        self.start_server(os.environ["SSHD"])
        self.start_tcp(self.file(LONG["tcp"][1])[0])
        for _ in range(self.args.rounds):
            for name, (how, stock, patched) in LONG.items():
                if self.args.only and name not in self.args.only:
                    continue
                turns = [(lib, mb) for lib, mb in (("stock", stock), ("patched", patched)) if mb]
                random.shuffle(turns)
                for library, mb in turns:
                    size, seconds = self.transfer(how, library, mb)
                    self.record("long", name, "none" if how == "tcp" else library, size, seconds)

    def lan(self):
        self.start_server(os.environ["SSHD"])
        for name, how, mb in (("exec", "exec", 384), ("sftp get", "get", 256)):
            if self.args.only and name not in self.args.only:
                continue
            for _ in range(self.args.pairs):
                turn = time.time()
                runs = ["stock", "patched", "control"]
                random.shuffle(runs)
                for run in runs:
                    library = "stock" if run == "control" else run
                    size, seconds = self.transfer(how, library, mb)
                    self.record("lan", name, run, size, seconds, turn=turn)

    def compress(self):
        servers = [("stock", os.environ["SSHD"]), ("patched", os.environ["SSHD_PATCHED"])]
        for i, (_, sshd) in enumerate(servers):
            self.start_server(sshd, PORT + 10 + i, ["Compression yes"])
        for _ in range(self.args.rounds):
            for i, (server, _) in enumerate(servers):
                for how in ("curl-put", "curl"):
                    # plain: the patched library again, not compressed
                    runs = ["stock", "patched", "plain"]
                    random.shuffle(runs)
                    for run in runs:
                        library, comp = ("patched", "") if run == "plain" else (run, "yes")
                        size, seconds = self.transfer(how, library, 200, comp, PORT + 10 + i)
                        self.record("compress", f"{how}, {server} server", run, size, seconds)

    def stop(self):
        for server in self.server:
            server.terminate()
            server.wait()


def _digest(data):
    digest = hashlib.sha256()
    while block := data.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def _interval(logs, seed=1):
    """Geometric mean of ratios, and the 95 % percentile bootstrap interval of it."""
    pick = random.Random(seed)
    means = sorted(statistics.fmean(pick.choices(logs, k=len(logs))) for _ in range(4000))
    return tuple(math.exp(x) for x in (statistics.fmean(logs), means[100], means[3899]))


def summary(results):
    runs = {}
    with open(results) as lines:
        for line in map(json.loads, lines):
            runs.setdefault((line["part"], line["name"]), {}).setdefault(
                line["library"], []).append(line)
    medians = {}
    for (part, name), libraries in runs.items():
        for library, lines in sorted(libraries.items(), reverse=True):
            rates = sorted(x["bytes"] / MB / x["seconds"] for x in lines)
            medians[part, name, library] = statistics.median(rates)
            print(f"{part:9} {name:24} {library:9} {len(rates):4} runs, MB/s median "
                  f"{medians[part, name, library]:8.2f}, {rates[0]:.2f} to {rates[-1]:.2f}")
    tcp = medians.get(("long", "tcp", "none"))
    for (part, name), libraries in runs.items():
        stock, patched = (medians.get((part, name, x)) for x in ("stock", "patched"))
        if part == "lan":
            turns = {}
            for library, lines in libraries.items():
                for x in lines:
                    turns.setdefault(x["turn"], {})[library] = math.log(x["bytes"] / x["seconds"])
            turns = [x for x in turns.values() if len(x) == 3]
            for run in ("control", "patched"):
                mean, low, high = _interval([x[run] - x["stock"] for x in turns])
                print(f"lan {name}: {run} / stock {mean:.4f} ({low:.4f} to {high:.4f}), "
                      f"{len(turns)} pairs")
        elif stock and patched:
            print(f"{part} {name}: patched / stock {patched / stock:.2f}")
        if part == "compress" and patched:
            how, server = name.split(", ")
            plain = medians.get((part, name, "plain"))
            without = medians.get((part, f"{how}, stock server", "stock"))
            if plain:
                print(f"compress {name}: patched / not compressed {patched / plain:.2f}")
            if without and server == "patched server":
                print(f"compress {how}: both ends patched / both stock {patched / without:.2f}")
        if part == "long" and patched and tcp:
            print(f"long {name}: patched / plain TCP {patched / tcp:.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work")
    parser.add_argument("--results", required=True)
    parser.add_argument("--link", nargs=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=120)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--only", action="append")
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("part", nargs="?")
    args = parser.parse_args()
    if args.summary:
        return summary(args.results)
    for library in ("STOCK", "PATCHED"):
        # without it the loader would take the system's
        if not os.path.exists(f"{os.environ[library].split(':')[0]}/libssh2.so.1"):
            sys.exit(f"there is no libssh2 in {os.environ[library]}")
    bench = Bench(args)
    try:
        getattr(bench, args.part)()
    finally:
        bench.stop()


if __name__ == "__main__":
    main()

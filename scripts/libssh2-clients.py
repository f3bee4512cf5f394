"""Clones a repository through libgit2: libssh2-clients.py URL FOLDER KEY."""

import sys

import pygit2


class Callbacks(pygit2.RemoteCallbacks):
    def credentials(self, url, username_from_url, allowed_types):
        return pygit2.Keypair(username_from_url, sys.argv[3] + ".pub", sys.argv[3], "")

    def certificate_check(self, certificate, valid, host):
        return True


pygit2.clone_repository(sys.argv[1], sys.argv[2], callbacks=Callbacks())
with open("/proc/self/maps") as maps:
    libraries = {line.split()[-1] for line in maps if "libssh2.so" in line}
if not any("/target/" in name for name in libraries):
    sys.exit(f"libgit2 used {libraries}")

# sshflow: `make help` lists the commands; each sets up what it needs and says so.
SHELL = /bin/bash
PREFIX ?= /usr/local
OPENSSH_VERSION ?= 10.0p1
LIBSSH2_VERSION ?= 1.11.1
CARGO ?= cargo
# DESTDIR, LIBDIR, INCLUDEDIR, DATADIR, MANDIR, BUNDLED, CARGO_FLAGS and the rest
# go through the environment, whether they were given there or to make.
export DESTDIR PREFIX LIBDIR INCLUDEDIR DATADIR MANDIR BUNDLED CARGO CARGO_FLAGS
export OPENSSH_VERSION LIBSSH2_VERSION

.PHONY: all
all: ## the library, release build (BUNDLED=1: with zlib and zstd inside)
	@scripts/install-library build

.PHONY: install
install: all ## library, header, sshflow.pc, sshflow.m4, manual (DESTDIR, PREFIX, LIBDIR)
	@scripts/install-library install

.PHONY: uninstall
uninstall: ## remove what install put there
	@scripts/install-library uninstall

.PHONY: header
header: ## make include/sshflow.h again from src/capi, with the pinned cbindgen
	@scripts/header

.PHONY: check
check: ## every test; a summary at the end, logs in target/check
	@scripts/check

.PHONY: check-fast
check-fast: ## the tests that together take less than five minutes
	@scripts/check --fast

.PHONY: check-install
check-install: ## two ways of installing, two ways of linking the engines, two builds alike
	@scripts/check cargo-c origins reproducible

.PHONY: check-packages
check-packages: ## build the Debian and RPM packages, and ask lintian and rpmlint
	@scripts/check debian rpm

.PHONY: lint
lint: ## formatting, clippy, shellcheck, manual page
	@scripts/check fmt clippy shell man

.PHONY: check-autoconf
check-autoconf: ## configure autoconf/example in every way that sshflow.m4 supports
	@scripts/check-autoconf

.PHONY: clean
clean: ## remove everything that was built
	$(CARGO) clean

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

.PHONY: openssh
openssh: ## OpenSSH $(OPENSSH_VERSION) with the patches, below target/openssh
	@scripts/openssh-build $(OPENSSH_VERSION)

.PHONY: check-openssh
check-openssh: ## OpenSSH's own tests on every version: option off, on, compressed (an hour or two)
	@scripts/openssh-check

.PHONY: openssh-interop
openssh-interop: ## copies between builds with and without sshflow, compressed, with re-keys
	@scripts/openssh-interop

.PHONY: openssh-peers
openssh-peers: ## copies over a long path between patched OpenSSH and SSH that never heard of sshflow
	@scripts/openssh-peers

.PHONY: openssh-x11
openssh-x11: ## pictures through ssh -X over a long path, against stock (five minutes)
	@scripts/openssh-x11

.PHONY: openssh-buffers
openssh-buffers: ## what the two patches that need no sshflow do by themselves, with windows of 32 MiB (ten minutes)
	@scripts/openssh-buffers

.PHONY: openssh-hostile
openssh-hostile: ## decompression bombs against the patched sshd, and its sandbox
	@scripts/openssh-hostile

.PHONY: demo
demo: ## the main job: builds everything, runs real transfers over loopback, prints a table
	@scripts/demo

.PHONY: libssh2
libssh2: ## libssh2 $(LIBSSH2_VERSION) with the patches, below target/libssh2
	@scripts/libssh2-build $(LIBSSH2_VERSION)

.PHONY: check-libssh2
check-libssh2: ## libssh2's own tests and the new ones, patched, against an OpenSSH server
	@scripts/libssh2-check $(LIBSSH2_VERSION)

.PHONY: check-libssh2-all
check-libssh2-all: ## every version, both build systems, on and off, sanitizers, valgrind (an hour)
	@scripts/libssh2-check-all

.PHONY: bench
bench: ## measure everything (hours; goes on where it was broken off); BENCH='--group TEXT' for a part, BENCH=--plan for a list
	@scripts/bench full $(BENCH)

.PHONY: bench-quick
bench-quick: ## measure a little of everything (under five minutes)
	@scripts/bench quick $(BENCH)

.PHONY: check-lab
check-lab: ## the lab itself, in half a minute
	@scripts/check-lab

.PHONY: libssh2-interop
libssh2-interop: ## patched libssh2 and real clients against four servers, with re-keys, compared
	@scripts/libssh2-interop $(LIBSSH2_VERSION)

.PHONY: libssh2-bench
libssh2-bench: ## patched against stock libssh2: a long path, a LAN, compression (half an hour)
	@scripts/libssh2-bench long lan compress

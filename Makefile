# sshflow: `make help` lists the commands; each sets up what it needs and says so.
SHELL = /bin/bash
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
OPENSSH_VERSION ?= 10.0p1
LIBSSH2_VERSION ?= 1.11.1
CARGO ?= cargo

.PHONY: all
all: ## the library, release build
	$(CARGO) build --release --locked

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST)

# A thin front: Meson builds, this file says the words people type. `make help` lists them.

MAKEFLAGS += --no-print-directory
.NOTPARALLEL:
.DEFAULT_GOAL := all

BUILD := build
PREFIX := /usr/local
ROOT := $(CURDIR)/$(BUILD)/root$(PREFIX)
SPACE := $(ROOT)/bin/space
DATA := $(CURDIR)/.space
TEST_DATA := $(CURDIR)/.space-test

# Debian 12 packages. RUN_DEPS: to build SPACE and to run it; TEST_DEPS: what `make test`, `make check`
# and `make test-kvm` take besides. docs/dependencies.md says what each is for.
RUN_DEPS := gcc libc6-dev meson ninja-build pkg-config \
	libuv1-dev libnghttp2-dev libjansson-dev libsqlite3-dev libgnutls28-dev \
	libcurl4-gnutls-dev libseccomp-dev \
	bubblewrap qemu-system-x86 mmdebstrap e2fsprogs uidmap util-linux cpio procps ca-certificates
TEST_DEPS := clang libclang-rt-dev clang-format curl nodejs npm busybox-static kmod

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 18

deps: ## install what building, running and testing take (Debian 12, root)
	@tools/deps.sh $(RUN_DEPS) $(TEST_DEPS)

all: ## build everything and install it below build/root
	@tools/build.sh $(BUILD) $(PREFIX)

run: ## build, start a node, run a command in a microVM of its own
	@tools/deps.sh --if-missing $(RUN_DEPS)
	@$(MAKE) all
	@tools/run.sh $(SPACE) $(DATA)

stop: ## end the node that `make run` has started, and all its sandboxes
	@tools/stop.sh $(SPACE) $(DATA)

test: all ## unit tests, attackers in their jails, whole-system tests with the E2B SDK
	@tools/run-tests.sh $(BUILD) $(SPACE) $(DATA) $(TEST_DATA)

check: ## format, structure, warnings under gcc and clang, sanitizers
	@tools/check.sh $(BUILD)

test-kvm: all ## the same binaries with a working KVM, in an emulated machine (root)
	@tools/test-kvm.sh $(SPACE) $(DATA) $(TEST_DATA)

install: ## install below PREFIX (/usr/local); DESTDIR is honoured
	@meson install -C $(BUILD) --no-rebuild

clean: stop ## stop everything, remove what was built and all data of `make run` and `make test`
	@tools/clean.sh $(SPACE) $(BUILD) $(DATA) $(TEST_DATA)

.PHONY: help deps all run stop test check test-kvm install clean

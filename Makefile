# SPDX-License-Identifier: GPL-2.0-only
#
# make            build build/fdscale
# make setup      install what is missing (Debian; says so first)
# make setup-kernel  the same for ./run.py kernel (QEMU, sources)
# make sweep      set up, build, and sweep this host    SWEEP="--quick"
# make test       set up, build, and run every test     TESTS="tests/test_x.py"
# make test-kernel  those that boot guests, after building their kernels
# make lint       formatters, linters, types, warnings of both compilers
# make tidy       clang-tidy, by .clang-tidy (two minutes)
# make bench      the numbers of the README, as ratios within one run  PART=loop
#                 PEER=path/to/will-it-scale: beside that  PART=testcases
#                 CASES="dup1 open1": only these of its cases
# make fuzz       bad input to what C parses, by libFuzzer  FUZZ_SECONDS=60
# make clean      remove build/
#
# Variables:
#   CC, CFLAGS    the compiler and its flags (-O2 -g)
#   BUILD         where everything goes (build)
#   SAN           sanitizers to build with: address,undefined or thread
#   SHUFFLE       a number: functions in an order of its own, for make bench
#   PYTHON        the interpreter (/usr/bin/python3, with Debian's packages)

CC ?= gcc
ifeq ($(origin CC),default)
CC := gcc
endif
CFLAGS ?= -O2 -g
BUILD ?= build
PYTHON ?= /usr/bin/python3
SAN ?=
SWEEP ?=
TESTS ?= tests
FUZZ_SECONDS ?= 60

# Code placement is part of what A/A has to tell: the same code, elsewhere.
# Compiled once, linked in each order.
OBJ = $(BUILD)
ifneq ($(SHUFFLE),)
OBJ := $(BUILD)/sections
BUILD := $(BUILD)/shuffle-$(SHUFFLE)
CFLAGS += -ffunction-sections
ORDER := $(BUILD)/order.txt
LDFLAGS += -fuse-ld=gold -Wl,--section-ordering-file=$(ORDER)
endif

WARN := -Wall -Wextra -Werror -Wmissing-prototypes -Wstrict-prototypes -Wshadow
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -pthread $(WARN) $(CFLAGS) \
	$(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer) -MMD -MP
LDLIBS += -lhwloc -lnuma -ljansson -lm

HARNESS := $(wildcard drivers/harness/*.c)
FDTABLE := $(wildcard drivers/fdtable/*.c)
WORKLOADS := $(wildcard drivers/workloads/*.c)
LIB_OBJS := $(HARNESS:%.c=$(OBJ)/%.o) $(FDTABLE:%.c=$(OBJ)/%.o)
# A workload is compiled once for each backend that can serve it.
WORKLOAD_OBJS := $(WORKLOADS:%.c=$(OBJ)/%.kernel.o) \
	$(WORKLOADS:%.c=$(OBJ)/%.model.o)
BENCHES := $(patsubst tests/c/%.c,$(BUILD)/tests/%,$(wildcard tests/c/bench_*.c))
FUZZERS := $(patsubst tests/c/fuzz_%.c,%,$(filter-out %_main.c,$(wildcard tests/c/fuzz_*.c)))
C_TESTS := $(patsubst tests/c/%.c,$(BUILD)/tests/%,$(wildcard tests/c/test_*.c))

# V=1 shows the commands.
Q = $(if $(V),,@)
say = $(if $(V),,@printf '  %-4s %s\n' $(1) $@)

.PHONY: all setup setup-kernel test test-kernel c-tests fuzz lint tidy \
	bench sweep clean
.DELETE_ON_ERROR:
.SECONDARY:

all: $(BUILD)/fdscale $(BUILD)/own-driver

MAIN_OBJS := $(patsubst %,$(OBJ)/drivers/%.o,main look conformance dry_run)
$(BUILD)/fdscale: $(MAIN_OBJS) $(LIB_OBJS) $(WORKLOAD_OBJS)
	$(call say,LD)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LDLIBS)

ifneq ($(SHUFFLE),)
$(BUILD)/fdscale $(BENCHES): $(ORDER)
$(ORDER): $(LIB_OBJS) $(WORKLOAD_OBJS)
	@mkdir -p $(@D)
	$(Q)objdump -h $^ | awk '$$2 ~ /^\.text\./ { print $$2 }' | sort -u | \
		awk 'BEGIN { srand($(SHUFFLE)) } { print rand(), $$1 }' | \
		sort -n | cut -d' ' -f2 > $@
endif

# What compiles a user's own file: the same compiler, flags and objects.
OWN_FLAGS = -std=c11 -D_GNU_SOURCE -pthread $(CASE_FLAGS)
CASE_FLAGS = $(CFLAGS) $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
$(BUILD)/own-driver: Makefile drivers/own.sh $(MAIN_OBJS) $(LIB_OBJS)
	@mkdir -p $(@D)
	@printf '%s\n' '#!/bin/sh' "CC='$(CC)'" "FLAGS='$(OWN_FLAGS)'" \
		"CASE_FLAGS='$(CASE_FLAGS)'" "LDFLAGS='$(LDFLAGS)'" \
		"LDLIBS='$(LDLIBS)'" "OBJS='$(MAIN_OBJS) $(LIB_OBJS)'" \
		"ROOT='$(CURDIR)'" "BUILD='$(abspath $(BUILD))'" \
		'. "$$ROOT/drivers/own.sh"' >$@
	@chmod +x $@

# A missing library is named before the compiler trips over it.
$(OBJ)/needs: config/packages.txt
	@mkdir -p $(@D)
	@for pair in hwloc.h:libhwloc-dev numa.h:libnuma-dev jansson.h:libjansson-dev; do \
		echo "#include <$${pair%:*}>" | $(CC) -E -x c - >/dev/null 2>&1 || { \
			echo "$${pair#*:} is missing: make setup" >&2; exit 3; }; \
	done
	@touch $@
$(LIB_OBJS) $(WORKLOAD_OBJS) $(MAIN_OBJS): | $(OBJ)/needs

$(OBJ)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

$(OBJ)/%.kernel.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(ALL_CFLAGS) -DFD_BACKEND_KERNEL -c -o $@ $<

$(OBJ)/%.model.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(ALL_CFLAGS) -DFD_BACKEND_MODEL -c -o $@ $<

# A C test is one program, linked with everything but main().
c-tests: $(C_TESTS) $(FUZZERS:%=$(BUILD)/tests/fuzz_%)

$(BUILD)/tests/%: $(OBJ)/tests/c/%.o $(LIB_OBJS)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LDLIBS) -lcmocka

# A fuzz target replays the files it is given; with libFuzzer it makes them up.
$(FUZZERS:%=$(BUILD)/tests/fuzz_%): $(BUILD)/tests/%: $(OBJ)/tests/c/%.o \
		$(if $(findstring fuzzer,$(SAN)),,$(OBJ)/tests/c/fuzz_main.o) \
		$(LIB_OBJS) $(WORKLOAD_OBJS)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(ALL_CFLAGS) $(if $(findstring fuzzer,$(SAN)),-fsanitize=fuzzer) \
		$(LDFLAGS) -o $@ $(filter %.o,$^) $(LDLIBS)

fuzz: setup
	$(Q)$(MAKE) --no-print-directory CC=clang SAN=fuzzer-no-link,address,undefined \
		BUILD=$(BUILD)/fuzz CFLAGS="-O1 -g" $(FUZZERS:%=$(BUILD)/fuzz/tests/fuzz_%)
	@for f in $(FUZZERS); do \
		mkdir -p $(BUILD)/fuzz/corpus/$$f && \
		UBSAN_OPTIONS=halt_on_error=1 $(BUILD)/fuzz/tests/fuzz_$$f \
			-max_total_time=$(FUZZ_SECONDS) \
			-timeout=20 -max_len=4096 -print_final_stats=1 \
			-artifact_prefix=$(BUILD)/fuzz/$$f- \
			$(BUILD)/fuzz/corpus/$$f tests/corpus/$$f || exit 1; \
	done

# Preloaded by tests: calls that fail.
$(BUILD)/tests/fail.so: tests/c/fail.c
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -shared -o $@ $<

setup:
	@config/setup.sh

setup-kernel:
	@config/setup.sh config/packages-kernel.txt

# ASan takes part in the whole-program tests as a second driver.
test: setup all $(BUILD)/tests/fail.so
	$(Q)$(MAKE) --no-print-directory SAN=address,undefined BUILD=$(BUILD)/asan \
		CFLAGS="-O1 -g" all c-tests
	$(Q)$(MAKE) --no-print-directory SAN=thread BUILD=$(BUILD)/tsan \
		CFLAGS="-O1 -g" $(BUILD)/tsan/tests/test_fdtable_threads
	$(Q)BUILD=$(BUILD) $(PYTHON) -m pytest -q $(TESTS)

# Boots guests; the kernels it counts in are built beforehand, and cached.
test-kernel: setup setup-kernel all
	./run.py kernel build
	./run.py kernel build --flavour plain
	./run.py kernel build --flavour pointer
	FDSCALE_GUEST_TESTS=1 BUILD=$(BUILD) $(PYTHON) -m pytest -q tests/test_kernel_*.py

C_SOURCES = $(shell git ls-files 'drivers/*.[ch]' 'tests/*.[ch]')
PY_SOURCES = run.py bench tests
SH_SOURCES = config/setup.sh .ci/run drivers/kernel/livepatch.sh drivers/own.sh
lint: setup
	clang-format --dry-run -Werror $(C_SOURCES)
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)/gcc CC=gcc all c-tests
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)/clang CC=clang all c-tests \
		$(BUILD)/clang/tests/fail.so
	black -q --check $(PY_SOURCES)
	$(PYTHON) -m flake8 $(PY_SOURCES)
	mypy $(PY_SOURCES)
	shellcheck $(SH_SOURCES)

# A file at a time: of several in one process the analyzer mixes up the names.
# Two need the headers of the kernel and of QEMU.
TIDY = $(patsubst %,%.tidy,$(filter-out %/fdscale_livepatch.c %/plugin.c,\
	$(shell git ls-files 'drivers/*.c' 'tests/c/*.c')))
TIDY_MODEL = $(WORKLOADS:%=%.model-tidy)
.PHONY: $(TIDY) $(TIDY_MODEL)
tidy: setup $(TIDY) $(TIDY_MODEL)
clang_tidy = $(Q)clang-tidy -quiet $(1) -- -std=c11 -D_GNU_SOURCE -pthread $(2) 2>&1 | \
	{ ! grep -v '^[0-9]* warnings\? generated'; }
$(TIDY): %.tidy:
	$(call clang_tidy,$*,-DFD_BACKEND_KERNEL)
$(TIDY_MODEL): %.model-tidy:
	$(call clang_tidy,$*,-DFD_BACKEND_MODEL)

sweep: setup all
	./run.py sweep $(SWEEP)

bench: setup all $(BENCHES)
	BUILD=$(BUILD) PEER=$(PEER) CASES="$(CASES)" $(PYTHON) -m bench.selfbench $(PART)

# A benchmark of ours has the workloads too.
$(BENCHES): $(BUILD)/tests/%: $(OBJ)/tests/c/%.o $(LIB_OBJS) $(WORKLOAD_OBJS)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LDLIBS)

clean:
	rm -rf $(BUILD)

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)

# `make run` installs missing packages, builds and starts the server. `make test` installs the
# packages that the tests need and runs them. `make help` lists all targets. Each kind of build has
# a folder below build/: BUILD=release (default), debug, asan, tsan, coverage, fuzz or arm64
# (cross-compiled with Debian's libraries in build/arm64-root).
BUILD    ?= release
OUT      := build/$(BUILD)
GEN      := build/generated$(if $(filter arm64,$(BUILD)),-arm64)
MACHINE  := $(if $(filter arm64,$(BUILD)),aarch64,$(shell uname -m))
ARM_ROOT := $(CURDIR)/build/arm64-root
PREFIX   ?= /usr/local
DESTDIR  ?=
CC_fuzz  := clang
CC_asan  := clang
CC_arm64 := clang-14 -Wno-unused-command-line-argument --target=aarch64-linux-gnu \
            --sysroot=$(ARM_ROOT)
# An installed ccache makes a second build of the same tree cheap. In depend mode it uses the
# dependency files of the compiler, so the first build costs no more than without it.
CCACHE   := $(if $(shell command -v ccache),ccache)
export CCACHE_DEPEND := 1
CC       := $(strip $(CCACHE) $(or $(CC_$(BUILD)),$(if $(filter default,$(origin CC)),gcc,$(CC))))
ARM_PKG_CONFIG := $(ARM_ROOT)/usr/lib/aarch64-linux-gnu/pkgconfig:$(ARM_ROOT)/usr/share/pkgconfig
PKG_CONFIG := $(if $(filter arm64,$(BUILD)),PKG_CONFIG_SYSROOT_DIR=$(ARM_ROOT) \
              PKG_CONFIG_LIBDIR=$(ARM_PKG_CONFIG)) pkg-config
PYTHON   ?= /usr/bin/python3
# One short line per file; V=1 shows the whole commands.
Q        := $(if $(V),,@)
print     = @printf '  %-5s %s\n' $(1) $(2)
# All cores, unless -j is given.
MAKEFLAGS := $(MAKEFLAGS) $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all run deps deps-test test test-long check unit objects test-programs integration browser \
        fuzz fuzz-seeds seeds-program bench bench-agents bench-store bench-symbols bench-unwind \
        bench-agent bench-frames bench-web soak-hostile install clean test-crash test-fresh \
        test-s3 test-kernels test-kernels-arm64 agent-programs test-unwind test-unwind-arm64 \
        interop format flags bpf-flags help one-test web

LIBRARIES := libh2o-evloop libpq openssl expat libzstd jansson libdeflate libpcre2-8 libxxhash \
             inih libcurl libpng freetype2 zlib libbpf
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla \
        -Wwrite-strings -Wpointer-arith -Wcast-qual -Wformat=2 -Wimplicit-fallthrough \
        -Wswitch-enum -Wconversion -Wdouble-promotion
WARN_GCC := $(if $(findstring clang,$(CC)),,-Wduplicated-cond -Wlogical-op -Wno-format-truncation)
HARDEN := -D_FORTIFY_SOURCE=3 -fstack-protector-strong \
          $(if $(filter x86_64,$(MACHINE)),-fcf-protection -fstack-clash-protection) \
          -Wl,-z,relro,-z,now
SANITIZE_asan := -fsanitize=address,undefined -fno-sanitize-recover=all
SANITIZE_tsan := -fsanitize=thread
SANITIZE_fuzz := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
MODE_release  := -O2 $(HARDEN)
MODE_arm64    := -O2 $(HARDEN) -mbranch-protection=standard
MODE_debug    := -Og
MODE_asan     := -O0 $(SANITIZE_asan)
MODE_tsan     := -O1 $(SANITIZE_tsan)
MODE_fuzz     := -O1 $(SANITIZE_fuzz)
MODE_coverage := -O0 --coverage
# -isystem: no warnings about third-party headers. H2O_USE_EPOLL selects the event loop of h2o.
INCLUDES := $(patsubst -I%,-isystem %,\
            $(shell $(PKG_CONFIG) --cflags-only-I $(LIBRARIES) 2>/dev/null))
CFLAGS   := -std=gnu17 -D_GNU_SOURCE -DH2O_USE_EPOLL=1 -I. $(INCLUDES) $(WARN) $(WARN_GCC) -g \
            -pthread -fPIE \
            -fno-omit-frame-pointer $(MODE_$(BUILD)) $(EXTRA_CFLAGS)
LDFLAGS  := -pie -pthread $(MODE_$(BUILD)) -Wl,--as-needed \
            $(if $(filter arm64,$(BUILD)),-fuse-ld=lld-14)
# Libraries that only perfolio-symbolize needs; libiberty has no pkg-config file.
DEBUG_LIBS := -liberty $(shell $(PKG_CONFIG) --libs libelf libseccomp liblzma 2>/dev/null)
LDLIBS   := $(shell $(PKG_CONFIG) --libs $(LIBRARIES) 2>/dev/null) -lm

sources   = $(wildcard $(1)/*.c $(1)/*/*.c)
objects   = $(patsubst %,$(OUT)/%.o,$(basename $(1)))
LIB_C    := $(foreach folder,$(wildcard lib/*),$(call sources,$(folder)))
STORE_C  := $(call sources,store)
API_C    := $(filter-out api/main.c,$(call sources,api))
CLI_C    := $(filter-out cli/main.c,$(call sources,cli))
DEBUG_C  := $(filter-out debuginfod/main.c,$(call sources,debuginfod))
AGENT_C  := $(filter-out agent/main.c,$(call sources,agent))
UNIT_C   := $(wildcard $(addsuffix /test_*.c,tests/unit/* tests/unit/*/* tests/unit/*/*/*))
FUZZ_C   := $(wildcard tests/fuzz/fuzz_*.c)
BENCH_C  := $(wildcard tests/bench/bench_*.c)
PROGRAMS := $(OUT)/perfoliod $(OUT)/perfolio $(OUT)/perfolio-symbolize $(OUT)/perfolio-agent

all: $(PROGRAMS)

$(OUT)/%.o: %.c
	@mkdir -p $(@D)
	$(call print,CC,$<)
	$(Q)$(CC) $(CFLAGS) $(TEST_FLAGS) -MMD -MP -c $< -o $@
build/release/lib/profile/pprof/%.o build/release/lib/profile/otlp/%.o build/release/store/%.o \
    build/release/lib/symbols/symbol_cursor.o \
    $(patsubst %,build/release/agent/unwind/%.o,cfi_program eh_frame unwind_table cfi_rules): \
    CFLAGS += -O3
# cmocka's macros pass enums as ints; clang warns about that, gcc does not. Tests and the folders
# below need little CPU time when they run, so most of the time would go into optimizing them.
build/asan/tests/unit/%.o: CFLAGS += -Wno-sign-conversion
# A few files whose tests would take longer than compiling them with optimization.
$(patsubst %,build/asan/%.o,$(addprefix lib/base/,mem arena chunk_pool span span_utf8 buf map) \
    agent/symbols/jitdump lib/profile/report/flame store/block/bitpack): CFLAGS += -O1
build/fuzz/tests/unit/%.o: CFLAGS += -Wno-sign-conversion -O0
$(patsubst %,build/fuzz/%.o,api/% cli/% debuginfod/% lib/io/%) \
    $(patsubst %,build/fuzz/agent/%.o,kernel/% labels/% process/% profile/% symbols/% upload/% \
    main): CFLAGS += -O0
build/release/tests/unit/%.o build/release/tests/fuzz/%.o: CFLAGS += -O0 -U_FORTIFY_SOURCE
# Renames the main function of each test file, which the runner calls (tests/unit/test.h).
$(OUT)/tests/unit/%.o: TEST_FLAGS = $(if $(filter test_%,$(@F)),\
    -DTEST_MAIN=main_of_$(basename $(@F)) -DTEST_FILE='"$(basename $(@F))"')
$(OUT)/tests/fuzz/fuzz_%.o: TEST_FLAGS = -DFUZZ_NAME=$(basename $(@F))
# gold links in half the time. It warns about symbols of the sanitizers, so its output is shown only
# if it fails.
TEST_LD := $(if $(shell command -v ld.gold),-fuse-ld=gold)
define link_test
	$(call print,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $(TEST_LD) $^ $(LDLIBS) $(DEBUG_LIBS) $(1) -o $@ 2>$(@D)/.$(@F).log || \
	    { cat $(@D)/.$(@F).log >&2; exit 1; }
endef
$(OUT)/lib.a: $(call objects,$(LIB_C))
$(OUT)/store.a: $(call objects,$(STORE_C))
$(OUT)/api.a: $(call objects,$(API_C)) $(OUT)/assets.o
$(OUT)/cli.a: $(call objects,$(CLI_C))
$(OUT)/debuginfod.a: $(call objects,$(DEBUG_C))
$(OUT)/agent.a: $(call objects,$(AGENT_C)) $(OUT)/bpf.o
$(OUT)/%.a:
	@rm -f $@
	$(Q)ar qcs $@ $^
$(OUT)/perfoliod: $(OUT)/api/main.o $(OUT)/api.a $(OUT)/store.a $(OUT)/lib.a
	$(call print,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
$(OUT)/perfolio: $(OUT)/cli/main.o $(OUT)/cli.a $(OUT)/agent.a $(OUT)/lib.a
	$(call print,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(OUT)/perfolio-symbolize: $(OUT)/debuginfod/main.o $(OUT)/debuginfod.a $(OUT)/lib.a
	$(call print,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) $(DEBUG_LIBS) -o $@

agent-programs: $(OUT)/perfolio $(OUT)/perfolio-symbolize $(OUT)/perfolio-agent
$(OUT)/perfolio-agent: $(OUT)/agent/main.o $(OUT)/agent.a $(OUT)/lib.a
	$(call print,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@

# BPF programs, the same for every build: compiled by clang and embedded in the agent. The build
# needs neither BTF nor privileges: offsets of kernel structures are relocated when the agent loads
# them.
BPF_CLANG  ?= clang-14
BPF_STRIP  ?= llvm-strip-14
BPF_ARCH   := $(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(MACHINE)))
BPF_HEADERS := $(if $(filter arm64,$(BUILD)),$(ARM_ROOT))/usr/include
BPF_CFLAGS := -std=gnu17 -O2 -g -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPF_ARCH) -D__$(MACHINE)__ \
              -I. -isystem $(BPF_HEADERS)/$(MACHINE)-linux-gnu $(WARN)
$(GEN)/%.bpf.o: bpf/%.bpf.c
	@mkdir -p $(@D)
	$(call print,BPF,$<)
	$(Q)$(BPF_CLANG) $(BPF_CFLAGS) -MMD -MP -c $< -o $@
	$(Q)$(BPF_STRIP) -g $@
$(GEN)/bpf.S: agent/embed.sh $(patsubst bpf/%.c,$(GEN)/%.o,$(wildcard bpf/*.bpf.c))
	$(Q)sh agent/embed.sh $(filter %.o,$^) > $@
$(OUT)/bpf.o: $(GEN)/bpf.S
	@mkdir -p $(@D)
	$(call print,CC,$<)
	$(Q)$(CC) -c $< -o $@

# Web pages, migrations and the preview font are embedded in the server. Their folders are
# prerequisites too, because a folder's time changes when a file in it is deleted.
WEB_SOURCES := $(shell find web -type f -not -path 'web/node_modules/*' -not -path 'web/dist/*') \
               $(shell find web/src web/public -type d)
web: web/dist/.done
web/node_modules/.done: web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund
	@touch $@
web/dist/.done: web/node_modules/.done $(WEB_SOURCES) deploy/licenses/DejaVuSans.txt \
                lib/profile/formats/format_list.h
	cd web && npm run --silent build
	@touch $@
$(GEN)/openapi.yaml.gz: api/openapi.yaml
	@mkdir -p $(@D)
	$(Q)libdeflate-gzip -12 -c $< > $@
$(GEN)/assets.S: api/embed.sh web/dist/.done api/migrations $(wildcard api/migrations/*.sql) \
                 $(GEN)/openapi.yaml.gz
	@mkdir -p $(@D)
	$(Q)sh api/embed.sh $(GEN)/openapi.yaml.gz > $@
$(OUT)/assets.o: $(GEN)/assets.S
	@mkdir -p $(@D)
	$(call print,CC,$<)
	$(Q)$(CC) -c $< -o $@

deps:
	sh deploy/install-packages.sh run build
deps-test:
	sh deploy/install-packages.sh run build test
run: deps
	$(MAKE) all
	exec $(OUT)/perfoliod serve --data-dir perfolio-data --listen localhost:7443
test: deps-test
	$(MAKE) all
	$(PYTHON) tests/run.py
# The slow tests. CONTRIBUTING.md lists which test runs where.
test-long:
	sh deploy/install-packages.sh run build test s3
	$(MAKE) all
	$(PYTHON) tests/run.py long
check:
	sh tests/lint/check.sh

UNIT_PROGRAMS := $(patsubst tests/%.c,$(OUT)/tests/%,$(UNIT_C))
# One program contains all unit tests. Each test_x is a symbolic link to it and runs the tests of
# test_x.c.
$(OUT)/tests/unit/runner: $(call objects,tests/unit/runner.c $(UNIT_C)) \
    $(patsubst %,$(OUT)/%.a,cli agent api store debuginfod lib)
	$(call link_test,-lcmocka)
$(UNIT_PROGRAMS): $(OUT)/tests/unit/runner
	$(Q)ln -sfr $< $@
unit:
	BUILD=$(BUILD) $(PYTHON) tests/run.py unit
unit-programs: $(UNIT_PROGRAMS)
# Compiles every source of the programs without linking.
objects: $(call objects,$(LIB_C) $(STORE_C) \
    $(foreach folder,api cli debuginfod agent,$(call sources,$(folder))))
# kill -9, a thousand times, for shares and for continuous profiles; `make test-long` runs 60
# rounds.
test-crash: all
	PERFOLIO_CRASH_ROUNDS=$${PERFOLIO_CRASH_ROUNDS:-1000} $(PYTHON) -m pytest -q \
	    tests/integration/ops/test_crash.py tests/integration/store/test_store_crash.py
integration: all
	$(PYTHON) tests/run.py integration
browser: all
	$(PYTHON) tests/run.py browser

FUZZ_PROGRAMS := $(patsubst tests/%.c,$(OUT)/tests/%,$(FUZZ_C))
FUZZ_ARCHIVES := $(patsubst %,$(OUT)/%.a,agent api store debuginfod lib)
$(OUT)/tests/fuzz/fuzz_%: $(OUT)/tests/fuzz/fuzz_%.o $(OUT)/tests/fuzz/runner.o $(FUZZ_ARCHIVES)
	$(call link_test,-fsanitize=fuzzer)
# All fuzzers in one program, which runs the seeds without libFuzzer. `make test` runs it in the
# release build.
$(OUT)/tests/fuzz/seeds: $(patsubst %,%.o,$(FUZZ_PROGRAMS)) $(OUT)/tests/fuzz/seeds.o \
                         $(FUZZ_ARCHIVES)
	$(call link_test)
seeds-program: $(OUT)/tests/fuzz/seeds
fuzz-programs: $(FUZZ_PROGRAMS)
fuzz-seeds:
	$(MAKE) BUILD=asan seeds-program
	build/asan/tests/fuzz/seeds
# Runs each fuzzer for FUZZ_SECONDS. FUZZ_KEEP=1 adds new inputs to the seeds (tests/fuzz/run.sh).
FUZZ_SECONDS ?= 60
fuzz:
	$(MAKE) BUILD=fuzz fuzz-programs
	sh tests/fuzz/run.sh $(FUZZ_SECONDS)

BENCH_PROGRAMS := $(patsubst tests/%.c,$(OUT)/tests/%,$(BENCH_C))
$(OUT)/tests/bench/%: $(OUT)/tests/bench/%.o $(OUT)/agent.a $(OUT)/api.a $(OUT)/store.a $(OUT)/lib.a
	$(call print,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
$(OUT)/tests/bench/bench_store $(OUT)/tests/bench/bench_feed: $(OUT)/tests/bench/fleet.o
bench-programs: $(BENCH_PROGRAMS)
$(OUT)/tests/programs/%: $(OUT)/tests/programs/%.o $(OUT)/lib.a
	$(call print,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
# Unwind rows compared to elfutils, for all ELF files of this system or for arm64 files of Debian.
$(OUT)/tests/programs/unwind_% $(OUT)/tests/bench/bench_unwind: LDLIBS += -ldw -lelf
$(OUT)/tests/programs/unwind_%: $(OUT)/tests/programs/unwind_%.o $(OUT)/agent.a $(OUT)/lib.a
	$(call print,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
$(OUT)/tests/programs/cpython_%: $(OUT)/tests/programs/cpython_%.o $(OUT)/agent.a $(OUT)/lib.a
	$(call print,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
# perfoliod with file system calls that a test can make fail.
$(OUT)/tests/programs/faulty_%: $(OUT)/tests/programs/faulty_%.o $(OUT)/api.a $(OUT)/store.a \
                                $(OUT)/lib.a
	$(call print,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
TEST_PROGRAMS := $(patsubst tests/%.c,$(OUT)/tests/%,$(wildcard tests/programs/*.c))
# Cheap password hashes for the servers of the tests. A sanitizer's runtime refuses to start after a
# preloaded library, so builds with sanitizers do not use it.
TEST_PRELOAD := $(if $(SANITIZE_$(BUILD)),,$(OUT)/tests/preload/cheap_scrypt.so)
$(OUT)/tests/preload/%.so: tests/preload/%.c
	@mkdir -p $(@D)
	$(call print,LINK,$@)
	$(Q)$(CC) $(filter-out -fPIE,$(CFLAGS)) -fPIC -shared $< -o $@ -ldl
test-programs: $(TEST_PROGRAMS) $(TEST_PRELOAD)
# perfolio record and perfolio-agent on Debian's kernels in QEMU; make test uses the running kernel.
KERNELS ?= 5.10 6.1 6.12
test-kernels: all
	sh deploy/install-packages.sh run build test kernels
	sh tests/kernels/fetch.sh build/kernels $(KERNELS)
	BUILD=$(BUILD) $(PYTHON) tests/kernels/run.py build/kernels $(KERNELS)
ARM_KERNELS ?= 5.10-arm64 6.1-arm64 6.12-arm64
test-kernels-arm64:
	sh deploy/install-packages.sh run build test kernels
	sh tests/kernels/fetch.sh build/kernels $(ARM_KERNELS)
	sh tests/kernels/arm64_root.sh build/kernels build/arm64-root
	$(MAKE) BUILD=arm64 agent-programs build/arm64/tests/programs/unwind_replay
	$(PYTHON) tests/kernels/run.py build/kernels $(ARM_KERNELS)
test-unwind: $(OUT)/tests/programs/unwind_rows
	$(PYTHON) tests/oracle/elf_files.py | $(OUT)/tests/programs/unwind_rows
test-unwind-arm64: $(OUT)/tests/programs/unwind_rows
	sh tests/oracle/arm64_files.sh build/arm64-packages
	$(PYTHON) tests/oracle/elf_files.py build/arm64-packages/files | $(OUT)/tests/programs/unwind_rows
$(OUT)/tests/s3/%: $(OUT)/tests/s3/%.o $(OUT)/lib.a
	$(call print,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
# Object store and servers with a real S3 server, which run.sh starts and stops.
test-s3:
	sh deploy/install-packages.sh run build test s3
	$(MAKE) all $(OUT)/tests/s3/object_tool $(OUT)/tests/unit/lib/io/test_object_store
	BUILD=$(BUILD) PYTHON=$(PYTHON) sh tests/s3/run.sh
# Agents of other profilers, from their registries, send to a server.
CLIENTS := tests/clients/node_modules/.done build/clients/profiled-go build/clients/python/.done
tests/clients/node_modules/.done: tests/clients/package.json tests/clients/package-lock.json
	cd tests/clients && npm ci --no-audit --no-fund
	@touch $@
build/clients/profiled-go: $(wildcard tests/clients/go/*)
	cd tests/clients/go && go build -o $(CURDIR)/$@ .
build/clients/python/.done: tests/clients/python/requirements.txt
	$(PYTHON) -m venv build/clients/python
	build/clients/python/bin/pip install -q -r $<
	@touch $@
# DuckDB reads exports. No lock file, because npm would then install the packages of all systems.
tests/duckdb/node_modules/.done: tests/duckdb/package.json
	cd tests/duckdb && npm install --no-package-lock --no-audit --no-fund
	@touch $@
interop: all $(CLIENTS) tests/duckdb/node_modules/.done
	BUILD=$(BUILD) $(PYTHON) -m pytest -q tests/integration/ingest/test_ingest_clients.py \
	    tests/integration/store/test_export.py
bench: all bench-programs
	$(PYTHON) tests/bench/run.py
# 500 agents and 20 queries per second for BENCH_SECONDS=600.
bench-agents: all bench-programs
	$(PYTHON) tests/bench/run.py agents
# The store, end to end, compared to DuckDB from npm. tests/bench/store.py lists the BENCH_*
# variables.
bench-store: all bench-programs tests/duckdb/node_modules/.done
	$(PYTHON) tests/bench/store.py $(BENCH_PARTS)
# Symbol tables of real files, compared to llvm-gsymutil, llvm-symbolizer and gimli's addr2line.
bench-symbols: all $(OUT)/tests/bench/bench_symbols
	$(PYTHON) tests/bench/symbols.py $(BENCH_FILES)
# Unwind tables, compared to elfutils.
bench-unwind: $(OUT)/tests/bench/bench_unwind
	$< $(BENCH_FILES)
# Cost of the agent, compared to perf record. BENCH_SECONDS=5 makes it short.
bench-agent: all
	$(PYTHON) tests/bench/agent.py $(BENCH_PARTS)
# Well-behaved clients and four attackers for SOAK_SECONDS=900.
soak-hostile: all
	$(PYTHON) tests/soak/hostile_tenant.py
# CPU time of one frame of a flame graph of a million nodes.
bench-frames: web/node_modules/.done
	cd web && npm run --silent bench
# The pages compared to other viewers, which npm installs into build/bench-web/.
bench-web: all
	node tests/bench/web/run.mjs

install: all
	sh deploy/install.sh "$(OUT)" "$(DESTDIR)" "$(PREFIX)"
test-fresh:
	sh tests/fresh.sh
flags:
	@echo $(filter-out -Wl%,$(CFLAGS))
# Flags with which CC checks the BPF programs. gcc has no BPF target and compiles them for this
# machine.
bpf-flags:
	@echo $(if $(findstring clang,$(CC)),$(BPF_CFLAGS),$(filter-out -Wl%,$(CFLAGS)) \
	    -D__TARGET_ARCH_$(BPF_ARCH) -Wno-unknown-pragmas)
format: web/node_modules/.done
	git ls-files '*.c' '*.h' | xargs clang-format -i
	git ls-files '*.py' | xargs black --quiet
	git ls-files '*.ts' '*.tsx' '*.mjs' 'web/*.css' | \
	    xargs web/node_modules/.bin/prettier --config web/.prettierrc.json --log-level warn --write
clean:
	rm -rf build web/dist
define HELP
Build and run
  make                      the four programs, in build/$(BUILD)
  make run                  installs missing packages, builds, starts on https://localhost:7443
  make install              DESTDIR= PREFIX=/usr/local
  make deps | deps-test     installs the packages for building; deps-test: also for testing
  make BUILD=debug ...      another kind of build: release debug asan tsan coverage fuzz arm64
  make format | clean | compile_commands.json

Test (CONTRIBUTING.md lists which test runs where)
  make test                 all tests of a change; make test-long runs the slow ones
  make one-test T=...       one test: tests/integration/FOLDER/test_x.py::test_y,
                            tests/unit/.../test_x.c[::function],
                            web/test/.../x.test.ts[::WORDS],
                            or a part of the name of a browser test
  make check | unit | integration | browser      one part of make test
  make fuzz-seeds           the seeds of all fuzzers, with sanitizers
  make fuzz                 FUZZ_SECONDS=60: searches for new inputs
  make test-crash | test-s3 | test-fresh | test-unwind | test-unwind-arm64 | interop | soak-hostile
  make test-kernels         KERNELS="5.10 6.1 6.12"; test-kernels-arm64 ARM_KERNELS=

Measure
  make bench | bench-agents | bench-frames | bench-web | bench-store
  make bench-symbols | bench-unwind    BENCH_FILES=
  make bench-agent                     BENCH_PARTS=
endef
help:
	$(info $(HELP))@:
# T=FILE or FILE::NAME; NAME may have * and ? for a unit test.
one-test: all
	BUILD=$(BUILD) $(PYTHON) tests/one.py '$(T)'
compile_commands.json: Makefile
	$(MAKE) -snB V=1 objects unit-programs | $(PYTHON) tests/dev/compile_commands.py > $@

-include $(shell find $(OUT) $(GEN) -name '*.d' 2>/dev/null)

# Perfolio. `make run` sets up and starts everything; `make test` installs test needs and runs every
# test. `make help` lists the rest. One build folder per kind of build: BUILD=release (default),
# debug, asan, tsan, coverage or fuzz; arm64 is made for that processor, with Debian's libraries for
# it in build/arm64-root.
BUILD    ?= release
OUT      := build/$(BUILD)
GEN      := build/generated$(if $(filter arm64,$(BUILD)),-arm64)
MACHINE  := $(if $(filter arm64,$(BUILD)),aarch64,$(shell uname -m))
ARM_ROOT := $(CURDIR)/build/arm64-root
PREFIX   ?= /usr/local
DESTDIR  ?=
CC_fuzz  := clang
CC_arm64 := clang-14 -Wno-unused-command-line-argument --target=aarch64-linux-gnu --sysroot=$(ARM_ROOT)
# ccache, where it is installed, makes a second build of the same tree cheap. It reads the dependencies that
# the compiler writes, so that a first build costs no more.
CCACHE   := $(if $(shell command -v ccache),ccache)
export CCACHE_DEPEND := 1
CC       := $(strip $(CCACHE) $(or $(CC_$(BUILD)),$(if $(filter default,$(origin CC)),gcc,$(CC))))
PKG_CONFIG := $(if $(filter arm64,$(BUILD)),PKG_CONFIG_SYSROOT_DIR=$(ARM_ROOT) \
              PKG_CONFIG_LIBDIR=$(ARM_ROOT)/usr/lib/aarch64-linux-gnu/pkgconfig:$(ARM_ROOT)/usr/share/pkgconfig) pkg-config
PYTHON   ?= /usr/bin/python3
# One short line per file; V=1 shows the whole commands.
Q        := $(if $(V),,@)
say       = @printf '  %-5s %s\n' $(1) $(2)
# Every core, unless -j says otherwise.
MAKEFLAGS := $(MAKEFLAGS) $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all run deps deps-test test test-long check unit objects oracle-programs integration browser fuzz fuzz-seeds bench bench-agents bench-store bench-symbols \
        bench-unwind bench-agent bench-frames bench-web soak-hostile install clean test-crash test-fresh test-s3 test-kernels test-kernels-arm64 agent-programs test-unwind test-unwind-arm64 interop format flags help one-test web

LIBRARIES := libh2o-evloop libpq openssl expat libzstd jansson libdeflate libpcre2-8 libxxhash inih libcurl \
             libpng freetype2 zlib libbpf
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla \
        -Wwrite-strings -Wpointer-arith -Wcast-qual -Wformat=2 -Wimplicit-fallthrough \
        -Wswitch-enum -Wconversion -Wdouble-promotion \
        $(if $(findstring clang,$(CC)),,-Wduplicated-cond -Wlogical-op -Wno-format-truncation)
HARDEN := -D_FORTIFY_SOURCE=3 -fstack-protector-strong \
          $(if $(filter x86_64,$(MACHINE)),-fcf-protection -fstack-clash-protection) -Wl,-z,relro,-z,now
SANITIZE_asan := -fsanitize=address,undefined -fno-sanitize-recover=all
SANITIZE_tsan := -fsanitize=thread
SANITIZE_fuzz := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
MODE_release  := -O2 $(HARDEN)
MODE_arm64    := -O2 $(HARDEN) -mbranch-protection=standard
MODE_debug    := -Og
MODE_asan     := -O1 $(SANITIZE_asan)
MODE_tsan     := -O1 $(SANITIZE_tsan)
MODE_fuzz     := -O1 $(SANITIZE_fuzz)
MODE_coverage := -O0 --coverage
# Third-party headers are not ours to warn about; h2o needs to be told its event loop.
INCLUDES := $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags-only-I $(LIBRARIES) 2>/dev/null))
CFLAGS   := -std=gnu17 -D_GNU_SOURCE -DH2O_USE_EPOLL=1 -I. $(INCLUDES) $(WARN) -g -pthread -fPIE \
            -fno-omit-frame-pointer $(MODE_$(BUILD)) $(EXTRA_CFLAGS)
LDFLAGS  := -pie -pthread $(MODE_$(BUILD)) -Wl,--as-needed $(if $(filter arm64,$(BUILD)),-fuse-ld=lld-14)
# What only the builder of symbol tables needs; libiberty has no pkg-config file.
DEBUG_LIBS := -liberty $(shell $(PKG_CONFIG) --libs libelf libseccomp liblzma 2>/dev/null)
LDLIBS   := $(shell $(PKG_CONFIG) --libs $(LIBRARIES) 2>/dev/null) -lm

sources   = $(wildcard $(1)/*.c $(1)/*/*.c)
objects   = $(patsubst %,$(OUT)/%.o,$(basename $(1)))
LIB_C    := $(call sources,lib/base) $(call sources,lib/profile) $(call sources,lib/io) \
            $(call sources,lib/symbols)
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
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS) $(TEST_FLAGS) -MMD -MP -c $< -o $@
build/release/lib/profile/pprof/%.o build/release/lib/profile/otlp/%.o build/release/store/%.o \
    build/release/lib/symbols/symbol_cursor.o \
    $(patsubst %,build/release/agent/unwind/%.o,cfi_program eh_frame unwind_table cfi_rules): CFLAGS += -O3
# cmocka's macros pass enums as ints, of which clang complains and gcc does not. The tests' own code
# and these folders compute little: the time goes into compiling and linking them.
build/fuzz/tests/unit/%.o: CFLAGS += -Wno-sign-conversion -O0
build/fuzz/api/%.o build/fuzz/cli/%.o build/fuzz/debuginfod/%.o build/fuzz/lib/io/%.o \
    $(patsubst %,build/fuzz/agent/%.o,kernel/% labels/% process/% profile/% symbols/% upload/% main): CFLAGS += -O0
build/release/tests/unit/%.o: CFLAGS += -O0 -U_FORTIFY_SOURCE
# The main of each test file becomes a function of the runner (tests/unit/test.h).
$(OUT)/tests/unit/%.o: TEST_FLAGS = $(if $(filter test_%,$(@F)),-DTEST_MAIN=main_of_$(basename $(@F)) -DTEST_FILE='"$(basename $(@F))"')
build/fuzz/tests/fuzz/fuzz_%.o: TEST_FLAGS = -DFUZZ_NAME=$(basename $(@F))
# gold links in half the time. What it says of the sanitizers' symbols is told only where it fails.
TEST_LD := $(if $(shell command -v ld.gold),-fuse-ld=gold)
define link_test
	$(call say,LINK,$@)
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
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
$(OUT)/perfolio: $(OUT)/cli/main.o $(OUT)/cli.a $(OUT)/agent.a $(OUT)/lib.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(OUT)/perfolio-symbolize: $(OUT)/debuginfod/main.o $(OUT)/debuginfod.a $(OUT)/lib.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) $(DEBUG_LIBS) -o $@

agent-programs: $(OUT)/perfolio $(OUT)/perfolio-symbolize $(OUT)/perfolio-agent
$(OUT)/perfolio-agent: $(OUT)/agent/main.o $(OUT)/agent.a $(OUT)/lib.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@

# What runs in the kernel: made by clang for every build alike, and carried inside the agent.
# It needs neither BTF nor rights: places of members are found when it is loaded.
BPF_CLANG  ?= clang-14
BPF_STRIP  ?= llvm-strip-14
BPF_ARCH   := $(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(MACHINE)))
BPF_HEADERS := $(if $(filter arm64,$(BUILD)),$(ARM_ROOT))/usr/include
BPF_CFLAGS := -std=gnu17 -O2 -g -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPF_ARCH) -D__$(MACHINE)__ \
              -I. -isystem $(BPF_HEADERS)/$(MACHINE)-linux-gnu -Wall -Wextra -Werror
$(GEN)/%.bpf.o: bpf/%.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF,$<)
	$(Q)$(BPF_CLANG) $(BPF_CFLAGS) -MMD -MP -c $< -o $@
	$(Q)$(BPF_STRIP) -g $@
$(GEN)/bpf.S: agent/embed.sh $(patsubst bpf/%.c,$(GEN)/%.o,$(wildcard bpf/*.bpf.c))
	$(Q)sh agent/embed.sh $(filter %.o,$^) > $@
$(OUT)/bpf.o: $(GEN)/bpf.S
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -c $< -o $@

# Web pages, migrations and the preview font travel inside the server.
# Their folders are among what these are made of: one that loses a file is newer, too.
WEB_SOURCES := $(shell find web -type f -not -path 'web/node_modules/*' -not -path 'web/dist/*') \
               $(shell find web/src web/public -type d)
web: web/dist/.done
web/node_modules/.done: web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund
	@touch $@
web/dist/.done: web/node_modules/.done $(WEB_SOURCES) deploy/licenses/DejaVuSans.txt
	cd web && npm run --silent build
	@touch $@
$(GEN)/assets.S: api/embed.sh web/dist/.done api/migrations $(wildcard api/migrations/*.sql) \
                 api/openapi.yaml
	@mkdir -p $(@D)
	$(Q)sh api/embed.sh > $@
$(OUT)/assets.o: $(GEN)/assets.S
	@mkdir -p $(@D)
	$(call say,CC,$<)
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
# What takes long by nature: CONTRIBUTING.md lists which test runs where.
test-long: deps-test
	$(MAKE) all
	$(PYTHON) tests/run.py long
check:
	sh tests/lint/check.sh

UNIT_PROGRAMS := $(patsubst tests/%.c,$(OUT)/tests/%,$(UNIT_C))
# One program contains all unit tests. Each test_x is a symbolic link to it and runs the tests of test_x.c.
$(OUT)/tests/unit/runner: $(call objects,tests/unit/runner.c $(UNIT_C)) $(OUT)/cli.a $(OUT)/agent.a $(OUT)/api.a $(OUT)/store.a $(OUT)/debuginfod.a $(OUT)/lib.a
	$(call link_test,-lcmocka)
$(UNIT_PROGRAMS): $(OUT)/tests/unit/runner
	$(Q)ln -sfr $< $@
unit:
	BUILD=$(BUILD) $(PYTHON) tests/run.py unit
unit-programs: $(UNIT_PROGRAMS)
# What the programs are made of, not linked: a compiler's opinion of each file.
objects: $(call objects,$(LIB_C) $(STORE_C) $(foreach room,api cli debuginfod agent,$(call sources,$(room))))
# A thousand times kill -9, of shares and of continuous profiles; `make test` has a short form.
test-crash: all
	PERFOLIO_CRASH_ROUNDS=$${PERFOLIO_CRASH_ROUNDS:-1000} $(PYTHON) -m pytest -q \
	    tests/integration/test_crash.py tests/integration/test_store_crash.py
integration: all
	$(PYTHON) tests/run.py integration
browser: all
	$(PYTHON) tests/run.py browser

FUZZ_PROGRAMS := $(patsubst tests/%.c,build/fuzz/tests/%,$(FUZZ_C))
FUZZ_ARCHIVES := $(patsubst %,build/fuzz/%.a,agent api store debuginfod lib)
build/fuzz/tests/fuzz/fuzz_%: build/fuzz/tests/fuzz/fuzz_%.o build/fuzz/tests/fuzz/runner.o $(FUZZ_ARCHIVES)
	$(call link_test,-fsanitize=fuzzer)
# All fuzzers in one program, which runs the seeds.
build/fuzz/tests/fuzz/seeds: $(patsubst %,%.o,$(FUZZ_PROGRAMS)) build/fuzz/tests/fuzz/runner.o $(FUZZ_ARCHIVES)
	$(call link_test,-fsanitize=fuzzer)
fuzz-programs: $(FUZZ_PROGRAMS)
fuzz-seeds:
	$(MAKE) BUILD=fuzz build/fuzz/tests/fuzz/seeds
	sh tests/fuzz/run.sh 0
# FUZZ_SECONDS=900 for the long run; new inputs are kept beside the seeds only when they are merged.
FUZZ_SECONDS ?= 60
fuzz:
	$(MAKE) BUILD=fuzz fuzz-programs
	sh tests/fuzz/run.sh $(FUZZ_SECONDS)

BENCH_PROGRAMS := $(patsubst tests/%.c,$(OUT)/tests/%,$(BENCH_C))
$(OUT)/tests/bench/%: $(OUT)/tests/bench/%.o $(OUT)/agent.a $(OUT)/api.a $(OUT)/store.a $(OUT)/lib.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
$(OUT)/tests/bench/bench_store $(OUT)/tests/bench/bench_feed: $(OUT)/tests/bench/fleet.o
bench-programs: $(BENCH_PROGRAMS)
$(OUT)/tests/oracle/%: $(OUT)/tests/oracle/%.o $(OUT)/lib.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
# Unwinding beside elfutils: rows of all ELF files of this machine, and of arm64 files of Debian.
$(OUT)/tests/oracle/unwind_% $(OUT)/tests/bench/bench_unwind: LDLIBS += -ldw -lelf
$(OUT)/tests/oracle/unwind_%: $(OUT)/tests/oracle/unwind_%.o $(OUT)/agent.a $(OUT)/lib.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
$(OUT)/tests/oracle/cpython_%: $(OUT)/tests/oracle/cpython_%.o $(OUT)/agent.a $(OUT)/lib.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
# perfoliod itself, in which a test makes calls to the file system fail.
$(OUT)/tests/oracle/faulty_%: $(OUT)/tests/oracle/faulty_%.o $(OUT)/api.a $(OUT)/store.a $(OUT)/lib.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
ORACLE_PROGRAMS := $(patsubst tests/%.c,$(OUT)/tests/%,$(wildcard tests/oracle/*.c))
# Cheap password hashes for the servers of the tests; sanitizers' runtimes refuse to be preloaded after it.
TEST_PRELOAD := $(if $(SANITIZE_$(BUILD)),,$(OUT)/tests/preload/cheap_scrypt.so)
$(OUT)/tests/preload/%.so: tests/preload/%.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(filter-out -fPIE,$(CFLAGS)) -fPIC -shared $< -o $@ -ldl
oracle-programs: $(ORACLE_PROGRAMS) $(TEST_PRELOAD)
# perfolio record and perfolio-agent on Debian's kernels, in QEMU: the running one is make test's.
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
	$(MAKE) BUILD=arm64 agent-programs build/arm64/tests/oracle/unwind_replay
	$(PYTHON) tests/kernels/run.py build/kernels $(ARM_KERNELS)
test-unwind: $(OUT)/tests/oracle/unwind_rows
	$(PYTHON) tests/oracle/elf_files.py | $(OUT)/tests/oracle/unwind_rows
test-unwind-arm64: $(OUT)/tests/oracle/unwind_rows
	sh tests/oracle/arm64_files.sh build/arm64-packages
	$(PYTHON) tests/oracle/elf_files.py build/arm64-packages/files | $(OUT)/tests/oracle/unwind_rows
$(OUT)/tests/s3/%: $(OUT)/tests/s3/%.o $(OUT)/lib.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
# Object store and servers over a real S3 server, which is started for it and stopped again.
test-s3:
	sh deploy/install-packages.sh run build test s3
	$(MAKE) all $(OUT)/tests/s3/object_tool $(OUT)/tests/unit/lib/io/test_object_store
	BUILD=$(BUILD) PYTHON=$(PYTHON) sh tests/s3/run.sh
# Agents of other profilers, from their registries, send to a server; make test skips what they need.
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
# DuckDB reads exports. No lock file: npm would want the packages of all systems for it.
tests/duckdb/node_modules/.done: tests/duckdb/package.json
	cd tests/duckdb && npm install --no-package-lock --no-audit --no-fund
	@touch $@
interop: all $(CLIENTS) tests/duckdb/node_modules/.done
	BUILD=$(BUILD) $(PYTHON) -m pytest -q tests/integration/test_ingest_clients.py \
	    tests/integration/test_export.py
bench: all bench-programs
	$(PYTHON) tests/bench/run.py
# 500 agents and 20 questions a second for BENCH_SECONDS=600.
bench-agents: all bench-programs
	$(PYTHON) tests/bench/run.py agents
# The store, end to end, beside DuckDB from npm. BENCH_* make it short: see tests/bench/store.py.
bench-store: all bench-programs tests/duckdb/node_modules/.done
	$(PYTHON) tests/bench/store.py $(BENCH_PARTS)
# Symbol tables of real files, beside llvm-gsymutil, llvm-symbolizer and gimli's addr2line.
bench-symbols: all $(OUT)/tests/bench/bench_symbols
	$(PYTHON) tests/bench/symbols.py $(BENCH_FILES)
# Unwind tables, beside elfutils.
bench-unwind: $(OUT)/tests/bench/bench_unwind
	$< $(BENCH_FILES)
# What the agent costs, beside perf record. BENCH_SECONDS=5 is its short form.
bench-agent: all
	$(PYTHON) tests/bench/agent.py $(BENCH_PARTS)
# Eight honest clients beside four attackers for SOAK_SECONDS=900.
soak-hostile: all
	$(PYTHON) tests/soak/hostile_tenant.py
# Cost of a frame of the icicle of a million nodes, in loops that are measured beside it.
bench-frames: web/node_modules/.done
	cd web && npm run --silent bench
# Beside other viewers, which npm brings into build/bench-web/; never needed by anything else.
bench-web: all
	node tests/bench/web/run.mjs

install: all
	sh deploy/install.sh "$(OUT)" "$(DESTDIR)" "$(PREFIX)"
test-fresh:
	sh tests/fresh.sh
flags:
	@echo $(filter-out -Wl%,$(CFLAGS))
format: web/node_modules/.done
	git ls-files '*.c' '*.h' | xargs clang-format -i
	git ls-files '*.py' | xargs black --quiet
	git ls-files '*.ts' '*.tsx' '*.mjs' 'web/*.css' | \
	    xargs web/node_modules/.bin/prettier --config web/.prettierrc.json --log-level warn --write
clean:
	rm -rf build web/dist
define HELP
Build and run
  make                      perfoliod, perfolio, perfolio-agent, perfolio-symbolize in build/$(BUILD)
  make run                  installs what is missing, builds, starts on https://localhost:7443
  make install              DESTDIR= PREFIX=/usr/local
  make deps | deps-test     installs the packages for building, for testing too
  make BUILD=debug ...      another kind of build: release debug asan tsan coverage fuzz arm64
  make format | clean | compile_commands.json

Test (CONTRIBUTING.md lists which test runs where)
  make test                 everything that a change needs; make test-long runs the rest
  make one-test T=...       one test: tests/integration/test_x.py::test_y, tests/unit/.../test_x.c[::function],
                            or a part of a browser test's name
  make check | unit | integration | browser | fuzz-seeds      one part of make test
  make fuzz                 FUZZ_SECONDS=60 looks for new inputs
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

# Perfolio. `make run` sets up and starts everything; `make test` installs test needs and runs every
# test. `make help` lists the rest. One build folder per kind of build: BUILD=release (default),
# debug, asan, tsan, coverage or fuzz.
BUILD    ?= release
OUT      := build/$(BUILD)
GEN      := build/generated
PREFIX   ?= /usr/local
DESTDIR  ?=
CC       := $(if $(filter fuzz,$(BUILD)),clang,$(if $(filter default,$(origin CC)),gcc,$(CC)))
PYTHON   ?= /usr/bin/python3
# One short line per file; V=1 shows the whole commands.
Q        := $(if $(V),,@)
say       = @printf '  %-5s %s\n' $(1) $(2)
# Every core, unless -j says otherwise.
MAKEFLAGS := $(MAKEFLAGS) $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all run deps deps-test test check unit integration browser fuzz bench bench-agents bench-store bench-symbols \
        bench-web install clean test-crash test-fresh test-s3 interop format flags help web

LIBRARIES := libh2o-evloop libpq openssl libzstd jansson libdeflate libpcre2-8 libxxhash inih libcurl \
             libpng freetype2 zlib
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla \
        -Wwrite-strings -Wpointer-arith -Wcast-qual -Wformat=2 -Wimplicit-fallthrough \
        -Wswitch-enum -Wconversion -Wdouble-promotion \
        $(if $(findstring clang,$(CC)),,-Wduplicated-cond -Wlogical-op -Wno-format-truncation)
HARDEN := -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection \
          $(if $(filter x86_64,$(shell uname -m)),-fcf-protection) -Wl,-z,relro,-z,now
SANITIZE_asan := -fsanitize=address,undefined -fno-sanitize-recover=all
SANITIZE_tsan := -fsanitize=thread
SANITIZE_fuzz := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
MODE_release  := -O2 $(HARDEN)
MODE_debug    := -Og
MODE_asan     := -O1 $(SANITIZE_asan)
MODE_tsan     := -O1 $(SANITIZE_tsan)
MODE_fuzz     := -O1 $(SANITIZE_fuzz)
MODE_coverage := -O0 --coverage
# Third-party headers are not ours to warn about; h2o needs to be told its event loop.
INCLUDES := $(patsubst -I%,-isystem %,$(shell pkg-config --cflags-only-I $(LIBRARIES) 2>/dev/null))
CFLAGS   := -std=gnu17 -D_GNU_SOURCE -DH2O_USE_EPOLL=1 -I. $(INCLUDES) $(WARN) -g -pthread -fPIE \
            -fno-omit-frame-pointer $(MODE_$(BUILD)) $(EXTRA_CFLAGS)
LDFLAGS  := -pie -pthread $(MODE_$(BUILD)) -Wl,--as-needed
# What only the builder of symbol tables needs; libiberty has no pkg-config file.
DEBUG_LIBS := -liberty $(shell pkg-config --libs libseccomp liblzma 2>/dev/null)
LDLIBS   := $(shell pkg-config --libs $(LIBRARIES) 2>/dev/null) -lm

sources   = $(wildcard $(1)/*.c)
objects   = $(patsubst %,$(OUT)/%.o,$(basename $(1)))
LIB_C    := $(call sources,lib/base) $(call sources,lib/profile) $(call sources,lib/io) \
            $(call sources,lib/symbols)
STORE_C  := $(call sources,store)
API_C    := $(filter-out api/main.c,$(call sources,api))
CLI_C    := $(filter-out cli/main.c,$(call sources,cli))
DEBUG_C  := $(filter-out debuginfod/main.c,$(call sources,debuginfod))
UNIT_C   := $(wildcard tests/unit/*/test_*.c)
FUZZ_C   := $(wildcard tests/fuzz/fuzz_*.c)
BENCH_C  := $(wildcard tests/bench/bench_*.c)
PROGRAMS := $(OUT)/perfoliod $(OUT)/perfolio $(OUT)/perfolio-symbolize

all: $(PROGRAMS)

$(OUT)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS) -MMD -MP -c $< -o $@
build/release/lib/profile/pprof_%.o build/release/lib/profile/otlp_%.o build/release/store/%.o \
    build/release/lib/symbols/symbol_cursor.o: CFLAGS += -O3
# cmocka's macros pass enums as ints, of which clang complains and gcc does not.
build/fuzz/tests/unit/%.o: CFLAGS += -Wno-sign-conversion
$(OUT)/lib.a: $(call objects,$(LIB_C))
$(OUT)/store.a: $(call objects,$(STORE_C))
$(OUT)/api.a: $(call objects,$(API_C)) $(OUT)/assets.o
$(OUT)/cli.a: $(call objects,$(CLI_C))
$(OUT)/debuginfod.a: $(call objects,$(DEBUG_C))
$(OUT)/%.a:
	@rm -f $@
	$(Q)ar rcs $@ $^
$(OUT)/perfoliod: $(OUT)/api/main.o $(OUT)/api.a $(OUT)/store.a $(OUT)/lib.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
$(OUT)/perfolio: $(OUT)/cli/main.o $(OUT)/cli.a $(OUT)/lib.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(OUT)/perfolio-symbolize: $(OUT)/debuginfod/main.o $(OUT)/debuginfod.a $(OUT)/lib.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) $(DEBUG_LIBS) -o $@

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
check:
	sh tests/lint/check.sh

UNIT_PROGRAMS := $(patsubst tests/%.c,$(OUT)/tests/%,$(UNIT_C))
$(OUT)/tests/unit/%: $(OUT)/tests/unit/%.o $(OUT)/cli.a $(OUT)/api.a $(OUT)/store.a $(OUT)/debuginfod.a $(OUT)/lib.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) $(DEBUG_LIBS) -lcmocka -o $@
unit:
	BUILD=$(BUILD) $(PYTHON) tests/run.py unit
unit-programs: $(UNIT_PROGRAMS)
# A thousand times kill -9, of shares and of continuous profiles; `make test` has a short form.
test-crash: all
	PERFOLIO_CRASH_ROUNDS=$${PERFOLIO_CRASH_ROUNDS:-1000} $(PYTHON) -m pytest -q \
	    tests/integration/test_crash.py tests/integration/test_store_crash.py
integration: all
	$(PYTHON) tests/run.py integration
browser: all
	$(PYTHON) tests/run.py browser

FUZZ_PROGRAMS := $(patsubst tests/%.c,build/fuzz/tests/%,$(FUZZ_C))
build/fuzz/tests/fuzz/%: build/fuzz/tests/fuzz/%.o build/fuzz/api.a build/fuzz/store.a build/fuzz/debuginfod.a build/fuzz/lib.a
	$(call say,LINK,$@)
	$(Q)clang -fsanitize=fuzzer $(LDFLAGS) $^ $(LDLIBS) $(DEBUG_LIBS) -o $@
fuzz-programs: $(FUZZ_PROGRAMS)
# FUZZ_SECONDS=900 for the long run; new inputs are kept beside the seeds only when they are merged.
FUZZ_SECONDS ?= 60
fuzz:
	$(MAKE) BUILD=fuzz fuzz-programs
	sh tests/fuzz/run.sh $(FUZZ_SECONDS)

BENCH_PROGRAMS := $(patsubst tests/%.c,$(OUT)/tests/%,$(BENCH_C))
$(OUT)/tests/bench/%: $(OUT)/tests/bench/%.o $(OUT)/api.a $(OUT)/store.a $(OUT)/lib.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
$(OUT)/tests/bench/bench_store $(OUT)/tests/bench/bench_feed: $(OUT)/tests/bench/fleet.o
bench-programs: $(BENCH_PROGRAMS)
$(OUT)/tests/oracle/%: $(OUT)/tests/oracle/%.o $(OUT)/lib.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
$(OUT)/tests/s3/%: $(OUT)/tests/s3/%.o $(OUT)/lib.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@
# Object store and servers over a real S3 server, which is started for it and stopped again.
test-s3:
	sh deploy/install-packages.sh run build test s3
	$(MAKE) all $(OUT)/tests/s3/object_tool $(OUT)/tests/unit/lib_io/test_object_store
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
# Beside other viewers, which npm brings into build/bench-web/; never needed by anything else.
bench-web: all
	node tests/bench/web/run.mjs

install: all
	sh deploy/install.sh "$(OUT)" "$(DESTDIR)" "$(PREFIX)"
test-fresh:
	sh tests/fresh.sh
flags:
	@echo $(filter-out -Wl%,$(CFLAGS))
format:
	git ls-files '*.c' '*.h' | xargs clang-format -i
clean:
	rm -rf build web/dist
help:
	@echo 'make run | test | all | deps | install DESTDIR= PREFIX= | bench | bench-agents | bench-store | bench-symbols BENCH_FILES= | bench-web | fuzz FUZZ_SECONDS= | test-fresh | test-s3 | interop'
	@echo 'parts of make test: check, unit, integration, browser.  BUILD=$(BUILD) (release debug asan tsan coverage)'

-include $(shell find $(OUT) -name '*.d' 2>/dev/null)

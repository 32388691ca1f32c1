#include "tests/unit/test.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/formats/foreign_file.h"
#include "lib/profile/formats/foreign_text.h"
#include "lib/profile/formats/format.h"
#include "lib/profile/profile.h"

#include <dirent.h>
#include <stdio.h>

static const struct {
    const char *file;
    const char *tool;
    const char *way; /* tool that writes a supported format */
} files[] = {
    {"xdebug.cachegrind", "Xdebug", "Excimer"},
    {"callgrind.out", "callgrind", "perfolio record"},
    {"tcmalloc.heap", "tcmalloc", "pprof -proto"},
    {"jemalloc.heap", "jemalloc", "jeprof --collapsed"},
    {"go_heap_debug1.txt", "Go", "without debug=1"},
    {"heaptrack.txt", "heaptrack", "heaptrack_print --print-flamegraph"},
    {"async_profiler_traces.txt", "async-profiler", "asprof -o collapsed"},
    {"async_profiler_flat.txt", "async-profiler", "asprof -o collapsed"},
    {"perf_report.txt", "perf report", "perf script"},
    {"pprof_top.txt", "pprof", "upload the profile"},
    {"heaptrack_recorded.txt", "heaptrack", "heaptrack_print --print-flamegraph"},
    {"massif.out", "massif", "heaptrack_print --print-flamegraph"},
    {"node_prof.log", "node --prof", "node --cpu-prof"},
    {"rbspy_raw.txt", "rbspy", "rbspy report --format collapsed"},
    {"py_spy_dump.txt", "py-spy", "py-spy record --format raw"},
    {"blackfire.txt", "Blackfire", "Excimer"},
    {"bpftrace.txt", "bpftrace", "stackcollapse-bpftrace.pl"},
    {"macos_sample.txt", "macOS", "stackcollapse-sample.awk"},
    {"instruments_copy.txt", "Instruments", "stackcollapse-instruments.pl"},
    {"ghc.prof", "GHC", "ghc-prof-flamegraph"},
    {"jstack.txt", "Java", "stackcollapse-jstack.pl"},
    {"otlp.json", "OpenTelemetry", "perfolio push --format otlp"},
    {"otlp.bin", "OpenTelemetry", "/v1development/profiles"},
    {"firefox.json", "Firefox Profiler", "perfolio record"},
    {"gperftools.bin", "gperftools", "pprof -proto"},
    {"gperftools32.bin", "gperftools", "pprof -proto"},
    {"nettrace.bin", "dotnet-trace", "convert --format Speedscope"},
    {"netperf.bin", ".NET", "collect --format Speedscope"},
    {"xctrace.xml", "Instruments", "inferno-collapse-xctrace"},
    {"flame.svg", "SVG", "folded stacks"},
    {"perf_data.bin", "perf.data", "perf script"},
    {"perf_data_big_endian.bin", "perf.data", "perf script"},
    {"jfr.bin", "JFR", "jfrconv -o pprof"},
    {"hprof.bin", "HPROF", "asprof -e alloc -o collapsed"},
    {"memray.bin", "memray", "py-spy record"},
    {"austin.bin", "Austin", "mojo2austin"},
    {"stackprof.bin", "stackprof", "stackprof --stackcollapse"},
    {"stackprof.json", "stackprof", "stackprof --stackcollapse"},
    {"ghc_eventlog.bin", "GHC", "hs-speedscope"},
    {"go_trace.bin", "Go", "go tool trace -pprof"},
    {"perfetto.bin", "Perfetto", "traceconv profile"},
    {"cprofile.bin", "cProfile", "py-spy record"},
    {"trace_cmd.bin", "trace-cmd", "perf record -g"},
    {"jitdump.bin", "jitdump", "perf script"},
    {"sqlite.bin", "SQLite", ""},
    {"xz.bin", "xz", "unpack it"},
    {"bzip2.bin", "bzip2", "unpack it"},
    {"lz4.bin", "lz4", "unpack it"},
    {"chrome_trace.json", "Chrome trace", "node --cpu-prof"},
    {"chrome.heapprofile", "Chrome heap profile", "@datadog/pprof"},
    {"node.heapsnapshot", "heap snapshot", "@datadog/pprof"},
    {"node_prof.json", "node --prof-process", "node --cpu-prof"},
    {"pyinstrument.json", "pyinstrument", "-r speedscope"},
    {"scalene.json", "Scalene", "py-spy record"},
    {"pyroscope.json", "Pyroscope", "as pprof"},
    {"perf_data.json", "perf data convert", "perf script"},
    {"dhat.json", "DHAT", "heaptrack_print"},
    {"ghc.json", "GHC", "ghc-prof-flamegraph"},
    {"safari.json", "Safari", "speedscope.app"},
    {"flame_tree.json", "flame graph", "folded stacks"},
    {"xhprof.json", "XHProf", "Excimer"},
};

static void read_file(const char *name, struct buf *text)
{
    char path[200];
    snprintf(path, sizeof(path), "tests/data/foreign/%s", name);
    FILE *file = fopen(path, "rbe");
    assert_non_null(file);
    uint8_t *space = buf_reserve(text, 1 << 16);
    buf_commit(text, fread(space, 1, 1 << 16, file));
    fclose(file);
}

static void files_of_other_tools_are_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        buf_auto text;
        struct err err = {0};
        struct profile *profile = NULL;
        buf_init(&text, 1 << 20);
        read_file(files[i].file, &text);
        assert_int_equal(format_decode(buf_span(&text), NULL, NULL, &profile, &err),
                         ERR_UNSUPPORTED);
        if (!strstr(err.message, files[i].tool) || !strstr(err.message, files[i].way))
            print_error("%s: %s\n", files[i].file, err.message);
        assert_non_null(strstr(err.message, files[i].tool));
        assert_non_null(strstr(err.message, files[i].way));
        assert_non_null(strstr(err.message, "supported formats: pprof"));
    }
}

static void every_file_is_covered(void **state)
{
    (void)state;
    size_t count = 0;
    DIR *folder = opendir("tests/data/foreign");
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder));)
        count += entry->d_name[0] != '.' && strcmp(entry->d_name, "README.md") != 0;
    closedir(folder);
    assert_int_equal(count, sizeof(files) / sizeof(files[0]));
}

/* Profiles that begin like a file of another tool. */
static void profiles_are_not_taken_for_foreign_files(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "Nettrace;read 3\n", "go 1.22 trace;main 3\n", "MOJO;f 2\n",
        "hdrb;hetb 2\n",     "rbspy;main 4\n",         "memray;main 4\n",
        "JiT;f 4\n",         "@[main];f 3\nb]: 3\n",   "Process 1;main 3\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct err err = {0};
        struct profile *profile = NULL;
        assert_int_equal(format_decode(span_text(texts[i]), NULL, NULL, &profile, &err), ERR_NONE);
        profile_destroy(profile);
    }
    static const struct span pprof[] = {
        {(const uint8_t *)"\x0a\x04\x08\x01\x10\x02", 6}, /* a ValueType */
        {(const uint8_t *)"\x0a\x00\x0a\x00", 4},         /* empty messages */
        {(const uint8_t *)"\x0a", 1},
        {(const uint8_t *)"\x0a\x05\x0a", 3},
        {(const uint8_t *)"", 0},
    };
    for (size_t i = 0; i < sizeof(pprof) / sizeof(pprof[0]); i++)
        assert_null(foreign_file_find_protobuf(pprof[i]));
}

static void supported_files_are_still_read(void **state)
{
    (void)state;
    const struct profile_limits limits = {.was_accepted = true};
    static const char *const texts[] = {"version: 1\ncreator: xdebug 3\nevents: Time\n12 5\n",
                                        "one\ntwo\nthree\nfour\nmain;a 5\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct err err = {0};
        struct profile *profile = NULL;
        assert_int_equal(format_decode(span_text(texts[i]), NULL, NULL, &profile, &err),
                         ERR_UNSUPPORTED);
        assert_int_equal(format_decode(span_text(texts[i]), &limits, NULL, &profile, &err),
                         ERR_NONE);
        assert_int_not_equal(profile->sample_count, 0);
        profile_destroy(profile);
    }
}

static void folded_stacks_are_not_taken_for_foreign_files(void **state)
{
    (void)state;
    static const char *const stacks[] = {"",
                                         "main;a 1\n",
                                         "v 1\nx 5\nmain 3\n",
                                         "events: 4\nmain 3\n",
                                         "--- start, 5%, of 3\nmain;a 4\n",
                                         "goroutine profile 3\n",
                                         "heap;profile: 3\n"};
    for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++)
        assert_null(foreign_text_find(span_text(stacks[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_other_tools_are_refused_by_name),
        cmocka_unit_test(every_file_is_covered),
        cmocka_unit_test(profiles_are_not_taken_for_foreign_files),
        cmocka_unit_test(supported_files_are_still_read),
        cmocka_unit_test(folded_stacks_are_not_taken_for_foreign_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/test.h"

#include "lib/profile/foreign_text.h"
#include "lib/profile/format.h"
#include "lib/profile/profile.h"

#include <stdio.h>

static const struct {
    const char *file;
    const char *tool;
    const char *way; /* to a profile */
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
};

static void read_file(const char *name, struct buf *text)
{
    char path[200];
    snprintf(path, sizeof(path), "tests/data/foreign/%s", name);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    uint8_t *room = buf_reserve(text, 1 << 16);
    buf_commit(text, fread(room, 1, 1 << 16, file));
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
        assert_non_null(strstr(err.message, "understood are pprof"));
    }
}

static void what_was_accepted_before_is_still_read(void **state)
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

static void stacks_are_none_of_them(void **state)
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
        cmocka_unit_test(what_was_accepted_before_is_still_read),
        cmocka_unit_test(stacks_are_none_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

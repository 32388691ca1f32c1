#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "tests/unit/lib/profile/stacks.h"

#include "lib/base/compress.h"
#include "lib/profile/formats/format.h"
#include "lib/profile/pprof/pprof.h"

#include <unistd.h>

static const char folded[] = "a;b 5\na;b;c 5\na;b;d 4\n";
static const char perf[] = "a 1 1.0: 5 cycles: \n\t1 b (x)\n\t2 a (x)\n";
static const char cpuprofile[] =
    "{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"a\"}}],\"startTime\":0,"
    "\"endTime\":9,\"samples\":[1],\"timeDeltas\":[4]}";
static const char speedscope[] =
    "{\"profiles\":[{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[0]],\"weights\":[2]}],"
    "\"shared\":{\"frames\":[{\"name\":\"a\"}]}}";

static void assert_format(struct span bytes, enum format expected, const char *stacks)
{
    struct profile *profile;
    struct err err = {0};
    enum format format = FORMAT_COUNT;
    enum err_code code = format_decode(bytes, NULL, &format, &profile, &err);
    if (code)
        print_error("%s\n", err.message);
    assert_int_equal(code, ERR_NONE);
    assert_int_equal(format, expected);
    assert_stacks(profile, "", stacks);
    profile_destroy(profile);
}

static void the_content_determines_the_format(void **state)
{
    (void)state;
    assert_format(span_text(folded), FORMAT_FOLDED, folded);
    assert_format(span_text(perf), FORMAT_PERF_SCRIPT, "a;b 5\n");
    assert_format(span_text(cpuprofile), FORMAT_CPUPROFILE, "a 5\n");
    assert_format(span_text(speedscope), FORMAT_SPEEDSCOPE, "a 2\n");
    assert_format(SPAN_LITERAL("{main};f 3\n"), FORMAT_FOLDED, "{main};f 3\n");
    assert_format(SPAN_LITERAL("[unknown];f 3\n"), FORMAT_FOLDED, "[unknown];f 3\n");
    assert_format(SPAN_LITERAL("a\x01;f 3\n"), FORMAT_FOLDED, "a ;f 3\n");
}

static void encode_folded(struct buf *output)
{
    struct profile *profile;
    struct err err;
    assert_int_equal(format_decode(span_text(folded), NULL, NULL, &profile, &err), ERR_NONE);
    assert_int_equal(pprof_encode(profile, output, &err), ERR_NONE);
    profile_destroy(profile);
}

static void pprof_may_be_raw_gzip_or_zstd(void **state)
{
    (void)state;
    buf_auto raw, packed;
    struct err err;
    buf_init(&raw, 1 << 16);
    buf_init(&packed, 1 << 16);
    encode_folded(&raw);
    assert_format(buf_span(&raw), FORMAT_PPROF, folded);
    assert_int_equal(compress_gzip(buf_span(&raw), 6, &packed, &err), ERR_NONE);
    assert_format(buf_span(&packed), FORMAT_PPROF, folded);
    buf_clear(&packed);
    assert_int_equal(compress_zstd(buf_span(&raw), 3, &packed, &err), ERR_NONE);
    assert_format(buf_span(&packed), FORMAT_PPROF, folded);
    buf_clear(&packed);
    assert_int_equal(compress_gzip(span_text(folded), 6, &packed, &err), ERR_NONE);
    assert_format(buf_span(&packed), FORMAT_FOLDED, folded);
}

static void byte_order_marks_and_utf16_are_understood(void **state)
{
    (void)state;
    assert_format(SPAN_LITERAL("\xef\xbb\xbf"
                               "a;b 1\n"),
                  FORMAT_FOLDED, "a;b 1\n");
    assert_format(SPAN_LITERAL("\xff\xfe"
                               "a\0;\0\x1e\x01 \0"
                               "2\0\r\0\n\0"),
                  FORMAT_FOLDED, "a;\xc4\x9e 2\n");
    assert_format(SPAN_LITERAL("\xfe\xff\0a\0;\xd8\x34\xdd\x1e\0 \0"
                               "2"),
                  FORMAT_FOLDED, "a;\xf0\x9d\x84\x9e 2\n");
}

static enum err_code decode_any(struct span bytes, const struct profile_limits *limits,
                                struct profile **ret_profile, struct err *err)
{
    return format_decode(bytes, limits, NULL, ret_profile, err);
}

static void unknown_formats_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum err_code code;
        const char *words;
    } cases[] = {
        {"", ERR_INVALID, "empty"},
        {"hello world\n", ERR_UNSUPPORTED, "supported formats: pprof"},
        {"<!DOCTYPE html> 12", ERR_UNSUPPORTED, "HTML"},
        {"PERFILE2xxx", ERR_UNSUPPORTED, "perf script"},
        {"{\"traceEvents\":[]}", ERR_UNSUPPORTED, "Chrome trace"},
        {"[{\"ph\":1}]", ERR_UNSUPPORTED, "node --cpu-prof"},
        {"{\"head\":{\"selfSize\":1}}", ERR_UNSUPPORTED, "heap profile"},
        {"{\"x\":{\"nodes\":1}}", ERR_UNSUPPORTED, "not a supported profile"},
        {"{\"nodes\":[}", ERR_INVALID, "line 1"},
        {"\x0a\x03\x08", ERR_INVALID, ""},
        {"\x1f\x8b\x08 nonsense", ERR_INVALID, "gzip"},
        {"\x28\xb5\x2f\xfd", ERR_INVALID, "zstd"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_refused(decode_any, cases[i].text, NULL, cases[i].code, cases[i].words);
    struct profile *profile = NULL;
    struct err err = {0};
    assert_int_equal(decode_any(SPAN_LITERAL("\x02\x00\x01"), NULL, &profile, &err),
                     ERR_UNSUPPORTED);
    assert_int_equal(decode_any(SPAN_LITERAL("\xff\xfe"
                                             "a"),
                                NULL, &profile, &err),
                     ERR_INVALID);
}

static void a_bomb_is_refused_at_the_limit(void **state)
{
    (void)state;
    buf_auto packed;
    struct err err;
    buf_init(&packed, 1 << 20);
    char *text = mem_alloc(1 << 20, 1);
    memset(text, 'a', 1 << 20);
    assert_int_equal(compress_gzip(span_of(text, 1 << 20), 1, &packed, &err), ERR_NONE);
    mem_free(text);
    const struct profile_limits limits = {.raw_bytes = 100000};
    struct profile *profile = NULL;
    assert_int_equal(decode_any(buf_span(&packed), &limits, &profile, &err), ERR_TOO_LARGE);
    assert_non_null(strstr(err.message, "100000"));
    assert_refused(decode_any, folded, &(struct profile_limits){.raw_bytes = 10}, ERR_TOO_LARGE,
                   "limit is 10");
}

static void names_of_formats_are_found(void **state)
{
    (void)state;
    for (int i = 0; i < FORMAT_COUNT; i++) {
        enum format format = FORMAT_COUNT;
        assert_true(format_find(span_text(format_name((enum format)i)), &format));
        assert_int_equal(format, i);
        assert_true(strlen(format_extension(format)) > 1);
        assert_true(strlen(format_media_type(format)) > 1);
    }
    enum format format;
    assert_false(format_find(SPAN_LITERAL("pprof2"), &format));
}

/* Files of other projects in ../shared/data (see its README), if they exist. */
static void files_of_other_tools_decode(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum format format;
        int64_t total; /* of the default sample type, as computed by another reader */
    } files[] = {
        {"Chrome-65-simple.cpuprofile", FORMAT_CPUPROFILE, 36317},
        {"Chrome-65-sucrase.cpuprofile", FORMAT_CPUPROFILE, 0},
        {"linux-perf-forks.linux-perf.txt", FORMAT_PERF_SCRIPT, 0},
        {"linux-perf-rust-mangled.linux-perf.txt", FORMAT_PERF_SCRIPT, 0},
        {"linux-perf-simple-with-header.linux-perf.txt", FORMAT_PERF_SCRIPT, 0},
        {"linux-perf-simple-with-pid.linux-perf.txt", FORMAT_PERF_SCRIPT, 0},
        {"linux-perf-system-wide.linux-perf.txt", FORMAT_PERF_SCRIPT, 0},
        {"speedscope-0.0.1-simple.speedscope.json", FORMAT_SPEEDSCOPE, 14},
        {"speedscope-0.1.2-simple-sampled.speedscope.json", FORMAT_SPEEDSCOPE, 14000000000},
        {"speedscope-0.6.0-two-sampled.speedscope.json", FORMAT_SPEEDSCOPE, 28000000000},
        {"stackcollapse-perf-vertx-stacks-01-collapsed-all.txt", FORMAT_FOLDED, 0},
        {"stackcollapse-recursion.txt", FORMAT_FOLDED, 10},
        {"stackcollapse-simple-crlf.txt", FORMAT_FOLDED, 14},
        {"stackcollapse-simple-utf16-le.txt", FORMAT_FOLDED, 14},
        {"stackcollapse-simple-with-invalids.txt", FORMAT_FOLDED, 14},
    };
    if (access("../shared/data/formats", R_OK) != 0)
        skip();
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[256];
        snprintf(path, sizeof(path), "../shared/data/formats/%s", files[i].path);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        uint8_t *bytes = mem_alloc(2 << 20, 1);
        size_t size = fread(bytes, 1, 2 << 20, file);
        fclose(file);
        struct profile *profile;
        struct err err;
        enum format format;
        assert_int_equal(format_decode(span_of(bytes, size), NULL, &format, &profile, &err), 0);
        assert_int_equal(format, files[i].format);
        mem_free(bytes); /* the profile does not refer to them */
        arena_auto arena = arena_create();
        const struct view *view;
        const struct view_options options = {.sample_type = SPAN_LITERAL("")};
        assert_int_equal(view_create(arena, profile, &options, &view, &err), ERR_NONE);
        assert_true(view->total[VIEW_SIDE_B] > 0);
        if (files[i].total)
            assert_int_equal(view->total[VIEW_SIDE_B], files[i].total);
        profile_destroy(profile);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_content_determines_the_format),
        cmocka_unit_test(pprof_may_be_raw_gzip_or_zstd),
        cmocka_unit_test(byte_order_marks_and_utf16_are_understood),
        cmocka_unit_test(unknown_formats_are_refused),
        cmocka_unit_test(a_bomb_is_refused_at_the_limit),
        cmocka_unit_test(names_of_formats_are_found),
        cmocka_unit_test(files_of_other_tools_decode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

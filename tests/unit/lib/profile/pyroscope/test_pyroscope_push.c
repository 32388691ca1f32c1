/* Requests as Pyroscope's clients send them, built by hand, and the resulting profiles. */
#include "lib/base/err.h"
#include "tests/unit/lib/profile/batches.h"
#include "tests/unit/lib/profile/maker.h"

#include "lib/base/arena.h"
#include "lib/base/compress.h"
#include "lib/profile/batch/batch_from_profile.h"
#include "lib/profile/formats/format.h"
#include "lib/profile/pprof/pprof.h"
#include "lib/profile/pyroscope/pyroscope_push.h"
#include "tests/unit/lib/profile/protobuf.h"

#include <stdio.h>

enum { REQUEST_MAX = 1 << 20 };

/* A CPU profile of an agent that samples at a rate, compressed or not. */
static void put_pprof(struct buf *bytes, bool is_gzip)
{
    struct err err;
    buf_auto raw;
    buf_init(&raw, REQUEST_MAX);
    struct maker maker = NEW_MAKER("samples/count", "cpu/nanoseconds");
    set_period(&maker, "cpu", "nanoseconds", 10000000);
    profile_builder_fields(maker.builder)->duration_ns = 15000000000;
    ADD(&maker, "work", 3, 30000000);
    struct profile *profile = take(&maker);
    assert_int_equal(pprof_encode(profile, &raw, &err), ERR_NONE);
    profile_destroy(profile);
    if (is_gzip)
        assert_int_equal(compress_gzip(buf_span(&raw), 1, bytes, &err), ERR_NONE);
    else
        buf_append_span(bytes, buf_span(&raw));
}

/* One series with alternating names and values, and one sample. */
static void put_series_message(struct buf *body, const char *const *labels, struct span raw,
                               const char *id)
{
    buf_auto series;
    buf_init(&series, REQUEST_MAX);
    for (; *labels; labels += 2) {
        buf_auto pair;
        buf_init(&pair, 10000);
        protobuf_text(&pair, 1, labels[0]);
        protobuf_text(&pair, 2, labels[1]);
        protobuf_bytes(&series, 1, pair.data, pair.size);
    }
    buf_auto sample;
    buf_init(&sample, REQUEST_MAX);
    protobuf_bytes(&sample, 1, raw.data, raw.size);
    if (id)
        protobuf_text(&sample, 2, id);
    protobuf_bytes(&series, 2, sample.data, sample.size);
    protobuf_bytes(body, 1, series.data, series.size);
}
#define LABELS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct pyroscope_push *parse(struct arena *arena, struct span body,
                                          enum connect_encoding encoding)
{
    const struct pyroscope_push *push = NULL;
    struct err err = {0};
    enum err_code code = pyroscope_push_parse(arena, body, encoding, NULL, NULL, &push, &err);
    if (code)
        print_error("%s\n", err.message);
    assert_int_equal(code, ERR_NONE);
    return push;
}

/* Compares all profiles of a request, as text. */
static void assert_push(struct span body, enum connect_encoding encoding, const char *expected)
{
    arena_auto arena = arena_create();
    const struct pyroscope_push *push = parse(arena, body, encoding);
    buf_auto text;
    buf_init(&text, 1 << 20);
    for (uint32_t i = 0; i < push->profile_count; i++) {
        const struct pyroscope_push_series *series = &push->series[push->profiles[i].series];
        struct batch_source source = {.name = series->name,
                                      .labels = series->labels,
                                      .label_count = series->label_count,
                                      .is_ready = series->is_ready};
        struct batch *batch;
        struct err err = {0};
        assert_int_equal(format_decode(push->profiles[i].bytes, NULL, NULL, &source.profile, &err),
                         ERR_NONE);
        assert_int_equal(batch_from_profile(&source, NULL, &batch, &err), ERR_NONE);
        put_batch(batch, &text);
        batch_destroy(batch);
    }
    buf_append_byte(&text, '\0');
    assert_string_equal((const char *)text.data, expected);
}

#define ROWS(labels)                                                                               \
    "process_cpu:samples:count:cpu:nanoseconds:delta{" labels                                      \
    "} 1700000000000000000 15000000000 10000000\n  main;work 3\n"                                  \
    "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{" labels                                    \
    "} 1700000000000000000 15000000000 10000000\n  main;work 30000000\n"

/* pyroscope-rs, on which the agents for Python and Ruby are based: one series with one sample. */
static void reads_what_rust_python_and_ruby_send(void **state)
{
    (void)state;
    buf_auto body, raw;
    buf_init(&body, REQUEST_MAX);
    buf_init(&raw, REQUEST_MAX);
    put_pprof(&raw, true);
    put_series_message(&body,
                       LABELS("service_name", "rides.py", "__name__", "process_cpu",
                              "pyroscope_spy", "pyspy", "__session_id__", "00ff", "region", "eu"),
                       buf_span(&raw), "0194-uuid");
    assert_push(buf_span(&body), CONNECT_PROTOBUF,
                ROWS("pyroscope_spy=pyspy,region=eu,service_name=rides.py"));
    arena_auto arena = arena_create();
    const struct pyroscope_push *push = parse(arena, buf_span(&body), CONNECT_PROTOBUF);
    assert_int_equal(push->series_count, 1);
    assert_true(span_equal_text(push->profiles[0].id, "0194-uuid"));
    assert_false(push->series[0].is_ready);
}

/* .NET: not compressed, no ID. */
static void reads_what_dotnet_sends(void **state)
{
    (void)state;
    buf_auto body, raw;
    buf_init(&body, REQUEST_MAX);
    buf_init(&raw, REQUEST_MAX);
    put_pprof(&raw, false);
    put_series_message(&body,
                       LABELS("__name__", "process_cpu", "service_name", "rideshare",
                              "pyroscope_spy", "dotnetspy", "runtime_id", "1-2"),
                       buf_span(&raw), NULL);
    assert_push(buf_span(&body), CONNECT_PROTOBUF,
                ROWS("pyroscope_spy=dotnetspy,runtime_id=1-2,service_name=rideshare"));
}

/* Alloy: several series in one request, scraped ones with __delta__, those of eBPF without a
 * service. */
static void reads_what_alloy_sends(void **state)
{
    (void)state;
    buf_auto body, raw, heap;
    buf_init(&body, REQUEST_MAX);
    buf_init(&raw, REQUEST_MAX);
    buf_init(&heap, REQUEST_MAX);
    put_pprof(&raw, true);
    struct maker maker = NEW_MAKER("alloc_space/bytes", "inuse_space/bytes");
    ADD(&maker, "work", 512, 64);
    struct profile *profile = take(&maker);
    struct err err;
    assert_int_equal(pprof_encode(profile, &heap, &err), ERR_NONE);
    profile_destroy(profile);
    put_series_message(&body,
                       LABELS("__name__", "memory", "__delta__", "false", "service_name", "api",
                              "instance", "10.0.0.1:80"),
                       buf_span(&heap), "1");
    put_series_message(&body, LABELS("__name__", "memory", "service_name", "api"), buf_span(&heap),
                       "2");
    put_series_message(
        &body,
        LABELS("__name__", "process_cpu", "container", "", "comm", "x", "__container_id__", "12"),
        buf_span(&raw), "3");
    assert_push(
        buf_span(&body), CONNECT_PROTOBUF,
        "memory:alloc_space:bytes:::delta{instance=10.0.0.1:80,service_name=api}"
        " 1700000000000000000 0 0\n  main;work 512\n"
        "memory:inuse_space:bytes::{instance=10.0.0.1:80,service_name=api}"
        " 1700000000000000000 0 0\n  main;work 64\n"
        "memory:alloc_space:bytes::{service_name=api}"
        " 1700000000000000000 0 0\n  main;work 512\n"
        "memory:inuse_space:bytes::{service_name=api}"
        " 1700000000000000000 0 0\n  main;work 64\n" ROWS("comm=x,service_name=unknown_service"));
}

/* profilecli upload: the types determine the name of the file's profile. */
static void reads_what_profilecli_sends(void **state)
{
    (void)state;
    buf_auto body, raw;
    buf_init(&body, REQUEST_MAX);
    buf_init(&raw, REQUEST_MAX);
    put_pprof(&raw, true);
    put_series_message(&body, LABELS("service_name", "profilecli-upload", "job", "x"),
                       buf_span(&raw), "1");
    assert_push(buf_span(&body), CONNECT_PROTOBUF, ROWS("job=x,service_name=profilecli-upload"));
}

static void put_base64(struct buf *text, struct span bytes, const char *alphabet, bool is_padded)
{
    for (size_t i = 0; i < bytes.size; i += 3) {
        uint32_t bits = (uint32_t)bytes.data[i] << 16;
        if (i + 1 < bytes.size)
            bits |= (uint32_t)bytes.data[i + 1] << 8;
        if (i + 2 < bytes.size)
            bits |= bytes.data[i + 2];
        for (size_t j = 0; j < 4; j++) {
            if (i + j <= bytes.size)
                buf_append_byte(text, (uint8_t)alphabet[bits >> (18 - 6 * j) & 63]);
            else if (is_padded)
                buf_append_byte(text, '=');
        }
    }
}

static void reads_json(void **state)
{
    (void)state;
    static const char *const alphabets[] = {
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"};
    buf_auto raw;
    buf_init(&raw, REQUEST_MAX);
    put_pprof(&raw, true);
    for (int i = 0; i < 4; i++) {
        buf_auto body;
        buf_init(&body, REQUEST_MAX);
        buf_printf(&body,
                   "{\"series\":[{\"labels\":[{\"name\":\"__name__\",\"value\":\"process_cpu\"},"
                   "{\"name\":\"service_name\",\"value\":\"s\"}],\"annotations\":[],\"samples\":"
                   "[{\"%s\":\"",
                   i % 2 ? "raw_profile" : "rawProfile");
        put_base64(&body, buf_span(&raw), alphabets[i % 2], i / 2);
        buf_append_text(&body, "\",\"ID\":\"7\"},{\"rawProfile\":\"\"},{}]}]}");
        assert_push(buf_span(&body), CONNECT_JSON, ROWS("service_name=s"));
    }
}

static void an_empty_request_is_valid(void **state)
{
    (void)state;
    assert_push(span_of(NULL, 0), CONNECT_PROTOBUF, "");
    assert_push(SPAN_LITERAL("{}"), CONNECT_JSON, "");
    assert_push(SPAN_LITERAL("{\"series\":null}"), CONNECT_JSON, "");
    assert_push(SPAN_LITERAL("{\"series\":[{\"labels\":null}]}"), CONNECT_JSON, "");
    /* Unknown fields, of every wire type. */
    assert_push(
        span_of("\x18\x01\x21\x01\x02\x03\x04\x05\x06\x07\x08\x2d\x01\x02\x03\x04\x12\x01x", 19),
        CONNECT_PROTOBUF, "");
}

static void assert_refused(struct span body, enum connect_encoding encoding,
                           const struct batch_limits *limits, enum err_code expected,
                           const char *words)
{
    arena_auto arena = arena_create();
    const struct pyroscope_push *push = NULL;
    struct err err = {0};
    assert_int_equal(pyroscope_push_parse(arena, body, encoding, limits, NULL, &push, &err),
                     expected);
    assert_null(push);
    if (!strstr(err.message, words))
        print_error("message: %s\n", err.message);
    assert_non_null(strstr(err.message, words));
}

static void reports_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *body, *words;
    } cases[] = {
        {"", "PushRequest: line 1, column 1: the text is empty"},
        {"[]", "not an object with a list \"series\""},
        {"{\"series\":{}}", "not an object with a list \"series\""},
        {"{\"series\":[1]}", "series 1 is not an object"},
        {"{\"series\":[{},{\"labels\":[2]}]}", "series 2: a label is not an object"},
        {"{\"series\":[{\"samples\":[3]}]}", "series 1: a sample is not an object"},
        {"{\"series\":[{\"samples\":[{\"rawProfile\":\"a\"}]}]}", "in base64"},
        {"{\"series\":[{\"samples\":[{\"rawProfile\":\"ab*d\"}]}]}", "in base64"},
        {"{\"series\":[{\"samples\":[{\"rawProfile\":\"ab=d\"}]}]}", "in base64"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_refused(span_text(cases[i].body), CONNECT_JSON, NULL, ERR_INVALID, cases[i].words);
    assert_refused(SPAN_LITERAL("\x0a\x05"), CONNECT_PROTOBUF, NULL, ERR_INVALID,
                   "it is malformed");
    assert_refused(SPAN_LITERAL("\x0a\x02\x0a\x05"), CONNECT_PROTOBUF, NULL, ERR_INVALID,
                   "a series is malformed");
    assert_refused(SPAN_LITERAL("\x0a\x04\x0a\x02\x0a\x05"), CONNECT_PROTOBUF, NULL, ERR_INVALID,
                   "a label is malformed");
    assert_refused(SPAN_LITERAL("\x0a\x04\x12\x02\x0a\x05"), CONNECT_PROTOBUF, NULL, ERR_INVALID,
                   "a sample is malformed");
}

static void limits_hold(void **state)
{
    (void)state;
    buf_auto body;
    buf_init(&body, REQUEST_MAX);
    for (int i = 0; i < 3; i++)
        put_series_message(&body, LABELS("a", "1", "b", "2"), SPAN_LITERAL("x"), NULL);
    const struct batch_limits series = {.series = 2}, profiles = {.profiles = 2};
    assert_refused(buf_span(&body), CONNECT_PROTOBUF, &series, ERR_TOO_LARGE, "3 series");
    assert_refused(buf_span(&body), CONNECT_PROTOBUF, &profiles, ERR_TOO_LARGE, "2 profiles");
    const char *many[201] = {NULL};
    for (int i = 0; i < 200; i++)
        many[i] = "x";
    buf_clear(&body);
    put_series_message(&body, many, SPAN_LITERAL("x"), NULL);
    assert_refused(buf_span(&body), CONNECT_PROTOBUF, NULL, ERR_TOO_LARGE, "series 1 has 100 la");
}

static void responses_follow_the_protocol(void **state)
{
    (void)state;
    static const struct {
        enum err_code code;
        int status;
        const char *name;
    } cases[] = {
        {ERR_INVALID, 400, "invalid_argument"},    {ERR_TOO_LARGE, 400, "invalid_argument"},
        {ERR_NOT_FOUND, 404, "not_found"},         {ERR_UNAUTHENTICATED, 401, "unauthenticated"},
        {ERR_FORBIDDEN, 403, "permission_denied"}, {ERR_RATE_LIMITED, 429, "resource_exhausted"},
        {ERR_QUOTA, 429, "resource_exhausted"},    {ERR_BUSY, 503, "unavailable"},
        {ERR_TIMEOUT, 504, "deadline_exceeded"},   {ERR_CANCELLED, 499, "canceled"},
        {ERR_INTERNAL, 500, "internal"},           {ERR_IO, 503, "unavailable"},
        {ERR_CORRUPT, 500, "data_loss"},           {ERR_CONFLICT, 409, "already_exists"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(connect_status(cases[i].code), cases[i].status);
        assert_string_equal(connect_code(cases[i].code), cases[i].name);
    }
    buf_auto body;
    buf_init(&body, 1000);
    connect_write_empty(CONNECT_PROTOBUF, &body);
    assert_int_equal(body.size, 0);
    connect_write_empty(CONNECT_JSON, &body);
    assert_true(span_equal_text(buf_span(&body), "{}"));
    enum connect_encoding encoding = CONNECT_JSON;
    assert_true(connect_find_encoding(SPAN_LITERAL("Application/Proto ; x=y"), &encoding));
    assert_int_equal(encoding, CONNECT_PROTOBUF);
    assert_true(connect_find_encoding(SPAN_LITERAL("application/json; charset=utf-8"), &encoding));
    assert_int_equal(encoding, CONNECT_JSON);
    assert_false(connect_find_encoding(SPAN_LITERAL("application/grpc"), &encoding));
    assert_false(connect_find_encoding(SPAN_LITERAL(""), &encoding));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_rust_python_and_ruby_send),
        cmocka_unit_test(reads_what_dotnet_sends),
        cmocka_unit_test(reads_what_alloy_sends),
        cmocka_unit_test(reads_what_profilecli_sends),
        cmocka_unit_test(reads_json),
        cmocka_unit_test(an_empty_request_is_valid),
        cmocka_unit_test(reports_what_is_wrong),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(responses_follow_the_protocol),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Requests as agents and scripts post them to /ingest, and the resulting profiles. */
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "tests/unit/lib/profile/batches.h"
#include "tests/unit/lib/profile/maker.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/compress.h"
#include "lib/profile/pprof/pprof.h"
#include "lib/profile/pyroscope/pyroscope_ingest.h"

#include <stdio.h>

static const int64_t now_ns = INT64_C(1767323045678901234);

static struct pyroscope_ingest_query parse(struct arena *arena, const char *text)
{
    struct pyroscope_ingest_query query;
    struct err err = {0};
    enum err_code code = pyroscope_ingest_parse_query(arena, span_text(text), now_ns, &query, &err);
    if (code)
        print_error("%s\n", err.message);
    assert_int_equal(code, ERR_NONE);
    return query;
}

/* Compares the profile of a request, as text; NULL: no profile. */
static void assert_ingest(const char *query_text, const char *content_type, struct span body,
                          const char *expected)
{
    arena_auto arena = arena_create();
    struct pyroscope_ingest_query query = parse(arena, query_text);
    struct batch_source source;
    struct err err = {0};
    enum err_code code =
        pyroscope_ingest_decode(arena, &query, span_text(content_type), body, NULL, &source, &err);
    if (code)
        print_error("%s\n", err.message);
    assert_int_equal(code, ERR_NONE);
    if (!expected) {
        assert_null(source.profile);
        return;
    }
    struct batch *batch;
    assert_int_equal(batch_from_profile(&source, NULL, &batch, &err), ERR_NONE);
    assert_batch(batch, expected);
    batch_destroy(batch);
}

static void assert_refused(const char *query_text, const char *content_type, struct span body,
                           enum err_code expected, const char *words)
{
    arena_auto arena = arena_create();
    struct pyroscope_ingest_query query;
    struct batch_source source;
    struct err err = {0};
    enum err_code code =
        pyroscope_ingest_parse_query(arena, span_text(query_text), now_ns, &query, &err);
    if (!code)
        code = pyroscope_ingest_decode(arena, &query, span_text(content_type), body, NULL, &source,
                                       &err);
    assert_int_equal(code, expected);
    if (!strstr(err.message, words))
        print_error("message: %s\n", err.message);
    assert_non_null(strstr(err.message, words));
}

static void encode(struct maker *maker, struct buf *body)
{
    struct err err;
    struct profile *profile = take(maker);
    buf_auto raw;
    buf_init(&raw, 1 << 20);
    assert_int_equal(pprof_encode(profile, &raw, &err), ERR_NONE);
    profile_destroy(profile);
    assert_int_equal(compress_gzip(buf_span(&raw), 1, body, &err), ERR_NONE);
}

static void put_part(struct buf *body, const char *name, const char *filename)
{
    buf_printf(body,
               "--b0und\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\n"
               "Content-Type: application/octet-stream\r\n\r\n",
               name, filename);
}

#define FORM_TYPE "multipart/form-data; boundary=b0und"

/* ---- agents ---- */

/* pyroscope-go: heap of the last 15 s with explicit types, times in nanoseconds. */
static void reads_what_go_sends(void **state)
{
    (void)state;
    buf_auto body;
    buf_init(&body, 1 << 20);
    put_part(&body, "profile", "profile.pprof");
    struct maker maker = NEW_MAKER("alloc_objects/count", "inuse_space/bytes");
    set_period(&maker, "space", "bytes", 524288);
    profile_builder_fields(maker.builder)->time_ns = 0;
    ADD(&maker, "work", 7, 4096);
    encode(&maker, &body);
    buf_append_text(&body, "\r\n");
    put_part(&body, "sample_type_config", "sample_type_config.json");
    buf_append_text(&body, "{\"alloc_objects\":{\"units\":\"objects\"},\"inuse_space\":{\"units\":"
                           "\"bytes\",\"aggregation\":\"average\"}}\r\n--b0und--\r\n");
    assert_ingest("aggregationType=sum&from=1767323000000000000&name=simple.golang.app%7Bhost%3D"
                  "web-1%2C__session_id__%3D0a1b%7D&sampleRate=100&spyName=gospy&units=samples&"
                  "until=1767323015000000000",
                  FORM_TYPE, buf_span(&body),
                  "memory:alloc_objects:count:space:bytes:delta{host=web-1,pyroscope_spy=gospy,"
                  "service_name=simple.golang.app} 1767323000000000000 15000000000 524288\n"
                  "  main;work 7\n"
                  "memory:inuse_space:bytes:space:bytes{host=web-1,pyroscope_spy=gospy,"
                  "service_name=simple.golang.app} 1767323000000000000 15000000000 524288\n"
                  "  main;work 4096\n");
}

/* The same agent's block profile; only its display names distinguish it from a mutex profile. */
static void display_names_distinguish_profiles(void **state)
{
    (void)state;
    static const struct {
        const char *config, *name;
    } cases[] = {
        {"{\"contentions\":{\"display-name\":\"block_count\",\"units\":\"lock_samples\"},"
         "\"delay\":{\"display-name\":\"block_duration\",\"units\":\"lock_nanoseconds\"}}",
         "block"},
        {"{\"contentions\":{\"display-name\":\"mutex_count\",\"cumulative\":true},"
         "\"delay\":{\"display-name\":\"mutex_duration\",\"cumulative\":false}}",
         "mutex"},
    };
    for (int i = 0; i < 2; i++) {
        buf_auto body;
        buf_init(&body, 1 << 20);
        put_part(&body, "sample_type_config", "sample_type_config.json");
        buf_printf(&body, "%s\r\n", cases[i].config);
        put_part(&body, "profile", "profile.pprof");
        struct maker maker = NEW_MAKER("contentions/count", "delay/nanoseconds");
        ADD(&maker, "work", 1, 900);
        encode(&maker, &body);
        buf_append_text(&body, "\r\n--b0und--\r\n");
        char expected[500];
        snprintf(expected, sizeof(expected),
                 "%s:contentions:count::%s{pyroscope_spy=unknown,service_name=a}"
                 " 1700000000000000000 0 0\n  main;work 1\n"
                 "%s:delay:nanoseconds:::delta{pyroscope_spy=unknown,service_name=a}"
                 " 1700000000000000000 0 0\n  main;work 900\n",
                 cases[i].name, i ? "" : ":delta", cases[i].name);
        assert_ingest("name=a", FORM_TYPE, buf_span(&body), expected);
    }
}

/* @pyroscope/nodejs: one part, times in seconds, wall time together with CPU time. */
static void reads_what_node_sends(void **state)
{
    (void)state;
    buf_auto body;
    buf_init(&body, 1 << 20);
    put_part(&body, "profile", "profile");
    struct maker maker = NEW_MAKER("samples/count", "wall/nanoseconds", "cpu/nanoseconds");
    set_period(&maker, "wall", "nanoseconds", 10000000);
    profile_builder_fields(maker.builder)->duration_ns = 60000000000;
    ADD(&maker, "(idle)", 5, 50000000, 0);
    ADD(&maker, "work", 1, 10000000, 9000000);
    encode(&maker, &body);
    buf_append_text(&body, "\r\n--b0und--\r\n");
    assert_ingest("from=1767323000&name=my-app%7Bregion%3Deu%7D&sampleRate=100&spyName=nodespy&"
                  "until=1767323060",
                  FORM_TYPE, buf_span(&body),
                  "wall:samples:count:wall:nanoseconds:delta{pyroscope_spy=nodespy,region=eu,"
                  "service_name=my-app} 1700000000000000000 60000000000 10000000\n"
                  "  main;(idle) 5\n  main;work 1\n"
                  "wall:wall:nanoseconds:wall:nanoseconds:delta{pyroscope_spy=nodespy,region=eu,"
                  "service_name=my-app} 1700000000000000000 60000000000 10000000\n"
                  "  main;(idle) 50000000\n  main;work 10000000\n"
                  "process_cpu:cpu:nanoseconds:wall:nanoseconds:delta{pyroscope_spy=nodespy,"
                  "region=eu,service_name=my-app} 1700000000000000000 60000000000 10000000\n"
                  "  main;work 9000000\n");
}

/* curl --data-binary @profile.pb.gz '/ingest?format=pprof&name=app' */
static void reads_a_raw_pprof(void **state)
{
    (void)state;
    buf_auto body;
    buf_init(&body, 1 << 20);
    struct maker maker = NEW_MAKER("goroutine/count");
    ADD(&maker, "work", 3);
    encode(&maker, &body);
    static const char expected[] = "goroutines:goroutine:count::{pyroscope_spy=unknown,"
                                   "service_name=b} 1700000000000000000 0 0\n  main;work 3\n";
    assert_ingest("format=pprof&name=a.goroutines{service_name=b}", "", buf_span(&body), expected);
    assert_ingest("name=b", "application/x-www-form-urlencoded", buf_span(&body), expected);
}

/* ---- stacks with counts ---- */

static void folded_stacks_are_time(void **state)
{
    (void)state;
    static const char *const names[] = {"app.cpu", "app", "app.itimer"};
    for (int i = 0; i < 3; i++) {
        char query[200];
        snprintf(query, sizeof(query),
                 "name=%s{k=v}&from=1767323000&until=1767323010&sampleRate=50", names[i]);
        assert_ingest(query, "text/plain", SPAN_LITERAL("main;a 3\nmain;b 1\nmain;a 2\n"),
                      "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{k=v,"
                      "pyroscope_spy=unknown,service_name=app} 1767323000000000000 10000000000 "
                      "20000000\n"
                      "  main;a 100000000\n  main;b 20000000\n");
    }
    assert_ingest("name=app.cpu&sampleRate=0&from=1&until=1", "", SPAN_LITERAL("main;a 3\n"),
                  "process_cpu:samples:count:::delta{pyroscope_spy=unknown,service_name=app}"
                  " 1000000000 0 0\n  main;a 3\n");
    assert_ingest("name=app.cpu&from=1&until=1", "", SPAN_LITERAL("main;a 1.5\nmain;b 1\n"),
                  "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{pyroscope_spy=unknown,"
                  "service_name=app} 1000000000 0 10000000\n"
                  "  main;a 15000000\n  main;b 10000000\n");
}

static void names_determine_the_type(void **state)
{
    (void)state;
    static const struct {
        const char *end, *expected;
    } cases[] = {
        {"wall", "wall:wall:nanoseconds:cpu:nanoseconds:delta"},
        {"alloc_space", "memory:alloc_space:bytes:::delta"},
        {"inuse_objects", "memory:inuse_objects:count::"},
        {"goroutines", "goroutine:goroutines:count::"},
        {"mutex_count", "mutex:contentions:count:::delta"},
        {"block_duration", "block:delay:nanoseconds:::delta"},
        {"exceptions", "exceptions:samples:count:::delta"},
        {"bytes", "memory:samples:bytes:::delta"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char query[200], expected[300];
        bool is_time = strstr(cases[i].end, "wall");
        snprintf(query, sizeof(query), "name=my.app.%s&from=5&until=5", cases[i].end);
        snprintf(expected, sizeof(expected),
                 "%s{pyroscope_spy=unknown,service_name=my.app} 5000000000 0 %s\n  a %s\n",
                 cases[i].expected, is_time ? "10000000" : "0", is_time ? "40000000" : "4");
        assert_ingest(query, "", SPAN_LITERAL("a 4"), expected);
    }
    assert_ingest(
        "name=my.app.bytes{service_name=s}&aggregationType=average&from=5&until=5", "",
        SPAN_LITERAL("a 4"),
        "memory:samples:bytes:::gauge{app_name=my.app,pyroscope_spy=unknown,service_name=s}"
        " 5000000000 0 0\n  a 4\n");
}

static void lines_count_one_each(void **state)
{
    (void)state;
    buf_auto gzip;
    buf_init(&gzip, 1000);
    struct err err;
    struct span text = SPAN_LITERAL("main;a\r\n\nmain;b 7\n# x\nmain;a\nmain;;");
    static const char expected[] = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{"
                                   "pyroscope_spy=rbspy,service_name=app} 1000000000 0 10000000\n"
                                   "  main;a 20000000\n  main;b 7 10000000\n  # x 10000000\n"
                                   "  main;; 10000000\n";
    assert_ingest("name=app&format=lines&spyName=rbspy&from=1&until=1", "", text, expected);
    assert_int_equal(compress_gzip(text, 1, &gzip, &err), ERR_NONE);
    assert_ingest("name=app&format=lines&spyName=rbspy&from=1&until=1", "", buf_span(&gzip),
                  expected);
}

/* If the request has a time range and its format determines the type. The types of pprof are in the
 * profile, so an empty body has none. */
static void an_empty_body_is_idle_time(void **state)
{
    (void)state;
    static const char idle[] = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{"
                               "pyroscope_spy=unknown,service_name=app} 1767323000000000000 "
                               "10000000000 10000000\n";
    static const char window[] = "&from=1767323000&until=1767323010";
    char query[200];
    buf_auto body;
    buf_init(&body, 1000);
    for (int i = 0; i < 6; i++) {
        static const char *const more[] = {"app.cpu", "app&format=lines", "app&format=folded",
                                           "app&format=pprof", "app&from=now-1m&until=now-1m"};
        const bool is_form = i == 5;
        snprintf(query, sizeof(query), "name=%s%s", is_form ? "app" : more[i],
                 i == 4 ? "" : window);
        if (is_form) {
            put_part(&body, "sample_type_config", "x");
            buf_append_text(&body, "{\"cpu\":{}}\r\n");
            put_part(&body, "profile", "x");
            buf_append_text(&body, "\r\n--b0und--");
        }
        const struct span empty = i < 3 ? SPAN_LITERAL(" \n") : span_of(NULL, 0);
        assert_ingest(query, is_form ? FORM_TYPE : "", is_form ? buf_span(&body) : empty,
                      i < 3 ? idle : NULL);
    }
    snprintf(query, sizeof(query), "name=app.alloc_space%s", window);
    assert_ingest(query, "", span_of(NULL, 0),
                  "memory:alloc_space:bytes:::delta{pyroscope_spy=unknown,service_name=app}"
                  " 1767323000000000000 10000000000 0\n");
}

/* ---- parameters ---- */

/* Seconds or smaller units, by the number of digits, like Pyroscope. */
static void the_number_of_digits_determines_the_unit_of_a_time(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"1767323045", INT64_C(1767323045000000000)},
        {"1767323045678", INT64_C(1767323045678000000)},
        {"1767323045678901", INT64_C(1767323045678901000)},
        {"1767323045678901234", INT64_C(1767323045678901234)},
        {"0", 0},
        {"20260102", INT64_C(1767312000000000000)},
        {"2026-01-02T03:04:05Z", INT64_C(1767323045000000000)},
        {"", INT64_MAX},
        {"%20", INT64_MAX},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        arena_auto arena = arena_create();
        char text[100];
        snprintf(text, sizeof(text), "name=a&from=%s&until=now%%2B9999d", cases[i].text);
        struct pyroscope_ingest_query query = parse(arena, text);
        assert_int_equal(query.from_ns, cases[i].ns == INT64_MAX ? now_ns : cases[i].ns);
    }
}

static void reads_parameters(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct pyroscope_ingest_query query = parse(
        arena,
        "x=1&name=+app+%7B+a%3D1%2Cb%3D+x%3Dy+%2C+__a__%3D2+%7D+&name=other&from=now-3h&from=1&"
        "until=now-1h30m&sampleRate=97&units=bytes&aggregationType=average&"
        "format=lines&spyName=my%20spy");
    assert_true(span_equal_text(query.app, "app"));
    assert_int_equal(query.label_count, 2);
    assert_true(span_equal_text(query.labels[0].name, "a"));
    assert_true(span_equal_text(query.labels[0].value, "1"));
    assert_true(span_equal_text(query.labels[1].value, "x=y"));
    assert_int_equal(query.from_ns, now_ns - 3 * 3600 * CLOCK_NS_PER_S);
    assert_int_equal(query.until_ns, now_ns - 5400 * CLOCK_NS_PER_S);
    assert_int_equal(query.sample_rate, 97);
    assert_true(span_equal_text(query.units, "bytes"));
    assert_true(span_equal_text(query.aggregation, "average"));
    assert_true(span_equal_text(query.format, "lines"));
    assert_true(span_equal_text(query.spy_name, "my spy"));
    static const char *const rates[] = {"x", "-1", "1.5", "1000000001", "99999999999", ""};
    for (int i = 0; i < 6; i++) {
        char text[100];
        snprintf(text, sizeof(text), "name=a{}&sampleRate=%s", rates[i]);
        query = parse(arena, text);
        assert_int_equal(query.sample_rate, 100);
        assert_int_equal(query.from_ns, now_ns);
        assert_true(span_equal_text(query.spy_name, "unknown"));
        assert_true(span_equal_text(query.units, "samples"));
    }
}

static void reports_what_is_wrong(void **state)
{
    (void)state;
    struct span stacks = SPAN_LITERAL("a 1");
    assert_refused("", "", stacks, ERR_INVALID, "name: it is required");
    assert_refused("name={a=b}", "", stacks, ERR_INVALID, "name: it is required");
    assert_refused("name=a{b=c", "", stacks, ERR_INVALID, "do not end with '}'");
    assert_refused("name=a{b}", "", stacks, ERR_INVALID, "label 'b' has no '='");
    assert_refused("name=a%2", "", stacks, ERR_INVALID, "name: a % is not followed");
    assert_refused("name=a%0xb", "", stacks, ERR_INVALID, "name: a % is not followed");
    assert_refused("name=a&from=soon", "", stacks, ERR_INVALID, "from: 'soon' is wrong");
    assert_refused("name=a&from=-1", "", stacks, ERR_INVALID, "from: '-1' is wrong");
    assert_refused("name=a&until=99999999999999999999", "", stacks, ERR_INVALID,
                   "until: '99999999999999999999' is out of range");
    assert_refused("name=a&from=100&until=99", "", stacks, ERR_INVALID, "until: it is before from");
    assert_refused("name=a&until=now-3", "", SPAN_LITERAL("a"), ERR_UNSUPPORTED,
                   "not a supported profile");
    assert_refused("name=a&format=jfr", "", stacks, ERR_UNSUPPORTED, "jfr is not read");
    assert_refused("name=a&format=trie", "", stacks, ERR_UNSUPPORTED, "trie and tree");
    assert_refused("name=a", "binary/octet-stream+tree", stacks, ERR_UNSUPPORTED, "trie and tree");
    assert_refused("name=a&units=bytes", "", stacks, ERR_INVALID, "'a' has to end in what");
    assert_refused("name=a&sampleRate=1", "", SPAN_LITERAL("a 9999999999999"), ERR_INVALID,
                   "counts too much");
    assert_refused("name=a&format=lines", "", SPAN_LITERAL("\n\n"), ERR_INVALID, "no line");
    assert_refused("name=a", FORM_TYPE, stacks, ERR_INVALID, "boundary does not occur");
}

static void multipart_forms_are_checked(void **state)
{
    (void)state;
    buf_auto body;
    buf_init(&body, 1 << 20);
    put_part(&body, "other", "x");
    buf_append_text(&body, "x\r\n--b0und--");
    assert_refused("name=a", FORM_TYPE, buf_span(&body), ERR_INVALID, "no part profile");
    buf_clear(&body);
    put_part(&body, "profile", "x");
    buf_append_text(&body, "\r\n--b0und--");
    assert_ingest("name=a", FORM_TYPE, buf_span(&body), NULL);
    assert_ingest("name=a", "", span_of(NULL, 0), NULL);
    buf_clear(&body);
    for (int i = 0; i < 2; i++) {
        put_part(&body, "profile", "x");
        buf_append_text(&body, "a 1\r\n");
    }
    buf_append_text(&body, "--b0und--");
    assert_refused("name=a", FORM_TYPE, buf_span(&body), ERR_INVALID, "twice");

    buf_clear(&body);
    put_part(&body, "prev_profile", "x");
    buf_append_text(&body, "x\r\n--b0und--");
    assert_refused("name=a", FORM_TYPE, buf_span(&body), ERR_UNSUPPORTED, "update it");

    static const char *const configs[] = {"[1]", "{", "{\"cpu\":7}"};
    for (int i = 0; i < 3; i++) {
        buf_clear(&body);
        put_part(&body, "sample_type_config", "x");
        buf_printf(&body, "%s\r\n", configs[i]);
        put_part(&body, "profile", "x");
        struct maker maker = NEW_MAKER("cpu/ns");
        ADD(&maker, "work", 3);
        encode(&maker, &body);
        buf_append_text(&body, "\r\n--b0und--");
        if (i < 2)
            assert_refused("name=a", FORM_TYPE, buf_span(&body), ERR_INVALID, "sample_type_config");
        else
            assert_ingest("name=a", FORM_TYPE, buf_span(&body),
                          "process_cpu:cpu:ns:::delta{pyroscope_spy=unknown,service_name=a}"
                          " 1700000000000000000 0 0\n  main;work 3\n");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_go_sends),
        cmocka_unit_test(display_names_distinguish_profiles),
        cmocka_unit_test(reads_what_node_sends),
        cmocka_unit_test(reads_a_raw_pprof),
        cmocka_unit_test(folded_stacks_are_time),
        cmocka_unit_test(names_determine_the_type),
        cmocka_unit_test(lines_count_one_each),
        cmocka_unit_test(an_empty_body_is_idle_time),
        cmocka_unit_test(reads_parameters),
        cmocka_unit_test(the_number_of_digits_determines_the_unit_of_a_time),
        cmocka_unit_test(reports_what_is_wrong),
        cmocka_unit_test(multipart_forms_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

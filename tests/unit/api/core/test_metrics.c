#include "tests/unit/test.h"

#include "api/core/metrics.h"

#include <stdio.h>

static char *text_of(struct metrics *metrics, struct buf *buf)
{
    buf_clear(buf);
    metrics_write(metrics, buf);
    buf_append_byte(buf, '\0');
    return (char *)buf->data;
}

static double three(void *context)
{
    (void)context;
    return 3.5;
}

static void counts_and_reads(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_create();
    buf_auto buf;
    buf_init(&buf, 1 << 20);
    struct metric *pprof = metrics_counter(metrics, "made_total", "format=\"pprof\"", "Made.");
    metrics_gauge(metrics, "level", "", "Level.", three, NULL);
    struct metric *folded = metrics_counter(metrics, "made_total", "format=\"folded\"", "Made.");
    assert_ptr_equal(metrics_counter(metrics, "made_total", "format=\"pprof\"", "Made."), pprof);
    metric_add(pprof, 2);
    metric_add(folded, 5);
    const char *text = text_of(metrics, &buf);
    assert_non_null(strstr(text, "# TYPE made_total counter\nmade_total{format=\"pprof\"} 2\n"
                                 "made_total{format=\"folded\"} 5\n"));
    assert_non_null(strstr(text, "# TYPE level gauge\nlevel 3.5\n"));
    assert_non_null(strstr(text, "process_resident_memory_bytes "));
    assert_int_equal(metric_get(pprof), 2);
    metrics_destroy(metrics);
}

static void requests_are_counted_by_route_and_status(void **state)
{
    (void)state;
    static const char method[] = "GET", pattern[] = "/p/{id}";
    struct metrics *metrics = metrics_create();
    buf_auto buf;
    buf_init(&buf, 1 << 20);
    metrics_observe_request(metrics, method, pattern, 200, 3000000);
    metrics_observe_request(metrics, method, pattern, 200, 70000000);
    metrics_observe_request(metrics, method, pattern, 404, 1);
    metrics_observe_request(metrics, "", "none", 404, 1);
    const char *text = text_of(metrics, &buf);
    assert_non_null(strstr(
        text, "perfolio_http_requests_total{method=\"GET\",route=\"/p/{id}\",status=\"200\"} 2\n"));
    assert_non_null(strstr(
        text, "perfolio_http_requests_total{method=\"\",route=\"none\",status=\"404\"} 1\n"));
    assert_non_null(strstr(text, "duration_seconds_bucket{method=\"GET\",route=\"/p/{id}\","
                                 "le=\"0.005\"} 2\n"));
    assert_non_null(strstr(text, "duration_seconds_bucket{method=\"GET\",route=\"/p/{id}\","
                                 "le=\"+Inf\"} 3\n"));
    assert_non_null(
        strstr(text, "duration_seconds_sum{method=\"GET\",route=\"/p/{id}\"} 0.073000\n"));
    metrics_destroy(metrics);
}

static void stays_bounded_whatever_is_counted(void **state)
{
    (void)state;
    static char patterns[600][8];
    struct metrics *metrics = metrics_create();
    for (size_t i = 0; i < 600; i++) {
        snprintf(patterns[i], sizeof(patterns[i]), "/%zu", i);
        for (int status = 200; status < 210; status++)
            metrics_observe_request(metrics, "GET", patterns[i], status, 1);
    }
    buf_auto buf;
    buf_init(&buf, 4 << 20);
    text_of(metrics, &buf);
    assert_false(buf_failed(&buf));
    metrics_destroy(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_and_reads),
        cmocka_unit_test(requests_are_counted_by_route_and_status),
        cmocka_unit_test(stays_bounded_whatever_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

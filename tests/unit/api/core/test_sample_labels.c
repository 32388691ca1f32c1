#include "tests/unit/test.h"

#include "api/core/sample_labels.h"
#include "lib/base/err.h"

#include <stdio.h>

static const char *read(const char *text)
{
    static char list[SAMPLE_LABELS_BYTES];
    struct err err;
    assert_int_equal(sample_labels_read(text, list, &err), ERR_NONE);
    return list;
}

static void lists_contain_names_of_series_labels(void **state)
{
    (void)state;
    struct span names[SAMPLE_LABELS_MAX];
    assert_string_equal(read(""), "");
    assert_string_equal(read(" , ,"), "");
    assert_string_equal(read("endpoint"), "endpoint");
    assert_string_equal(read(" k8s.pod.name, endpoint,k8s_pod_name,,9lives "),
                        "k8s_pod_name,endpoint,_9lives");
    assert_int_equal(sample_labels_split("", names), 0);
    assert_int_equal(sample_labels_split("a,bc", names), 2);
    assert_true(span_equal_text(names[0], "a") && span_equal_text(names[1], "bc"));
}

static void threads_and_spans_are_refused(void **state)
{
    (void)state;
    static const char *const refused[] = {"thread.name", "a,span_id", "trace-id", "tid"};
    char list[SAMPLE_LABELS_BYTES] = "as it was";
    struct err err;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_int_equal(sample_labels_read(refused[i], list, &err), ERR_INVALID);
        assert_string_equal(list, "as it was");
    }
}

static void too_many_and_too_long_names_are_refused(void **state)
{
    (void)state;
    char text[8192] = "", list[SAMPLE_LABELS_BYTES];
    struct err err;
    for (int i = 0; i <= SAMPLE_LABELS_MAX; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "n%d,", i);
    assert_int_equal(sample_labels_read(text, list, &err), ERR_TOO_LARGE);
    memset(text, 'a', 129);
    text[129] = '\0';
    assert_int_equal(sample_labels_read(text, list, &err), ERR_TOO_LARGE);
    text[0] = '\0';
    for (int i = 0; i < 6; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%0100d,", i);
    assert_int_equal(sample_labels_read(text, list, &err), ERR_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_contain_names_of_series_labels),
        cmocka_unit_test(threads_and_spans_are_refused),
        cmocka_unit_test(too_many_and_too_long_names_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

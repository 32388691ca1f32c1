#include "tests/unit/test.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/input/time_parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const int64_t now_ns = INT64_C(1767323045678901234);

static int64_t parsed(const char *text)
{
    int64_t ns = -1;
    struct err err = {0};
    enum err_code code = time_parse(span_text(text), now_ns, &ns, &err);
    if (code)
        print_error("%s: %s\n", text, err.message);
    assert_int_equal(code, ERR_NONE);
    return ns;
}

static int64_t duration(const char *text)
{
    int64_t ns = -1;
    struct err err = {0};
    assert_int_equal(time_parse_duration(span_text(text), &ns, &err), ERR_NONE);
    return ns;
}

static void assert_refused(const char *text, bool is_duration, const char *words)
{
    int64_t ns = 77;
    struct err err = {0};
    enum err_code code = is_duration ? time_parse_duration(span_text(text), &ns, &err)
                                     : time_parse(span_text(text), now_ns, &ns, &err);
    assert_int_equal(code, ERR_INVALID);
    if (!strstr(err.message, words))
        print_error("%s: %s\n", text, err.message);
    assert_non_null(strstr(err.message, words));
    assert_int_equal(ns, 77);
}

static void reads_rfc_3339(void **state)
{
    (void)state;
    assert_int_equal(parsed("1970-01-01T00:00:00Z"), 0);
    assert_int_equal(parsed("2026-01-02T03:04:05Z"), INT64_C(1767323045) * CLOCK_NS_PER_S);
    assert_int_equal(parsed(" 2026-01-02t03:04:05.678901234z "), now_ns);
    assert_int_equal(parsed("2026-01-02 03:04:05.6789012349+00:00"), now_ns);
    assert_int_equal(parsed("2026-01-02T04:34:05+01:30"), INT64_C(1767323045) * CLOCK_NS_PER_S);
    assert_int_equal(parsed("2026-01-01T22:04:05-05:00"), INT64_C(1767323045) * CLOCK_NS_PER_S);
    assert_int_equal(parsed("1969-12-31T23:59:59.5Z"), -CLOCK_NS_PER_S / 2);
}

/* Every day of four centuries, compared with the C library. */
static void agrees_with_the_calendar(void **state)
{
    (void)state;
    for (int64_t day = -25000; day < 100000; day += 7) {
        time_t seconds = (time_t)(day * 86400 + 3661);
        struct tm utc;
        char text[40];
        assert_non_null(gmtime_r(&seconds, &utc));
        assert_true(strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc) > 0);
        assert_int_equal(parsed(text), (int64_t)seconds * CLOCK_NS_PER_S);
    }
}

static void the_number_of_digits_determines_the_unit(void **state)
{
    (void)state;
    assert_int_equal(parsed("1767323045"), INT64_C(1767323045000000000));
    assert_int_equal(parsed("1767323045678"), INT64_C(1767323045678000000));
    assert_int_equal(parsed("1767323045678901"), INT64_C(1767323045678901000));
    assert_int_equal(parsed("1767323045678901234"), now_ns);
    assert_int_equal(parsed("0"), 0);
    assert_int_equal(parsed("1767323045.5"), INT64_C(1767323045500000000));
    assert_int_equal(parsed("20260102"), INT64_C(1767312000) * CLOCK_NS_PER_S);
    assert_int_equal(parsed("20240229"), INT64_C(1709164800) * CLOCK_NS_PER_S);
    /* Not dates, so seconds. */
    assert_int_equal(parsed("20230229"), INT64_C(20230229) * CLOCK_NS_PER_S);
    assert_int_equal(parsed("19000101"), INT64_C(19000101) * CLOCK_NS_PER_S);
}

static void relative_times_start_from_now(void **state)
{
    (void)state;
    assert_int_equal(parsed("now"), now_ns);
    assert_int_equal(parsed("now-3h"), now_ns - 3 * 3600 * CLOCK_NS_PER_S);
    assert_int_equal(parsed("now-1h30m"), now_ns - 5400 * CLOCK_NS_PER_S);
    assert_int_equal(parsed("now+5min"), now_ns + 300 * CLOCK_NS_PER_S);
    assert_int_equal(parsed("now-7"), now_ns - 7 * CLOCK_NS_PER_S);
}

/* 2026-01-02T03:04:05.678901234Z is now. */
static void reads_the_forms_of_date(void **state)
{
    (void)state;
    const int64_t midnight = INT64_C(1767312000) * CLOCK_NS_PER_S;
    const int64_t hour = 3600 * CLOCK_NS_PER_S, day = 24 * hour;
    assert_int_equal(parsed("today"), midnight);
    assert_int_equal(parsed("Yesterday"), midnight - day);
    assert_int_equal(parsed("tomorrow"), midnight + day);
    assert_int_equal(parsed("yesterday 14:30"), midnight - day + 14 * hour + hour / 2);
    assert_int_equal(parsed("today 01:02:03.5"),
                     midnight + hour + 123 * CLOCK_NS_PER_S + CLOCK_NS_PER_S / 2);
    assert_int_equal(parsed("today 14:30+01:00"), midnight + 13 * hour + hour / 2);
    assert_int_equal(parsed("14:30"), midnight + 14 * hour + hour / 2);
    assert_int_equal(parsed("2026-01-02"), midnight);
    assert_int_equal(parsed("2026-01-02 03:04"), midnight + 3 * hour + 240 * CLOCK_NS_PER_S);
    assert_int_equal(parsed("2026-01-02T03:04:05"), midnight + 3 * hour + 245 * CLOCK_NS_PER_S);
    assert_int_equal(parsed("2026-01-02 03:04:05 UTC"), midnight + 3 * hour + 245 * CLOCK_NS_PER_S);
    assert_int_equal(parsed("2026-01-02 03:04:05 +01:00"),
                     midnight + 2 * hour + 245 * CLOCK_NS_PER_S);
    assert_int_equal(parsed("2 hours ago"), now_ns - 2 * hour);
    assert_int_equal(parsed("1 day ago"), now_ns - day);
    assert_int_equal(parsed("3 Weeks Ago"), now_ns - 21 * day);
    assert_int_equal(parsed("1.5h ago"), now_ns - hour - hour / 2);
    assert_int_equal(parsed("1 hour 30 min ago"), now_ns - hour - hour / 2);
    assert_int_equal(parsed("@1767323045"), INT64_C(1767323045000000000));
    assert_int_equal(parsed("@1767323045.5"), INT64_C(1767323045500000000));
}

static void reads_durations(void **state)
{
    (void)state;
    assert_int_equal(duration("15s"), 15 * CLOCK_NS_PER_S);
    assert_int_equal(duration("15"), 15 * CLOCK_NS_PER_S);
    assert_int_equal(duration("0.5"), CLOCK_NS_PER_S / 2);
    assert_int_equal(duration("1h30m"), 5400 * CLOCK_NS_PER_S);
    assert_int_equal(duration("1.5h"), 5400 * CLOCK_NS_PER_S);
    assert_int_equal(duration("250ms"), 250 * CLOCK_NS_PER_MS);
    assert_int_equal(duration("3us"), 3000);
    assert_int_equal(duration("3\xc2\xb5s"), 3000);
    assert_int_equal(duration("7ns"), 7);
    assert_int_equal(duration("1.9ns"), 1);
    assert_int_equal(duration("1w1d"), 8 * 86400 * CLOCK_NS_PER_S);
    assert_int_equal(duration("2M"), duration("60d"));
    assert_int_equal(duration("1mon"), duration("30d"));
    assert_int_equal(duration("1y"), duration("365d"));
}

static void reports_what_is_wrong(void **state)
{
    (void)state;
    assert_refused("", false, "ends where a time");
    assert_refused("last week", false, "character 1: a time");
    assert_refused("yesterdays", false, "character 1: a time");
    assert_refused("yesterday14:30", false, "character 10: a blank and a time");
    assert_refused("today 25:00", false, "out of range");
    assert_refused("today 14", false, "ends where a time such as");
    assert_refused("14:3", false, "a time such as 03:04:05");
    assert_refused("2026-01-02x", false, "character 11: a time such as T03");
    assert_refused("2 fortnights ago", false, "character 3: a unit");
    assert_refused("2 hours 3 ago", false, "character 11: a unit");
    assert_refused("2 hours and ago", false, "character 9: a number or");
    assert_refused("ago", false, "character 1: a time");
    assert_refused("9999999 years ago", false, "out of range");
    assert_refused("@", false, "ends where a number of seconds");
    assert_refused("@12x", false, "character 4: the end");
    assert_refused("2026-13-02T00:00:00Z", false, "out of range");
    assert_refused("2026-02-29T00:00:00Z", false, "out of range");
    assert_refused("2026-02-09T24:00:00Z", false, "out of range");
    assert_refused("2026-02-09T20:00:00x", false, "character 20: Z or an offset");
    assert_refused("2026-02-09T20:00:00+1", false, "an offset such as");
    assert_refused("2026-02-09T20:00:00Z?", false, "character 21: the end");
    assert_refused("9999-01-01T00:00:00Z", false, "out of range");
    assert_refused("99999999999", false, "out of range");
    assert_refused("99999999999999999999", false, "out of range");
    assert_refused("1767323045.", false, "a digit");
    assert_refused("now3h", false, "+ or -");
    assert_refused("now-", false, "ends where a number");
    assert_refused("now-3x", false, "character 6: a unit");
    assert_refused("now-300000d", false, "");
    assert_refused("1h30", true, "ends where a unit");
    assert_refused("h", true, "character 1: a number");
    assert_refused("-5s", true, "a number");
    assert_refused("300y", true, "out of range");
    assert_refused("1e3", true, "a unit");
    assert_refused("10m", false, "'10m' is a duration; write now-10m for the point in time");
    assert_refused("-1h30m", false, "write now-1h30m for");
    assert_refused("+1.5h", false, "write now+1.5h for");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_rfc_3339),
        cmocka_unit_test(agrees_with_the_calendar),
        cmocka_unit_test(the_number_of_digits_determines_the_unit),
        cmocka_unit_test(relative_times_start_from_now),
        cmocka_unit_test(reads_the_forms_of_date),
        cmocka_unit_test(reads_durations),
        cmocka_unit_test(reports_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

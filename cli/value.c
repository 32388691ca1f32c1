#include "cli/value.h"

#include "lib/profile/unit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_UNIT_BYTES = 20 };

struct scale {
    double size;
    const char *name;
};

static const struct scale times[] = {{86400e9, "d"}, {3600e9, "h"}, {60e9, "min"}, {1e9, "s"},
                                     {1e6, "ms"},    {1e3, "µs"},   {1, "ns"}};
static const struct scale sizes[] = {
    {0x1p60, "EiB"},  {0x1p50, "PiB"}, {0x1p40, "TiB"}, {1073741824, "GiB"},
    {1048576, "MiB"}, {1024, "KiB"},   {1, "B"}};

struct unit {
    const char *name;
    const struct scale *scales;
    size_t scale_count;
    double base; /* size of the unit in that of the last scale */
};
#define TIMES times, sizeof(times) / sizeof(times[0])
#define SIZES sizes, sizeof(sizes) / sizeof(sizes[0])

static const struct unit units[] = {
    {"nanoseconds", TIMES, 1},    {"nanosecond", TIMES, 1},    {"ns", TIMES, 1},
    {"microseconds", TIMES, 1e3}, {"microsecond", TIMES, 1e3}, {"us", TIMES, 1e3},
    {"milliseconds", TIMES, 1e6}, {"millisecond", TIMES, 1e6}, {"ms", TIMES, 1e6},
    {"seconds", TIMES, 1e9},      {"second", TIMES, 1e9},      {"s", TIMES, 1e9},
    {"bytes", SIZES, 1},          {"byte", SIZES, 1},          {"b", SIZES, 1},
    {"kilobytes", SIZES, 1024},   {"kb", SIZES, 1024},         {"megabytes", SIZES, 1048576},
    {"mb", SIZES, 1048576},
};

const char *value_count(int64_t count, char text[VALUE_TEXT_BYTES])
{
    char digits[32];
    int length = snprintf(digits, sizeof(digits), "%" PRIu64,
                          count < 0 ? 0 - (uint64_t)count : (uint64_t)count);
    char *at = text;
    if (count < 0)
        *at++ = '-';
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = 0;
    return text;
}

static const struct unit *find_unit(struct span name)
{
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (span_equal_text(name, units[i].name))
            return &units[i];
    }
    return NULL;
}

static void format_plain(double value, struct span unit, char text[VALUE_TEXT_BYTES])
{
    if (fabs(value) < 9e15) /* less than 2^53, so that a double has all digits */
        value_count((int64_t)value, text);
    else
        snprintf(text, VALUE_TEXT_BYTES, "%.6g", value);
    if (unit.size == 0 || span_equal_text(unit, "count"))
        return;
    /* A unit from a profile may be any bytes; it is printed up to the first one that is not
     * ASCII. */
    size_t length = strlen(text), shown = 0;
    while (shown < unit.size && shown < MAX_UNIT_BYTES && unit.data[shown] >= ' ' &&
           unit.data[shown] < 0x7f)
        shown++;
    snprintf(text + length, VALUE_TEXT_BYTES - length, " %.*s", (int)shown,
             (const char *)unit.data);
}

/* A value with a unit such as "count/1000", with decimals but without trailing zeros. */
static void format_decimals(double value, unsigned decimals, char text[VALUE_TEXT_BYTES])
{
    const double power = pow(10, decimals);
    if (fabs(value) >= 9e15) {
        snprintf(text, VALUE_TEXT_BYTES, "%.6g", value / power);
        return;
    }
    const int64_t parts = llround(fabs(value)), one = (int64_t)power;
    char whole[VALUE_TEXT_BYTES];
    value_count(parts / one, whole);
    snprintf(text, VALUE_TEXT_BYTES, "%s%.32s.%0*" PRId64, value < 0 ? "-" : "", whole,
             (int)decimals, parts % one);
    size_t length = strlen(text);
    while (text[length - 1] == '0')
        length--;
    text[text[length - 1] == '.' ? length - 1 : length] = '\0';
}

/* Rounds to the two decimal places that are printed: 999.996 ms is 1000.00 ms, so 1.00 s. */
static double rounded(double value)
{
    return round(fabs(value) * 100) / 100;
}

/* The largest unit in which the rounded amount is at least 1. */
static size_t find_scale(const struct unit *unit, double magnitude)
{
    size_t i = 0;
    while (i + 1 < unit->scale_count && fabs(magnitude) < unit->scales[i].size)
        i++;
    while (i > 0 && rounded(magnitude / unit->scales[i].size) * unit->scales[i].size >=
                        unit->scales[i - 1].size)
        i--;
    return i;
}

const char *value_format(double value, struct span unit, char text[VALUE_TEXT_BYTES])
{
    const struct unit *known = find_unit(unit);
    const unsigned decimals = unit_decimals(unit);
    if (decimals) {
        format_decimals(value, decimals, text);
        return text;
    }
    if (!known) {
        format_plain(value, unit, text);
        return text;
    }
    double magnitude = value * known->base;
    const size_t i = find_scale(known, magnitude);
    bool is_whole = i + 1 == known->scale_count && nearbyint(magnitude) == magnitude;
    snprintf(text, VALUE_TEXT_BYTES, "%.*f %s", is_whole ? 0 : 2, magnitude / known->scales[i].size,
             known->scales[i].name);
    return text;
}

const char *value_format_delta(double value, struct span unit, char text[VALUE_TEXT_BYTES])
{
    char plain[VALUE_TEXT_BYTES];
    value_format(value, unit, plain);
    snprintf(text, VALUE_TEXT_BYTES, "%s%.60s", value > 0 ? "+" : "", plain);
    return text;
}

const char *value_bytes(uint64_t bytes, char text[VALUE_TEXT_BYTES])
{
    return value_format((double)bytes, SPAN_LITERAL("bytes"), text);
}

static bool parse_time(const char *rfc3339, time_t *ret_time)
{
    struct tm parts = {0};
    const char *rest = strptime(rfc3339, "%Y-%m-%dT%H:%M:%S", &parts);
    if (!rest || !strchr(".Z", rest[0]))
        return false;
    *ret_time = timegm(&parts);
    return true;
}

const char *value_counted(uint64_t count, const char *one, const char *many,
                          char text[VALUE_TEXT_BYTES])
{
    snprintf(text, VALUE_TEXT_BYTES, "%" PRIu64 " %s", count, count == 1 ? one : many);
    return text;
}

const char *value_time(const char *rfc3339, char text[VALUE_TEXT_BYTES])
{
    time_t time;
    if (parse_time(rfc3339, &time))
        snprintf(text, VALUE_TEXT_BYTES, "%.10s %.5s UTC", rfc3339, rfc3339 + 11);
    else
        snprintf(text, VALUE_TEXT_BYTES, "%.60s", rfc3339);
    return text;
}

const char *value_distance(const char *rfc3339, int64_t now_s, char text[VALUE_TEXT_BYTES])
{
    static const struct {
        int64_t seconds;
        const char *one, *many;
    } spans[] = {{86400, "day", "days"}, {3600, "h", "h"}, {60, "min", "min"}, {1, "s", "s"}};
    time_t time;
    text[0] = 0;
    if (!parse_time(rfc3339, &time))
        return text;
    int64_t distance = (int64_t)time - now_s, magnitude = distance < 0 ? -distance : distance;
    size_t i = 0;
    while (i < 3 && magnitude < 2 * spans[i].seconds)
        i++;
    int64_t count = magnitude / spans[i].seconds;
    snprintf(text, VALUE_TEXT_BYTES, "%s%" PRId64 " %s%s", distance < 0 ? "" : "in ", count,
             count == 1 ? spans[i].one : spans[i].many, distance < 0 ? " ago" : "");
    return text;
}

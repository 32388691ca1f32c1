#include "lib/profile/unit.h"

#include <stdio.h>

enum kind { UNIT_TIME, UNIT_MEMORY, UNIT_COUNT };

struct unit {
    const char *name;
    enum kind kind;
    int64_t size; /* divides all larger sizes of its kind */
};

static const struct unit units[] = {
    {"ns", UNIT_TIME, 1},
    {"nanosecond", UNIT_TIME, 1},
    {"nanoseconds", UNIT_TIME, 1},
    {"us", UNIT_TIME, 1000},
    {"\xc2\xb5s", UNIT_TIME, 1000}, /* micro sign; next: Greek mu */
    {"\xce\xbcs", UNIT_TIME, 1000},
    {"microsecond", UNIT_TIME, 1000},
    {"microseconds", UNIT_TIME, 1000},
    {"ms", UNIT_TIME, 1000000},
    {"millisecond", UNIT_TIME, 1000000},
    {"milliseconds", UNIT_TIME, 1000000},
    {"s", UNIT_TIME, 1000000000},
    {"second", UNIT_TIME, 1000000000},
    {"seconds", UNIT_TIME, 1000000000},
    {"B", UNIT_MEMORY, 1},
    {"byte", UNIT_MEMORY, 1},
    {"bytes", UNIT_MEMORY, 1},
    {"KiB", UNIT_MEMORY, 1 << 10},
    {"MiB", UNIT_MEMORY, 1 << 20},
    {"GiB", UNIT_MEMORY, 1 << 30},
};

unsigned unit_decimals(struct span unit)
{
    struct span start = SPAN_LITERAL("count/1");
    if (!span_starts_with(unit, "count/1"))
        return 0;
    for (size_t i = start.size; i < unit.size; i++) {
        if (unit.data[i] != '0')
            return 0;
    }
    size_t decimals = unit.size - start.size;
    return decimals <= UNIT_DECIMALS_MAX ? (unsigned)decimals : 0;
}

void unit_print_decimals(unsigned decimals, char ret_unit[UNIT_NAME_BYTES])
{
    snprintf(ret_unit, UNIT_NAME_BYTES, decimals ? "count/1%0*d" : "count", (int)decimals, 0);
}

static bool find_count(struct span name, struct unit *ret_unit)
{
    const unsigned decimals = unit_decimals(name);
    if (!decimals && !span_equal_text(name, "count"))
        return false;
    *ret_unit = (struct unit){.kind = UNIT_COUNT, .size = 1};
    for (unsigned i = decimals; i < UNIT_DECIMALS_MAX; i++)
        ret_unit->size *= 10;
    return true;
}

static bool find_unit(struct span name, struct unit *ret_unit)
{
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (span_equal_text(name, units[i].name)) {
            *ret_unit = units[i];
            return true;
        }
    }
    return find_count(name, ret_unit);
}

int64_t unit_factor(struct span from, struct span to)
{
    struct unit one, other;
    if (span_equal(from, to))
        return 1;
    if (!find_unit(from, &one) || !find_unit(to, &other) || one.kind != other.kind)
        return 0;
    return one.size / other.size;
}

bool unit_is_like(struct span one, struct span other)
{
    return unit_factor(one, other) || unit_factor(other, one);
}

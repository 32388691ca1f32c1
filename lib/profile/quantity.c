#include "lib/profile/quantity.h"

#include "lib/base/span_utf8.h"
#include "lib/profile/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * Decimal places for three significant digits; none for a whole number. The bounds are not 100 and
 * 10, because 99.95 rounded to one place is already 100.0, which has four digits.
 */
static int decimals_of(double size)
{
    return size >= 99.95 || size == floor(size) ? 0 : size >= 9.995 ? 1 : 2;
}

/* The magnitude of value after the rounding of write_scaled. */
static double rounded(double value)
{
    const double size = fabs(value), power = pow(10, decimals_of(size));
    return round(size * power) / power;
}

static void write_scaled(double value, const char *unit, char text[QUANTITY_TEXT_BYTES])
{
    snprintf(text, QUANTITY_TEXT_BYTES, "%.*f%s%s", decimals_of(fabs(value)), value,
             *unit ? " " : "", unit);
}

/* All digits with separators below a million; above it, a power of 1000 with two decimal places, or
 * none from 100 on: "12.34 M", "123 M". */
static void write_count(double value, const char *unit, char text[QUANTITY_TEXT_BYTES])
{
    static const char *const powers[] = {"", " k", " M", " G", " T", " P", " E"};
    if (fabs(value) < 999999.5) {
        long long whole = llround(fabs(value));
        const char *sign = value < 0 ? "-" : "";
        if (whole < 1000)
            snprintf(text, QUANTITY_TEXT_BYTES, "%s%lld%s%s", sign, whole, *unit ? " " : "", unit);
        else
            snprintf(text, QUANTITY_TEXT_BYTES, "%s%lld,%03lld%s%s", sign, whole / 1000,
                     whole % 1000, *unit ? " " : "", unit);
        return;
    }
    size_t power = 0;
    for (; fabs(value) >= 999.5 && power < 6; power++)
        value /= 1000;
    snprintf(text, QUANTITY_TEXT_BYTES, "%.*f%s%s%s", fabs(value) >= 99.995 ? 0 : 2, value,
             powers[power], *unit ? " " : "", unit);
}

/* steps[i] is how many of names[i] are one of names[i + 1]; 0 ends the list. */
static void write_in_largest_unit(double value, const char *const *names, const double *steps,
                                  char text[QUANTITY_TEXT_BYTES])
{
    size_t i = 0;
    while (steps[i] > 0 && rounded(value) >= steps[i])
        value /= steps[i++];
    write_scaled(value, names[i], text);
}

/* Rounds halves up as browsers do; printf would round an exact half to even. */
const char *quantity_format_percent(double percent, char text[QUANTITY_TEXT_BYTES])
{
    if (percent > 0 && percent < 0.01)
        return strcpy(text, "<0.01 %");
    const double size = fabs(percent);
    const int decimals = size >= 99.95 || size == 0 ? 0 : size >= 10 ? 1 : 2;
    const double scale = decimals == 2 ? 100 : decimals == 1 ? 10 : 1, scaled = percent * scale;
    const bool is_half = scaled - floor(scaled) == 0.5 && fma(percent, scale, -scaled) == 0;
    snprintf(text, QUANTITY_TEXT_BYTES, "%.*f %%", decimals,
             is_half ? nextafter(percent, percent + 1) : percent);
    return text;
}

const char *quantity_format(double value, struct span unit, char text[QUANTITY_TEXT_BYTES])
{
    static const struct {
        const char *name;
        double ns;
    } times[] = {
        {"nanoseconds", 1}, {"microseconds", 1e3}, {"milliseconds", 1e6}, {"seconds", 1e9}};
    static const char *const time_names[] = {"ns", "\xc2\xb5s", "ms", "s", "min", "h", "d"};
    static const double time_steps[] = {1e3, 1e3, 1e3, 60, 60, 24, 0};
    static const char *const byte_names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    static const double byte_steps[] = {1024, 1024, 1024, 1024, 1024, 1024, 0};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        if (span_equal_text(unit, times[i].name)) {
            write_in_largest_unit(value * times[i].ns, time_names, time_steps, text);
            return text;
        }
    }
    if (span_equal_text(unit, "bytes")) {
        write_in_largest_unit(value, byte_names, byte_steps, text);
        return text;
    }
    char name[24] = "";
    const unsigned decimals = unit_decimals(unit);
    value /= pow(10, decimals);
    if (decimals && fabs(value) < 1000) {
        write_scaled(value, "", text);
        return text;
    }
    if (!decimals && !span_equal_text(unit, "count") && span_is_utf8(unit))
        snprintf(name, sizeof(name), "%.*s", (int)(unit.size < 20 ? unit.size : 20),
                 (const char *)unit.data);
    write_count(value, name, text);
    return text;
}

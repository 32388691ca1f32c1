#include "lib/input/time_parse.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"

enum { FRACTION_DIGITS = 9, QUOTED_BYTES = 60 };

/* The text and the position of the next byte. */
struct scan {
    struct span text;
    size_t at;
};

static const struct {
    const char *name;
    int64_t ns;
} units[] = {
    /* A name precedes its own prefixes. */
    {"ns", 1},
    {"us", 1000},
    {"\xc2\xb5s", 1000}, /* micro sign */
    {"\xce\xbcs", 1000}, /* Greek mu */
    {"ms", CLOCK_NS_PER_MS},
    {"mon", 30 * 86400 * CLOCK_NS_PER_S},
    {"min", 60 * CLOCK_NS_PER_S},
    {"s", CLOCK_NS_PER_S},
    {"m", 60 * CLOCK_NS_PER_S},
    {"h", 3600 * CLOCK_NS_PER_S},
    {"d", 86400 * CLOCK_NS_PER_S},
    {"w", 7 * 86400 * CLOCK_NS_PER_S},
    {"M", 30 * 86400 * CLOCK_NS_PER_S},
    {"y", 365 * 86400 * CLOCK_NS_PER_S},
};

static enum err_code set_syntax_error(const struct scan *scan, const char *wanted, struct err *err)
{
    size_t size = scan->text.size < QUOTED_BYTES ? scan->text.size : QUOTED_BYTES;
    if (scan->at >= scan->text.size)
        return err_set(err, ERR_INVALID, "'%.*s' ends where %s should be", (int)size,
                       (const char *)scan->text.data, wanted);
    return err_set(err, ERR_INVALID, "'%.*s' is wrong at character %zu: %s should be there",
                   (int)size, (const char *)scan->text.data, scan->at + 1, wanted);
}

static enum err_code set_range_error(struct span text, struct err *err)
{
    size_t size = text.size < QUOTED_BYTES ? text.size : QUOTED_BYTES;
    return err_set(err, ERR_INVALID, "'%.*s' is out of range", (int)size, (const char *)text.data);
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

static struct span remaining_text(const struct scan *scan)
{
    return span_of(scan->text.data + scan->at, scan->text.size - scan->at);
}

static bool take_byte(struct scan *scan, const char *any_of)
{
    if (scan->at == scan->text.size || scan->text.data[scan->at] == 0 ||
        !strchr(any_of, scan->text.data[scan->at]))
        return false;
    scan->at++;
    return true;
}

static size_t count_digits(const struct scan *scan)
{
    size_t count = 0;
    while (scan->at + count < scan->text.size && is_digit(scan->text.data[scan->at + count]))
        count++;
    return count;
}

/* Parses exactly count digits. */
static bool take_number(struct scan *scan, size_t count, int64_t *ret_number)
{
    if (count_digits(scan) < count ||
        !span_parse_i64(span_of(scan->text.data + scan->at, count), ret_number))
        return false;
    scan->at += count;
    return true;
}

/* Parses ".678" into billionths; no point gives 0. Returns false for a point without digits. */
static bool take_fraction(struct scan *scan, int64_t *ret_billionths)
{
    *ret_billionths = 0;
    if (!take_byte(scan, "."))
        return true;
    size_t count = count_digits(scan);
    for (size_t i = 0; i < FRACTION_DIGITS; i++)
        *ret_billionths =
            *ret_billionths * 10 + (i < count ? scan->text.data[scan->at + i] - '0' : 0);
    scan->at += count;
    return count > 0;
}

/* ---- durations ---- */

/* Adds whole and billionths of a unit to *sum; false on overflow. */
static bool add_part(int64_t whole, int64_t billionths, int64_t unit_ns, int64_t *sum)
{
    __int128 part = (__int128)whole * unit_ns + (__int128)billionths * unit_ns / CLOCK_NS_PER_S;
    part += *sum;
    *sum = (int64_t)part;
    return part <= INT64_MAX;
}

static bool take_unit(struct scan *scan, int64_t *ret_ns)
{
    struct span rest = remaining_text(scan);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (!span_starts_with(rest, units[i].name))
            continue;
        scan->at += strlen(units[i].name);
        *ret_ns = units[i].ns;
        return true;
    }
    return false;
}

/* Parses the rest of the text. A number without a unit is seconds, if it is the only number. */
static enum err_code take_duration(struct scan *scan, int64_t *ret_ns, struct err *err)
{
    int64_t sum = 0, whole, billionths, unit_ns = CLOCK_NS_PER_S;
    size_t start = scan->at;
    do {
        bool is_first = scan->at == start;
        size_t digits = count_digits(scan);
        if (digits == 0)
            return set_syntax_error(scan, "a number", err);
        if (!take_number(scan, digits, &whole))
            return set_range_error(scan->text, err);
        if (!take_fraction(scan, &billionths))
            return set_syntax_error(scan, "a digit", err);
        bool is_alone = is_first && scan->at == scan->text.size;
        if (!is_alone && !take_unit(scan, &unit_ns))
            return set_syntax_error(scan, "a unit (ms, s, m, h, d, w or y)", err);
        if (!add_part(whole, billionths, unit_ns, &sum))
            return set_range_error(scan->text, err);
    } while (scan->at < scan->text.size);
    *ret_ns = sum;
    return ERR_NONE;
}

enum err_code time_parse_duration(struct span text, int64_t *ret_ns, struct err *err)
{
    struct scan scan = {.text = span_trim(text)};
    return take_duration(&scan, ret_ns, err);
}

/* ---- points in time ---- */

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static bool is_date(int64_t year, int64_t month, int64_t day)
{
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (month < 1 || month > 12 || day < 1)
        return false;
    return day <= days[month - 1] + (month == 2 && is_leap(year));
}

/* Days since 1970-01-01. Years are shifted to start in March, so that the leap day is their last
 * day. */
static int64_t days_since_1970(int64_t year, int64_t month, int64_t day)
{
    int64_t shifted = month <= 2 ? year - 1 : year;
    int64_t month_from_march = (month + 9) % 12;
    int64_t era_start = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400;
    return era_start + (153 * month_from_march + 2) / 5 + day - 1 - 719468;
}

static enum err_code set_time(struct span text, int64_t seconds, int64_t billionths,
                              int64_t *ret_ns, struct err *err)
{
    int64_t ns;
    if (__builtin_mul_overflow(seconds, CLOCK_NS_PER_S, &ns) ||
        __builtin_add_overflow(ns, billionths, &ns))
        return set_range_error(text, err);
    *ret_ns = ns;
    return ERR_NONE;
}

static bool take_blanks(struct scan *scan)
{
    const size_t at = scan->at;
    while (take_byte(scan, " \t"))
        ;
    return scan->at > at;
}

static bool is_letter(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

/* Skips the lower-case word if the text continues with it, in either case, and it is not part of
 * a longer word. */
static bool take_word(struct scan *scan, const char *word)
{
    const struct span rest = remaining_text(scan);
    const size_t size = strlen(word);
    if (rest.size < size || (rest.size > size && is_letter(rest.data[size])))
        return false;
    for (size_t i = 0; i < size; i++) {
        if ((rest.data[i] | 0x20) != (uint8_t)word[i])
            return false;
    }
    scan->at += size;
    return true;
}

/* Without an offset the time is UTC. */
static enum err_code take_offset(struct scan *scan, int64_t *ret_seconds, struct err *err)
{
    *ret_seconds = 0;
    if (scan->at == scan->text.size || take_byte(scan, "Zz") || take_word(scan, "utc"))
        return ERR_NONE;
    int64_t hours, minutes;
    bool is_west = scan->text.data[scan->at] == '-';
    if (!take_byte(scan, "+-"))
        return set_syntax_error(scan, "Z or an offset such as +01:00", err);
    if (!take_number(scan, 2, &hours) || !take_byte(scan, ":") || !take_number(scan, 2, &minutes) ||
        hours > 23 || minutes > 59)
        return set_syntax_error(scan, "an offset such as +01:00", err);
    *ret_seconds = (hours * 60 + minutes) * (is_west ? -60 : 60);
    return ERR_NONE;
}

/* Parses hour, minute and optional second, fraction and offset up to the end of the text, on the
 * day that begins day_s seconds after 1970. */
static enum err_code parse_time_of_day(struct scan *scan, int64_t day_s, int64_t *ret_ns,
                                       struct err *err)
{
    int64_t hour, minute, second = 0, billionths = 0, offset_s;
    if (!take_number(scan, 2, &hour) || !take_byte(scan, ":") || !take_number(scan, 2, &minute) ||
        (take_byte(scan, ":") && !take_number(scan, 2, &second)))
        return set_syntax_error(scan, "a time such as 03:04:05", err);
    /* 60 is a leap second, which Unix time does not have: it is the following second. */
    if (hour > 23 || minute > 59 || second > 60)
        return set_range_error(scan->text, err);
    if (!take_fraction(scan, &billionths))
        return set_syntax_error(scan, "a digit", err);
    take_blanks(scan);
    enum err_code code = take_offset(scan, &offset_s, err);
    if (code)
        return code;
    if (scan->at < scan->text.size)
        return set_syntax_error(scan, "the end", err);
    return set_time(scan->text, day_s + hour * 3600 + minute * 60 + second - offset_s, billionths,
                    ret_ns, err);
}

static enum err_code parse_date(struct scan *scan, int64_t *ret_ns, struct err *err)
{
    int64_t year, month, day;
    if (!take_number(scan, 4, &year) || !take_byte(scan, "-") || !take_number(scan, 2, &month) ||
        !take_byte(scan, "-") || !take_number(scan, 2, &day))
        return set_syntax_error(scan, "a date such as 2026-01-02", err);
    if (!is_date(year, month, day))
        return set_range_error(scan->text, err);
    const int64_t day_s = days_since_1970(year, month, day) * 86400;
    if (scan->at == scan->text.size)
        return set_time(scan->text, day_s, 0, ret_ns, err);
    if (!take_byte(scan, "Tt") && !take_blanks(scan))
        return set_syntax_error(scan, "a time such as T03:04:05", err);
    return parse_time_of_day(scan, day_s, ret_ns, err);
}

/* ---- words ---- */

static int64_t day_number(int64_t now_ns)
{
    const int64_t day_ns = 86400 * CLOCK_NS_PER_S;
    return now_ns / day_ns - (now_ns % day_ns < 0);
}

/* After "today" and the like: that day's midnight, or the time on that day. */
static enum err_code parse_day(struct scan *scan, int64_t days, int64_t *ret_ns, struct err *err)
{
    const bool has_blank = take_blanks(scan);
    if (scan->at == scan->text.size)
        return set_time(scan->text, days * 86400, 0, ret_ns, err);
    if (!has_blank)
        return set_syntax_error(scan, "a blank and a time such as 03:04", err);
    return parse_time_of_day(scan, days * 86400, ret_ns, err);
}

static bool take_unit_word(struct scan *scan, int64_t *ret_ns)
{
    static const struct {
        const char *names[5];
        int64_t seconds;
    } words[] = {
        {{"seconds", "second", "secs", "sec", "s"}, 1},
        {{"minutes", "minute", "mins", "min", "m"}, 60},
        {{"hours", "hour", "hrs", "hr", "h"}, 3600},
        {{"days", "day", "d"}, 86400},
        {{"weeks", "week", "w"}, 7 * 86400},
        {{"months", "month", "mon"}, 30 * 86400},
        {{"years", "year", "y"}, 365 * 86400},
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        for (size_t j = 0; j < 5 && words[i].names[j]; j++) {
            if (take_word(scan, words[i].names[j])) {
                *ret_ns = words[i].seconds * CLOCK_NS_PER_S;
                return true;
            }
        }
    }
    return false;
}

/* "2 hours 30 minutes ago", "90min ago". */
static enum err_code parse_ago(struct scan *scan, int64_t now_ns, int64_t *ret_ns, struct err *err)
{
    int64_t sum_ns = 0, whole, billionths, unit_ns;
    do {
        const size_t digits = count_digits(scan);
        if (!digits)
            return set_syntax_error(scan, "a number or \"ago\"", err);
        if (!take_number(scan, digits, &whole))
            return set_range_error(scan->text, err);
        if (!take_fraction(scan, &billionths))
            return set_syntax_error(scan, "a digit", err);
        take_blanks(scan);
        if (!take_unit_word(scan, &unit_ns))
            return set_syntax_error(scan, "a unit (seconds, minutes, hours, days or weeks)", err);
        if (!add_part(whole, billionths, unit_ns, &sum_ns))
            return set_range_error(scan->text, err);
        take_blanks(scan);
    } while (!take_word(scan, "ago"));
    if (scan->at < scan->text.size)
        return set_syntax_error(scan, "the end", err);
    if (__builtin_sub_overflow(now_ns, sum_ns, ret_ns))
        return set_range_error(scan->text, err);
    return ERR_NONE;
}

static bool ends_with_ago(struct span text)
{
    struct scan scan = {.text = text, .at = text.size < 3 ? text.size : text.size - 3};
    return take_word(&scan, "ago");
}

/* If the text begins with a word for a day, skips it and sets *ret_days to the day's number
 * since 1970. */
static bool take_day(struct scan *scan, int64_t now_ns, int64_t *ret_days)
{
    static const struct {
        const char *name;
        int64_t distance;
    } words[] = {{"today", 0}, {"yesterday", -1}, {"tomorrow", 1}};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        if (take_word(scan, words[i].name)) {
            *ret_days = day_number(now_ns) + words[i].distance;
            return true;
        }
    }
    return false;
}

/* ---- numbers ---- */

static bool parse_date_digits(struct span digits, int64_t *ret_days)
{
    struct scan scan = {.text = digits};
    int64_t year, month, day;
    if (digits.size != 8 || !take_number(&scan, 4, &year) || !take_number(&scan, 2, &month) ||
        !take_number(&scan, 2, &day) || year <= 1900 || !is_date(year, month, day))
        return false;
    *ret_days = days_since_1970(year, month, day);
    return true;
}

static enum err_code parse_digits(struct span digits, int64_t *ret_ns, struct err *err)
{
    int64_t number, days, unit_ns = CLOCK_NS_PER_S;
    if (parse_date_digits(digits, &days))
        return set_time(digits, days * 86400, 0, ret_ns, err);
    if (!span_parse_i64(digits, &number))
        return set_range_error(digits, err);
    if (digits.size == 13)
        unit_ns = CLOCK_NS_PER_MS;
    else if (digits.size == 16)
        unit_ns = 1000;
    else if (digits.size == 19)
        unit_ns = 1;
    if (__builtin_mul_overflow(number, unit_ns, &number))
        return set_range_error(digits, err);
    *ret_ns = number;
    return ERR_NONE;
}

static enum err_code parse_relative(struct scan *scan, int64_t now_ns, int64_t *ret_ns,
                                    struct err *err)
{
    int64_t distance_ns = 0;
    bool is_past = scan->at < scan->text.size && scan->text.data[scan->at] == '-';
    if (scan->at < scan->text.size) {
        if (!take_byte(scan, "+-"))
            return set_syntax_error(scan, "+ or -", err);
        enum err_code code = take_duration(scan, &distance_ns, err);
        if (code)
            return code;
    }
    if (__builtin_add_overflow(now_ns, is_past ? -distance_ns : distance_ns, ret_ns))
        return set_range_error(scan->text, err);
    return ERR_NONE;
}

/* "1767323045" or "1767323045.678". */
static enum err_code parse_unix(struct scan *scan, int64_t *ret_ns, struct err *err)
{
    int64_t seconds, billionths;
    const size_t digits = count_digits(scan);
    if (digits && scan->at + digits == scan->text.size)
        return parse_digits(remaining_text(scan), ret_ns, err);
    if (!digits)
        return set_syntax_error(scan, "a number of seconds", err);
    if (!take_number(scan, digits, &seconds))
        return set_range_error(scan->text, err);
    if (!take_fraction(scan, &billionths) || scan->at < scan->text.size)
        return set_syntax_error(scan, scan->at < scan->text.size ? "the end" : "a digit", err);
    return set_time(scan->text, seconds, billionths, ret_ns, err);
}

/* Whether the text is a duration with a unit, such as "10m", after an optional sign. */
static bool is_duration(struct span text)
{
    struct scan scan = {.text = text};
    int64_t ignored_ns;
    struct err ignored;
    take_byte(&scan, "+-");
    const size_t digits = count_digits(&scan);
    return digits && scan.at + digits < text.size && is_letter(text.data[text.size - 1]) &&
           take_duration(&scan, &ignored_ns, &ignored) == ERR_NONE;
}

static enum err_code set_duration_error(struct span text, struct err *err)
{
    const int size = (int)(text.size < QUOTED_BYTES ? text.size : QUOTED_BYTES);
    const char *shown = (const char *)text.data;
    const bool has_sign = shown[0] == '+' || shown[0] == '-';
    return err_set(err, ERR_INVALID, "'%.*s' is a duration; write now%s%.*s for the point in time",
                   size, shown, has_sign ? "" : "-", size, shown);
}

static enum err_code parse_number(struct scan *scan, int64_t now_ns, int64_t *ret_ns,
                                  struct err *err)
{
    const size_t digits = count_digits(scan);
    const uint8_t next = digits < scan->text.size ? scan->text.data[digits] : 0;
    if (ends_with_ago(scan->text))
        return parse_ago(scan, now_ns, ret_ns, err);
    if (!next || next == '.')
        return parse_unix(scan, ret_ns, err);
    if (next == ':')
        return parse_time_of_day(scan, day_number(now_ns) * 86400, ret_ns, err);
    return parse_date(scan, ret_ns, err);
}

enum err_code time_parse(struct span text, int64_t now_ns, int64_t *ret_ns, struct err *err)
{
    struct scan scan = {.text = span_trim(text)};
    int64_t ns = 0, days;
    enum err_code code;
    if (is_duration(scan.text))
        return set_duration_error(scan.text, err);
    if (span_starts_with(scan.text, "now")) {
        scan.at = 3;
        code = parse_relative(&scan, now_ns, &ns, err);
    } else if (take_day(&scan, now_ns, &days)) {
        code = parse_day(&scan, days, &ns, err);
    } else if (take_byte(&scan, "@")) {
        code = parse_unix(&scan, &ns, err);
    } else if (count_digits(&scan)) {
        code = parse_number(&scan, now_ns, &ns, err);
    } else {
        return set_syntax_error(
            &scan, "a time (now-3h, yesterday, 2026-01-02, RFC 3339 or unix time)", err);
    }
    if (!code)
        *ret_ns = ns;
    return code;
}

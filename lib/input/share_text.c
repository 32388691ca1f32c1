#include "lib/input/share_text.h"

#include "lib/base/err.h"
#include "lib/base/span_utf8.h"

static const int64_t seconds_per_hour = 3600;
static const int64_t expires_max_s = INT64_C(100) * 365 * 24 * 3600;

static size_t count_characters(struct span text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.size; i++)
        count += (text.data[i] & 0xc0) != 0x80;
    return count;
}

static bool has_control(struct span text, bool is_one_line)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        bool is_break = byte == '\n' || byte == '\r' || byte == '\t';
        if ((byte < 0x20 && (is_one_line || !is_break)) || byte == 0x7f)
            return true;
    }
    return false;
}

enum err_code share_text_check(const char *name, struct span text, size_t max_characters,
                               bool is_one_line, struct err *err)
{
    if (!span_is_utf8(text))
        return err_set(err, ERR_INVALID, "%s is not UTF-8", name);
    if (has_control(text, is_one_line))
        return err_set(err, ERR_INVALID, "%s contains control characters%s", name,
                       is_one_line ? " or line breaks" : "");
    size_t count = count_characters(text);
    if (count > max_characters)
        return err_set(err, ERR_INVALID, "%s has %zu characters, limit %zu", name, count,
                       max_characters);
    return ERR_NONE;
}

/* "12h", "7d", "2w" as seconds; false when it is none of these. */
static bool parse_duration(struct span text, int64_t *ret_seconds)
{
    uint64_t number;
    if (text.size < 2 || !span_parse_u64(span_of(text.data, text.size - 1), &number))
        return false;
    int64_t unit;
    switch (text.data[text.size - 1]) {
    case 'h':
        unit = seconds_per_hour;
        break;
    case 'd':
        unit = 24 * seconds_per_hour;
        break;
    case 'w':
        unit = 7 * 24 * seconds_per_hour;
        break;
    default:
        return false;
    }
    return number <= INT64_MAX && !__builtin_mul_overflow((int64_t)number, unit, ret_seconds);
}

enum err_code share_text_parse_expires(struct span text, int64_t *ret_seconds, struct err *err)
{
    int64_t seconds = 0;
    bool is_never = span_equal_text(text, "never");
    if (!is_never && !parse_duration(text, &seconds))
        return err_set(err, ERR_INVALID,
                       "expires \"%.*s\" is invalid: use never, or a number followed by h, d or w",
                       text.size > 40 ? 40 : (int)text.size, (const char *)text.data);
    if (!is_never && (seconds < seconds_per_hour || seconds > expires_max_s))
        return err_set(err, ERR_INVALID, "expires must be from 1h to 36500d, or never");
    *ret_seconds = seconds;
    return ERR_NONE;
}

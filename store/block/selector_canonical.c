/* One text for all selectors that are written differently and mean the same. */
#include "store/block/selector_internal.h"

#include <stdlib.h>

static int compare_matchers(const void *a, const void *b)
{
    const struct matcher *one = *(const struct matcher *const *)a;
    const struct matcher *other = *(const struct matcher *const *)b;
    int order = (int)other->is_of_type - (int)one->is_of_type;
    if (!order)
        order = span_compare(one->name, other->name);
    if (!order)
        order = (int)one->comparison - (int)other->comparison;
    return order ? order : span_compare(one->value, other->value);
}

static void append_value(struct span value, struct buf *text)
{
    for (size_t i = 0; i < value.size; i++) {
        const uint8_t c = value.data[i];
        if (c < ' ' || c >= 0x7f || c == '"' || c == '\\')
            buf_printf(text, "\\x%02x", c);
        else
            buf_append_byte(text, c);
    }
}

static void append_matcher(const struct matcher *matcher, struct buf *text)
{
    static const char *const signs[] = {
        [EQUALS] = "=", [DIFFERS] = "!=", [MATCHES] = "=~", [MATCHES_NOT] = "!~"};
    buf_append_span(text, matcher->name);
    buf_append_text(text, signs[matcher->comparison]);
    buf_append_byte(text, '"');
    append_value(matcher->value, text);
    buf_append_text(text, "\",");
}

void selector_append_canonical(const struct selector *selector, struct buf *text)
{
    const struct matcher *sorted[SELECTOR_MAX_MATCHERS + 1];
    buf_append_byte(text, '{');
    for (size_t i = 0; i < selector->matcher_count; i++)
        sorted[i] = &selector->matchers[i];
    qsort(sorted, selector->matcher_count, sizeof(sorted[0]), compare_matchers);
    for (size_t i = 0; i < selector->matcher_count; i++) {
        if (i == 0 || compare_matchers(&sorted[i - 1], &sorted[i]) != 0)
            append_matcher(sorted[i], text);
    }
    buf_append_byte(text, '}');
}

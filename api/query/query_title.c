#include "api/query/query_title.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/input/share_text.h"
#include "store/store.h"

#include <string.h>
#include <time.h>

enum { LABELS_MAX_BYTES = 110, TYPE_MAX_BYTES = 40, TEXT_MAX_BYTES = 1 << 17 };

/* The words of web/src/explore/type_names.ts. */
static const struct {
    const char *sample_type, *word;
} type_words[] = {
    {"cpu", "CPU time"},
    {"samples", "CPU samples"},
    {"wall", "Wall time"},
    {"wall_time", "Wall time"},
    {"alloc_space", "Allocated memory"},
    {"alloc_objects", "Allocated objects"},
    {"inuse_space", "Memory in use"},
    {"inuse_objects", "Objects in use"},
    {"goroutine", "Goroutines"},
    {"goroutines", "Goroutines"},
    {"contentions", "Contentions"},
    {"delay", "Time blocked"},
    {"off_cpu", "Time off CPU"},
    {"lock_time", "Time in locks"},
    {"exceptions", "Exceptions"},
};

/* At most max_bytes, cut between characters. */
static const char *cut_text(struct arena *arena, struct span text, size_t max_bytes)
{
    size_t size = text.size;
    if (size <= max_bytes)
        return arena_strndup(arena, text.data, size);
    for (size = max_bytes; size && (text.data[size] & 0xc0) == 0x80;)
        size--;
    return arena_printf(arena, "%.*s…", (int)size, (const char *)text.data);
}

static const char *type_text(struct arena *arena, struct span type)
{
    const uint8_t *end, *colon = type.size ? memchr(type.data, ':', type.size) : NULL;
    struct span part = type;
    if (colon) {
        part = span_of(colon + 1, (size_t)(type.data + type.size - colon - 1));
        end = part.size ? memchr(part.data, ':', part.size) : NULL;
        part.size = end ? (size_t)(end - part.data) : part.size;
    }
    for (size_t i = 0; i < sizeof(type_words) / sizeof(*type_words); i++)
        if (span_equal_text(part, type_words[i].sample_type))
            return type_words[i].word;
    return cut_text(arena, part, TYPE_MAX_BYTES);
}

/* ---- labels ---- */

/* One matcher of a selector in its canonical form: name, operator, value in double quotes. */
struct matcher {
    struct span name;
    struct span sign;
    struct span value; /* without its quotes, escapes unchanged */
};

/* Takes the next matcher from text; false if there is none. */
static bool take_matcher(struct span *text, struct matcher *ret_matcher)
{
    size_t at = 0, name_end, quote;
    while (at < text->size && (text->data[at] == ',' || text->data[at] == ' '))
        at++;
    const size_t begin = at;
    while (at < text->size && !memchr("=!~\"", text->data[at], 4))
        at++;
    for (name_end = at; at < text->size && memchr("=!~", text->data[at], 3);)
        at++;
    if (at == name_end || at >= text->size || text->data[at] != '"')
        return false;
    for (quote = at++; at < text->size && text->data[at] != '"';)
        at++; /* a quote in the value is an escape without one */
    if (at >= text->size)
        return false;
    *ret_matcher = (struct matcher){
        .name = span_of(text->data + begin, name_end - begin),
        .sign = span_of(text->data + name_end, quote - name_end),
        .value = span_of(text->data + quote + 1, at - quote - 1),
    };
    *text = span_of(text->data + at + 1, text->size - at - 1);
    return true;
}

static int hex_digit(uint8_t c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* The canonical form (selector_append_canonical) writes a quote as \x22, and backslashes, control
 * characters and bytes above 0x7e in the same way. Quotes and backslashes are decoded. The others
 * remain escapes: titles allow no control characters. */
static void append_value(struct buf *buf, struct span value)
{
    for (size_t i = 0; i < value.size; i++) {
        const bool is_escape =
            value.size - i >= 4 && value.data[i] == '\\' && value.data[i + 1] == 'x';
        const int high = is_escape ? hex_digit(value.data[i + 2]) : -1;
        const int low = is_escape ? hex_digit(value.data[i + 3]) : -1;
        if (high >= 2 && low >= 0 && 16 * high + low < 0x7f) {
            buf_append_byte(buf, (uint8_t)(16 * high + low));
            i += 3;
        } else {
            buf_append_byte(buf, value.data[i]);
        }
    }
}

static void append_matcher(struct buf *buf, const struct matcher *matcher)
{
    buf_append_text(buf, buf->size ? ", " : "");
    if (!span_equal_text(matcher->name, "service_name") || !span_equal_text(matcher->sign, "=")) {
        buf_append(buf, matcher->name.data, matcher->name.size);
        buf_append(buf, matcher->sign.data, matcher->sign.size);
    }
    append_value(buf, matcher->value);
}

/* The service first, by its value alone; then the other labels. */
static void append_labels(struct buf *buf, struct span matchers)
{
    for (int wants_service = 1; wants_service >= 0; wants_service--) {
        struct span rest = matchers;
        struct matcher matcher;
        while (take_matcher(&rest, &matcher)) {
            if (span_equal_text(matcher.name, "__profile_type__"))
                continue;
            if (span_equal_text(matcher.name, "service_name") == (wants_service == 1))
                append_matcher(buf, &matcher);
        }
    }
}

static const char *labels_text(struct arena *arena, struct span selector)
{
    const char *canonical;
    struct err ignored;
    if (store_check_selector(arena, selector, &canonical, &ignored) || *canonical != '{')
        return "";
    buf_auto text;
    buf_init(&text, TEXT_MAX_BYTES);
    append_labels(&text, span_text(canonical + 1));
    return text.size ? cut_text(arena, buf_span(&text), LABELS_MAX_BYTES) : "all services";
}

/* ---- the window ---- */

enum { TIME_BYTES = 64 };

static void split_time(int64_t wall_ns, struct tm *ret_parts)
{
    const time_t seconds = (time_t)(wall_ns / CLOCK_NS_PER_S);
    if (!gmtime_r(&seconds, ret_parts))
        *ret_parts = (struct tm){.tm_mday = 1};
}

static void append_time(struct buf *buf, const struct tm *parts, bool has_date, bool has_seconds)
{
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    if (has_date)
        buf_printf(buf, "%d %s %d, ", parts->tm_mday, months[parts->tm_mon % 12],
                   1900 + parts->tm_year);
    buf_printf(buf, "%02d:%02d", parts->tm_hour, parts->tm_min);
    if (has_seconds)
        buf_printf(buf, ":%02d", parts->tm_sec);
}

static void append_window(struct buf *buf, int64_t start_ns, int64_t end_ns)
{
    struct tm start, end;
    split_time(start_ns, &start);
    split_time(end_ns, &end);
    int64_t length_ns;
    const bool is_short =
        !__builtin_sub_overflow(end_ns, start_ns, &length_ns) && length_ns < 120 * CLOCK_NS_PER_S;
    const bool is_one_day = start.tm_year == end.tm_year && start.tm_yday == end.tm_yday;
    append_time(buf, &start, true, is_short);
    buf_append_text(buf, "–");
    append_time(buf, &end, !is_one_day, is_short);
    buf_append_text(buf, " UTC");
}

const char *query_title(struct arena *arena, struct span type, struct span selector,
                        int64_t start_ns, int64_t end_ns)
{
    struct err ignored;
    buf_auto window;
    buf_init(&window, 2 * (size_t)TIME_BYTES);
    append_window(&window, start_ns, end_ns);
    const char *labels = labels_text(arena, selector), *name = type_text(arena, type);
    const char *title = arena_printf(arena, "%s%s%s, %.*s", name, *labels ? ", " : "", labels,
                                     SPAN_PRINT(buf_span(&window)));
    if (!share_text_check("title", span_text(title), SHARE_TITLE_CHARACTERS, true, &ignored))
        return title;
    /* The name of a profile type may contain control characters, which titles do not allow. */
    return arena_printf(arena, "Profile, %.*s", SPAN_PRINT(buf_span(&window)));
}

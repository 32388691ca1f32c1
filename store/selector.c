#include "store/selector.h"

#include "lib/base/digest.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/regex.h"
#include "lib/profile/batch_labels.h"
#include "store/dictionary.h"

#include <stdlib.h>

enum { TYPE_PARTS_MAX = SELECTOR_TYPE_PARTS + 1, POINTER_BYTES = 24, KNOWN_MAX_BYTES = 8 << 20 };

enum comparison { EQUALS, DIFFERS, MATCHES, MATCHES_NOT };

struct matcher {
    struct span name;
    struct span value;
    enum comparison comparison;
    struct regex *regex;
    struct map_bytes known; /* values that regex was asked about: whether they match */
    size_t known_bytes;
};

struct selector {
    struct arena *arena;
    struct span parts[TYPE_PARTS_MAX]; /* of the type; none: any */
    size_t part_count;
    struct matcher matchers[SELECTOR_MAX_MATCHERS];
    size_t matcher_count;
};

struct parser {
    struct arena *arena;
    struct span text;
    size_t at;
    struct selector *selector;
    struct err *err;
};

/* ---- characters ---- */

static int peek(const struct parser *parser)
{
    return parser->at < parser->text.size ? parser->text.data[parser->at] : -1;
}

static void skip_space(struct parser *parser)
{
    while (peek(parser) == ' ' || peek(parser) == '\t' || peek(parser) == '\n' ||
           peek(parser) == '\r')
        parser->at++;
}

/* The message shows what stands there: "expected … at byte 12, before: ,b=c}" */
static enum err_code fail_at(const struct parser *parser, size_t at, const char *what)
{
    const size_t left = parser->text.size - at;
    if (!left)
        return err_set(parser->err, ERR_INVALID, "query: %s at its end (character %zu)", what,
                       at + 1);
    return err_set(parser->err, ERR_INVALID, "query: %s at character %zu, here: %.*s%s", what,
                   at + 1, (int)(left > POINTER_BYTES ? POINTER_BYTES : left),
                   (const char *)parser->text.data + at, left > POINTER_BYTES ? "..." : "");
}

static bool take(struct parser *parser, char wanted)
{
    if (peek(parser) != wanted)
        return false;
    parser->at++;
    return true;
}

static bool is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

static bool is_name(int c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || c == '.';
}

/* ---- strings ---- */

static enum err_code take_escape(struct parser *parser, struct buf *value)
{
    enum { HEX_DIGITS = 2 };
    static const char names[] = "\\\"'nt";
    static const char bytes[] = "\\\"'\n\t";
    const int c = peek(parser);
    const char *place = c > 0 ? strchr(names, c) : NULL;
    const size_t left = parser->text.size - parser->at;
    uint8_t byte;
    if (c == 'x' && left > HEX_DIGITS &&
        digest_parse_hex(span_of(parser->text.data + parser->at + 1, HEX_DIGITS), &byte, 1)) {
        buf_append_byte(value, byte);
        parser->at += 1 + HEX_DIGITS;
        return ERR_NONE;
    }
    if (!place)
        return fail_at(parser, parser->at - 1,
                       "\\ stands only before \\, a quote, n, t and x with two hexadecimal digits "
                       "(write `...` for an expression)");
    buf_append_byte(value, (uint8_t)bytes[place - names]);
    parser->at++;
    return ERR_NONE;
}

static enum err_code take_string(struct parser *parser, struct span *ret_value)
{
    const size_t begin = parser->at;
    const int quote = peek(parser);
    if (quote != '"' && quote != '\'' && quote != '`')
        return fail_at(parser, begin, "expected a value in quotes");
    struct buf value;
    buf_init(&value, SELECTOR_MAX_BYTES);
    parser->at++;
    enum err_code code = ERR_NONE;
    while (!code && peek(parser) != quote) {
        const int c = peek(parser);
        if (c < 0) {
            code = fail_at(parser, begin, "this quote is not closed");
            break;
        }
        parser->at++;
        if (c == '\\' && quote != '`')
            code = take_escape(parser, &value);
        else
            buf_append_byte(&value, (uint8_t)c);
    }
    if (!code) {
        parser->at++;
        *ret_value = span_of(arena_strndup(parser->arena, value.data, value.size), value.size);
    }
    buf_fini(&value);
    return code;
}

/* ---- matchers ---- */

static enum err_code take_comparison(struct parser *parser, enum comparison *ret_comparison)
{
    if (take(parser, '=')) {
        *ret_comparison = take(parser, '~') ? MATCHES : EQUALS;
        return ERR_NONE;
    }
    if (take(parser, '!')) {
        if (take(parser, '=')) {
            *ret_comparison = DIFFERS;
            return ERR_NONE;
        }
        if (take(parser, '~')) {
            *ret_comparison = MATCHES_NOT;
            return ERR_NONE;
        }
    }
    return fail_at(parser, parser->at, "expected =, !=, =~ or !~");
}

static void destroy_regex(void *regex)
{
    regex_destroy(regex);
}

static void destroy_map(void *map)
{
    map_bytes_fini(map);
}

/* The whole value must match; "(?i)" stays where it is allowed. */
static enum err_code compile(struct parser *parser, struct matcher *matcher, size_t at)
{
    struct span pattern = matcher->value;
    const bool ignores_case = span_starts_with(pattern, "(?i)");
    if (ignores_case)
        pattern = span_of(pattern.data + 4, pattern.size - 4);
    const char *whole = arena_printf(parser->arena, "%s^(?:%.*s)$", ignores_case ? "(?i)" : "",
                                     SPAN_PRINT(pattern));
    /* As it was written first, for the message's sake. */
    struct err err;
    struct regex *alone;
    enum err_code code = regex_create(matcher->value, &alone, &err);
    if (!code) {
        regex_destroy(alone);
        code = regex_create(span_text(whole), &matcher->regex, &err);
    }
    if (code)
        return err_set(parser->err, ERR_INVALID, "query: the expression at character %zu: %s",
                       at + 1, err.message);
    regex_set_steady(matcher->regex);
    arena_on_destroy(parser->arena, destroy_regex, matcher->regex);
    return ERR_NONE;
}

static void split_type(struct selector *selector, struct span type)
{
    struct span part;
    selector->part_count = 0;
    while (selector->part_count < TYPE_PARTS_MAX) {
        const bool has_more = span_split(type, ':', &part, &type);
        selector->parts[selector->part_count++] = part;
        if (!has_more)
            return;
    }
}

static enum err_code check_type(const struct parser *parser, struct span type, size_t at)
{
    size_t colons = 0;
    for (size_t i = 0; i < type.size; i++)
        colons += type.data[i] == ':';
    if (type.size == 0 || colons >= TYPE_PARTS_MAX)
        return fail_at(parser, at,
                       "expected a profile type: name:sample_type:sample_unit:period_type:"
                       "period_unit");
    return ERR_NONE;
}

/* As series have it: "k8s.pod" finds what it became. */
static struct span clean_name(struct arena *arena, struct span name)
{
    if (batch_labels_is_name(name) || span_starts_with(name, "__"))
        return name;
    char *cleaned = arena_alloc_raw(arena, name.size + 1, 1);
    return span_of(cleaned, batch_labels_clean_name(name, cleaned));
}

/* Does it match one text alone, itself? It need not tell all that do. */
static bool is_plain(struct span pattern)
{
    for (size_t i = 0; i < pattern.size; i++) {
        const int c = pattern.data[i];
        const bool is_alphanumeric =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_alphanumeric && (c == 0 || !strchr("_-/: ", c)))
            return false;
    }
    return pattern.size > 0;
}

/* An expression without anything special is a comparison; but "=" has a meaning of its own where
 * the type is asked for. */
static enum err_code take_expression(struct parser *parser, struct matcher *matcher, size_t at)
{
    if (!is_plain(matcher->value) || span_starts_with(matcher->name, "__"))
        return compile(parser, matcher, at);
    matcher->comparison = matcher->comparison == MATCHES ? EQUALS : DIFFERS;
    return ERR_NONE;
}

static enum err_code take_matcher(struct parser *parser)
{
    struct selector *selector = parser->selector;
    const size_t begin = parser->at;
    if (selector->matcher_count == SELECTOR_MAX_MATCHERS)
        return fail_at(parser, begin, "too many labels");
    if (!is_letter(peek(parser)))
        return fail_at(parser, begin, "expected the name of a label");
    while (is_name(peek(parser)))
        parser->at++;
    const struct span name = span_of(parser->text.data + begin, parser->at - begin);
    struct matcher matcher = {.name = clean_name(parser->arena, name)};
    skip_space(parser);
    enum err_code code = take_comparison(parser, &matcher.comparison);
    skip_space(parser);
    const size_t at = parser->at;
    if (!code)
        code = take_string(parser, &matcher.value);
    if (!code && (matcher.comparison == MATCHES || matcher.comparison == MATCHES_NOT))
        code = take_expression(parser, &matcher, at);
    if (code)
        return code;
    if (span_equal_text(matcher.name, "__profile_type__") && matcher.comparison == EQUALS &&
        !selector->part_count) {
        split_type(selector, matcher.value);
        return check_type(parser, matcher.value, at);
    }
    struct matcher *kept = &selector->matchers[selector->matcher_count++];
    *kept = matcher;
    if (kept->regex) {
        map_bytes_init(&kept->known, 0);
        arena_on_destroy(parser->arena, destroy_map, &kept->known);
    }
    return ERR_NONE;
}

static enum err_code take_matchers(struct parser *parser)
{
    const size_t begin = parser->at - 1;
    for (;;) {
        skip_space(parser);
        if (take(parser, '}'))
            return ERR_NONE;
        if (peek(parser) < 0)
            return fail_at(parser, begin, "this { is not closed");
        enum err_code code = take_matcher(parser);
        if (code)
            return code;
        skip_space(parser);
        if (!take(parser, ',') && peek(parser) != '}')
            return fail_at(parser, parser->at, "expected , or }");
    }
}

enum err_code selector_parse(struct arena *arena, struct span text, struct selector **ret_selector,
                             struct err *err)
{
    struct parser parser = {
        .arena = arena, .text = text, .selector = arena_new(arena, struct selector, 1), .err = err};
    parser.selector->arena = arena;
    if (text.size > SELECTOR_MAX_BYTES)
        return err_set(err, ERR_INVALID, "query: longer than %d bytes", SELECTOR_MAX_BYTES);
    if (memchr(text.data, 0, text.size))
        return err_set(err, ERR_INVALID, "query: a byte of it is 0");
    skip_space(&parser);
    const size_t begin = parser.at;
    while (peek(&parser) > ' ' && peek(&parser) != '{')
        parser.at++;
    const struct span type = span_of(text.data + begin, parser.at - begin);
    enum err_code code = ERR_NONE;
    if (type.size) {
        code = check_type(&parser, type, begin);
        split_type(parser.selector, type);
    }
    skip_space(&parser);
    if (!code && take(&parser, '{'))
        code = take_matchers(&parser);
    skip_space(&parser);
    if (!code && peek(&parser) >= 0)
        code = fail_at(&parser, parser.at, "expected nothing more");
    if (!code && !parser.selector->part_count && !parser.selector->matcher_count)
        code = err_set(err, ERR_INVALID,
                       "query: empty; write a profile type, labels, or both, as in "
                       "process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"api\"}");
    if (!code)
        *ret_selector = parser.selector;
    return code;
}

/* ---- one text of all that are written otherwise ---- */

static int compare_matchers(const void *a, const void *b)
{
    const struct matcher *one = *(const struct matcher *const *)a;
    const struct matcher *other = *(const struct matcher *const *)b;
    int order = span_compare(one->name, other->name);
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

static void append_type(const struct selector *selector, struct buf *text)
{
    buf_append_text(text, "__profile_type__=\"");
    for (size_t i = 0; i < selector->part_count; i++) {
        buf_append_text(text, i ? ":" : "");
        append_value(selector->parts[i], text);
    }
    buf_append_text(text, "\",");
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
    const struct matcher *sorted[SELECTOR_MAX_MATCHERS];
    buf_append_byte(text, '{');
    if (selector->part_count)
        append_type(selector, text);
    for (size_t i = 0; i < selector->matcher_count; i++)
        sorted[i] = &selector->matchers[i];
    qsort(sorted, selector->matcher_count, sizeof(sorted[0]), compare_matchers);
    for (size_t i = 0; i < selector->matcher_count; i++) {
        if (i == 0 || compare_matchers(&sorted[i - 1], &sorted[i]) != 0)
            append_matcher(sorted[i], text);
    }
    buf_append_byte(text, '}');
}

enum err_code selector_check_steady(const struct selector *selector, struct err *err)
{
    for (size_t i = 0; i < selector->matcher_count; i++) {
        const struct matcher *matcher = &selector->matchers[i];
        if (matcher->regex && regex_repeats_much(matcher->regex))
            return err_set(err, ERR_INVALID,
                           "query: the expression of %.*s repeats too much in braces for what is "
                           "to be matched with all that is ever stored",
                           SPAN_PRINT(matcher->name));
    }
    return ERR_NONE;
}

/* ---- matching ---- */

static struct span text_of(const struct dictionary *dictionary, uint32_t string)
{
    return dictionary->tables->strings[string];
}

static bool has_parts(const struct selector *selector, const struct span *texts, size_t first)
{
    if (first + selector->part_count > SELECTOR_TYPE_PARTS)
        return false;
    for (size_t i = 0; i < selector->part_count; i++) {
        if (!span_equal(selector->parts[i], texts[first + i]))
            return false;
    }
    return true;
}

bool selector_matches_type(const struct selector *selector, const struct span *parts, bool is_delta)
{
    if (selector->part_count == 0)
        return true;
    if (selector->part_count == TYPE_PARTS_MAX) {
        struct selector whole = *selector;
        whole.part_count = SELECTOR_TYPE_PARTS;
        return span_equal_text(selector->parts[SELECTOR_TYPE_PARTS], "delta") && is_delta &&
               has_parts(&whole, parts, 0);
    }
    return has_parts(selector, parts, 0) || has_parts(selector, parts, 1);
}

static bool matches_type(const struct selector *selector, const struct dictionary *dictionary,
                         const struct batch_type *type)
{
    const struct span parts[SELECTOR_TYPE_PARTS] = {
        text_of(dictionary, type->name), text_of(dictionary, type->sample_type.type),
        text_of(dictionary, type->sample_type.unit), text_of(dictionary, type->period_type.type),
        text_of(dictionary, type->period_type.unit)};
    return selector_matches_type(selector, parts, type->is_delta);
}

static struct span find_label(const struct dictionary *dictionary,
                              const struct batch_series *series, struct span name)
{
    for (uint32_t i = 0; i < series->label_count; i++) {
        const struct batch_label *label = &dictionary->series_labels[series->first_label + i];
        if (span_equal(text_of(dictionary, label->name), name))
            return text_of(dictionary, label->value);
    }
    return (struct span){0};
}

/* Blocks repeat values: each is matched once, as long as there is room to remember it. */
static enum err_code match_value(struct arena *arena, struct matcher *matcher, struct span value,
                                 bool *ret_matches, struct err *err)
{
    const uint32_t known = map_bytes_find(&matcher->known, value);
    if (known != MAP_ABSENT) {
        *ret_matches = known;
        return ERR_NONE;
    }
    enum err_code code = regex_match(matcher->regex, value, ret_matches, err);
    const size_t bytes = value.size + sizeof(struct map_bytes_slot);
    if (code || matcher->known_bytes + bytes > KNOWN_MAX_BYTES)
        return code;
    matcher->known_bytes += bytes;
    value = span_of(arena_strndup(arena, value.data, value.size), value.size);
    map_bytes_add(&matcher->known, value, *ret_matches);
    return ERR_NONE;
}

static enum err_code compare(struct arena *arena, struct matcher *matcher, struct span value,
                             bool *ret_matches, struct err *err)
{
    if (!matcher->regex) {
        *ret_matches = span_equal(matcher->value, value) == (matcher->comparison == EQUALS);
        return ERR_NONE;
    }
    bool matches;
    enum err_code code = match_value(arena, matcher, value, &matches, err);
    if (code)
        return code;
    *ret_matches = matches == (matcher->comparison == MATCHES);
    return ERR_NONE;
}

void selector_append_type(const struct dictionary *dictionary, const struct batch_type *type,
                          struct buf *text)
{
    const uint32_t strings[] = {type->name, type->sample_type.type, type->sample_type.unit,
                                type->period_type.type, type->period_type.unit};
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        if (i)
            buf_append_byte(text, ':');
        buf_append_span(text, text_of(dictionary, strings[i]));
    }
    if (type->is_delta)
        buf_append_text(text, ":delta");
}

enum err_code selector_matches(struct selector *selector, const struct dictionary *dictionary,
                               uint32_t series, bool *ret_matches, struct err *err)
{
    const struct batch_series *one = &dictionary->series[series];
    bool matches = matches_type(selector, dictionary, &one->type);
    enum err_code code = ERR_NONE;
    for (size_t i = 0; matches && !code && i < selector->matcher_count; i++)
        code = compare(selector->arena, &selector->matchers[i],
                       find_label(dictionary, one, selector->matchers[i].name), &matches, err);
    *ret_matches = matches;
    return code;
}

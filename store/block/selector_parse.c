#include "store/block/selector_internal.h"

#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/profile/batch/batch_labels.h"
#include "lib/regex/regex.h"

#include <string.h>

enum { POINTER_BYTES = 24 }; /* of the text, in messages */

/* Stands for the type in place of a label. */
static const char type_label[] = "__profile_type__";

struct parser {
    struct arena *arena;
    struct span text;
    const char *name; /* name of the text in messages */
    bool was_kept;
    size_t at;
    struct selector *selector;
    struct err *err;
};

/* ---- characters ---- */

static int peek_char(const struct parser *parser)
{
    return parser->at < parser->text.size ? parser->text.data[parser->at] : -1;
}

static void skip_space(struct parser *parser)
{
    while (peek_char(parser) == ' ' || peek_char(parser) == '\t' || peek_char(parser) == '\n' ||
           peek_char(parser) == '\r')
        parser->at++;
}

/* The message shows the text at the position: "expected … at character 12, here: ,b=c}" */
static enum err_code fail_at(const struct parser *parser, size_t at, const char *what)
{
    const size_t left = parser->text.size - at;
    if (!left)
        return err_set(parser->err, ERR_INVALID, "%s: %s at its end (character %zu)", parser->name,
                       what, at + 1);
    return err_set(parser->err, ERR_INVALID, "%s: %s at character %zu, here: %.*s%s", parser->name,
                   what, at + 1, (int)(left > POINTER_BYTES ? POINTER_BYTES : left),
                   (const char *)parser->text.data + at, left > POINTER_BYTES ? "..." : "");
}

static bool take_char(struct parser *parser, char wanted)
{
    if (peek_char(parser) != wanted)
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
    const int c = peek_char(parser);
    const char *found = c > 0 ? strchr(names, c) : NULL;
    const size_t left = parser->text.size - parser->at;
    uint8_t byte;
    if (c == 'x' && left > HEX_DIGITS &&
        digest_parse_hex(span_of(parser->text.data + parser->at + 1, HEX_DIGITS), &byte, 1)) {
        buf_append_byte(value, byte);
        parser->at += 1 + HEX_DIGITS;
        return ERR_NONE;
    }
    if (!found)
        return fail_at(parser, parser->at - 1,
                       "\\ stands only before \\, a quote, n, t and x with two hexadecimal digits "
                       "(write `...` for an expression)");
    buf_append_byte(value, (uint8_t)bytes[found - names]);
    parser->at++;
    return ERR_NONE;
}

static enum err_code take_string(struct parser *parser, struct span *ret_value)
{
    const size_t begin = parser->at;
    const int quote = peek_char(parser);
    if (quote != '"' && quote != '\'' && quote != '`')
        return fail_at(parser, begin, "expected a value in quotes");
    struct buf value;
    buf_init(&value, SELECTOR_MAX_BYTES);
    parser->at++;
    enum err_code code = ERR_NONE;
    while (!code && peek_char(parser) != quote) {
        const int c = peek_char(parser);
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
    if (take_char(parser, '=')) {
        *ret_comparison = take_char(parser, '~') ? MATCHES : EQUALS;
        return ERR_NONE;
    }
    if (take_char(parser, '!')) {
        if (take_char(parser, '=')) {
            *ret_comparison = DIFFERS;
            return ERR_NONE;
        }
        if (take_char(parser, '~')) {
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

/* The whole value must match; "(?i)" stays where it is allowed, at the start. */
static enum err_code compile_matcher(struct parser *parser, struct matcher *matcher, size_t at)
{
    struct span pattern = matcher->value;
    const bool ignores_case = span_starts_with(pattern, "(?i)");
    if (ignores_case)
        pattern = span_of(pattern.data + 4, pattern.size - 4);
    const char *whole = arena_printf(parser->arena, "%s^(?:%.*s)$", ignores_case ? "(?i)" : "",
                                     SPAN_PRINT(pattern));
    /* The expression as written is compiled first, so that errors refer to it. */
    struct err err;
    struct regex *alone;
    enum err_code code = regex_create(matcher->value, &alone, &err);
    if (!code) {
        regex_destroy(alone);
        code = regex_create(span_text(whole), &matcher->regex, &err);
    }
    if (code)
        return err_set(parser->err, ERR_INVALID, "%s: the expression at character %zu: %s",
                       parser->name, at + 1, err.message);
    regex_use_dfa_fallback(matcher->regex);
    arena_on_destroy(parser->arena, destroy_regex, matcher->regex);
    return ERR_NONE;
}

static enum err_code check_type(const struct parser *parser, struct span type, size_t at)
{
    size_t colons = 0;
    for (size_t i = 0; i < type.size; i++)
        colons += type.data[i] == ':';
    if (type.size == 0 || colons >= SELECTOR_TYPE_PARTS_MAX)
        return fail_at(parser, at,
                       "expected a profile type: name:sample_type:sample_unit:period_type:"
                       "period_unit");
    return ERR_NONE;
}

/* Refuses names that begin with "__", except the type's. Selectors that were stored before this
 * check may contain such a name; there it is the name of a label that no series has. */
static enum err_code check_name(const struct parser *parser, struct span name, size_t at)
{
    if (!span_starts_with(name, "__") || span_equal_text(name, type_label) || parser->was_kept)
        return ERR_NONE;
    return fail_at(parser, at,
                   "expected the name of a label (of those that begin with __ there is only "
                   "__profile_type__)");
}

/* Converts a name as ingest does, so that "k8s.pod" finds "k8s_pod". */
static struct span clean_name(struct arena *arena, struct span name)
{
    if (batch_labels_is_name(name) || span_starts_with(name, "__"))
        return name;
    char *cleaned = arena_alloc_raw(arena, name.size + 1, 1);
    return span_of(cleaned, batch_labels_clean_name(name, cleaned));
}

/*
 * True if the expression certainly matches only its own text. May be false for others that do, too.
 */
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

/* An expression without special characters is compared as text, except for the type, where "=" also
 * matches parts. */
static enum err_code take_expression(struct parser *parser, struct matcher *matcher, size_t at)
{
    if (!is_plain(matcher->value) || span_starts_with(matcher->name, "__"))
        return compile_matcher(parser, matcher, at);
    matcher->comparison = matcher->comparison == MATCHES ? EQUALS : DIFFERS;
    return ERR_NONE;
}

static enum err_code take_name(struct parser *parser, struct span *ret_name)
{
    const size_t begin = parser->at;
    if (!is_letter(peek_char(parser)))
        return fail_at(parser, begin, "expected the name of a label");
    while (is_name(peek_char(parser)))
        parser->at++;
    const struct span name = span_of(parser->text.data + begin, parser->at - begin);
    *ret_name = clean_name(parser->arena, name);
    return check_name(parser, name, begin);
}

static enum err_code take_value(struct parser *parser, struct matcher *matcher)
{
    const size_t at = parser->at;
    const bool is_expression = matcher->comparison == MATCHES || matcher->comparison == MATCHES_NOT;
    enum err_code code = take_string(parser, &matcher->value);
    if (!code && is_expression)
        return take_expression(parser, matcher, at);
    /* No type is equal to a text that is no type. */
    const bool is_checked =
        matcher->comparison == EQUALS || (matcher->value.size && !parser->was_kept);
    if (!code && matcher->is_of_type && is_checked)
        code = check_type(parser, matcher->value, at);
    return code;
}

/* Whether the empty text matches. An expression that takes too long for it counts as matching, so
 * it requires no label here; comparing it with a value fails later. */
static bool matches_empty(const struct matcher *matcher)
{
    bool matches = !matcher->value.size;
    struct err ignored;
    if (matcher->regex && regex_match(matcher->regex, span_of("", 0), &matches, &ignored))
        matches = true;
    return matches == (matcher->comparison == EQUALS || matcher->comparison == MATCHES);
}

static void add_matcher(struct selector *selector, const struct matcher *matcher)
{
    struct matcher *kept = &selector->matchers[selector->matcher_count++];
    selector->has_type |= matcher->is_of_type && matcher->comparison == EQUALS;
    *kept = *matcher;
    kept->matches_empty = matches_empty(kept);
    if (!kept->regex)
        return;
    map_bytes_init(&kept->known, 0);
    arena_on_destroy(selector->arena, destroy_map, &kept->known);
}

static enum err_code take_matcher(struct parser *parser)
{
    struct selector *selector = parser->selector;
    struct matcher matcher = {0};
    if (selector->matcher_count - selector->has_type == SELECTOR_MAX_MATCHERS)
        return fail_at(parser, parser->at, "too many labels");
    enum err_code code = take_name(parser, &matcher.name);
    matcher.is_of_type = !code && span_equal_text(matcher.name, type_label);
    skip_space(parser);
    if (!code)
        code = take_comparison(parser, &matcher.comparison);
    skip_space(parser);
    if (code)
        return code;
    code = take_value(parser, &matcher);
    if (code)
        return code;
    add_matcher(selector, &matcher);
    return ERR_NONE;
}

static enum err_code take_matchers(struct parser *parser)
{
    const size_t begin = parser->at - 1;
    for (;;) {
        skip_space(parser);
        if (take_char(parser, '}'))
            return ERR_NONE;
        if (peek_char(parser) < 0)
            return fail_at(parser, begin, "this { is not closed");
        enum err_code code = take_matcher(parser);
        if (code)
            return code;
        skip_space(parser);
        if (!take_char(parser, ',') && peek_char(parser) != '}')
            return fail_at(parser, parser->at, "expected , or }");
    }
}

/* A leading type ends at a blank or a brace. Signs that it may not contain suggest another query
 * language; a type with such a sign must be quoted. */
static enum err_code take_type(struct parser *parser)
{
    const size_t begin = parser->at;
    while (peek_char(parser) > ' ' && peek_char(parser) != '{') {
        if (!parser->was_kept && strchr(SELECTOR_QUOTED_SIGNS, peek_char(parser)))
            return fail_at(parser, parser->at,
                           "expected a profile type, {labels} or both (a type with such a sign is "
                           "written {__profile_type__=\"...\"})");
        parser->at++;
    }
    const struct matcher matcher = {
        .name = span_text(type_label),
        .value = span_of(parser->text.data + begin, parser->at - begin),
        .comparison = EQUALS,
        .is_of_type = true,
    };
    if (!matcher.value.size)
        return ERR_NONE;
    add_matcher(parser->selector, &matcher);
    return check_type(parser, matcher.value, begin);
}

static enum err_code parse_selector_text(struct parser *parser)
{
    skip_space(parser);
    enum err_code code = take_type(parser);
    skip_space(parser);
    if (!code && take_char(parser, '{'))
        code = take_matchers(parser);
    skip_space(parser);
    if (!code && peek_char(parser) >= 0)
        code = fail_at(parser, parser->at, "expected nothing more");
    if (!code && !parser->selector->matcher_count)
        code = err_set(parser->err, ERR_INVALID,
                       "%s: empty; write a profile type, labels, or both, as in "
                       "process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"api\"}",
                       parser->name);
    return code;
}

static void destroy_buf(void *buf)
{
    buf_fini(buf);
}

static enum err_code parse_text(struct parser *parser, struct selector **ret_selector)
{
    struct selector *selector = arena_new(parser->arena, struct selector, 1);
    selector->arena = parser->arena;
    selector->was_kept = parser->was_kept;
    buf_init(&selector->type, SELECTOR_TEXT_MAX_BYTES);
    arena_on_destroy(parser->arena, destroy_buf, &selector->type);
    parser->selector = selector;
    if (parser->text.size > SELECTOR_MAX_BYTES)
        return err_set(parser->err, ERR_INVALID, "%s: longer than %d bytes", parser->name,
                       SELECTOR_MAX_BYTES);
    if (memchr(parser->text.data, 0, parser->text.size))
        return err_set(parser->err, ERR_INVALID, "%s: a byte of it is 0", parser->name);
    enum err_code code = parse_selector_text(parser);
    if (!code)
        *ret_selector = selector;
    return code;
}

enum err_code selector_parse(struct arena *arena, struct span text, struct selector **ret_selector,
                             struct err *err)
{
    return selector_parse_named(arena, "query", text, ret_selector, err);
}

enum err_code selector_parse_named(struct arena *arena, const char *name, struct span text,
                                   struct selector **ret_selector, struct err *err)
{
    struct parser parser = {.arena = arena, .text = text, .name = name, .err = err};
    return parse_text(&parser, ret_selector);
}

enum err_code selector_parse_stored(struct arena *arena, struct span text,
                                    struct selector **ret_selector, struct err *err)
{
    struct parser parser = {
        .arena = arena, .text = text, .name = "query", .was_kept = true, .err = err};
    return parse_text(&parser, ret_selector);
}

#include "store/block/selector.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/regex.h"
#include "lib/profile/batch/batch_labels.h"
#include "lib/profile/batch/batch_type.h"
#include "lib/profile/report/label_filter.h"
#include "store/block/dictionary.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    TYPE_PARTS_MAX = SELECTOR_TYPE_PARTS + 1,
    TYPE_MAX_BYTES = 1 << 24,
    POINTER_BYTES = 24,
    KNOWN_MAX_BYTES = 8 << 20,
    /* In a query, a value for which a match could take MATCH_MAX_MS is not compared. */
    MATCH_MAX_MS = 2000,
    CHECK_MS = 50,
    /* See regex_states: in a merge, which all teams wait for, a match with a value of 2 KB takes at
     * most 5 ms. */
    MAX_STATES_STORED = 64
};

enum comparison { EQUALS, DIFFERS, MATCHES, MATCHES_NOT };

/* Stands for the type in place of a label. */
static const char type_label[] = "__profile_type__";

struct matcher {
    struct span name;
    struct span value;
    enum comparison comparison;
    bool is_of_type;
    bool matches_empty; /* an absent label is empty, and the empty value matches */
    struct regex *regex;
    struct map_bytes known; /* cached results of regex by value */
    size_t known_bytes;
};

struct selector {
    struct arena *arena;
    struct matcher matchers[SELECTOR_MAX_MATCHERS + 1]; /* the type and the labels */
    size_t matcher_count;
    bool has_type;   /* one of them is the type's */
    bool was_kept;   /* an earlier version may have stored it: no value is left uncompared */
    struct buf type; /* the name of the current type, for expressions */
    selector_check *check;
    void *check_context;
    int64_t unchecked_ns; /* that matches since the last check may have taken */
};

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
    if (type.size == 0 || colons >= TYPE_PARTS_MAX)
        return fail_at(parser, at,
                       "expected a profile type: name:sample_type:sample_unit:period_type:"
                       "period_unit");
    return ERR_NONE;
}

/* In a selector that was stored before this check, such a name is that of a label that no series
 * has. */
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

/* An expression that takes too long for the empty text requires nothing here: comparing it later
 * fails. */
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
    buf_init(&selector->type, TYPE_MAX_BYTES);
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

uint32_t selector_compared_labels(const struct selector *selector,
                                  struct span ret_names[SELECTOR_MAX_MATCHERS])
{
    uint32_t count = 0;
    for (size_t i = 0; i < selector->matcher_count; i++) {
        if (!selector->matchers[i].is_of_type)
            ret_names[count++] = selector->matchers[i].name;
    }
    return count;
}

uint32_t selector_required_labels(const struct selector *selector,
                                  struct span ret_names[SELECTOR_MAX_MATCHERS])
{
    uint32_t count = 0;
    for (size_t i = 0; i < selector->matcher_count; i++) {
        const struct matcher *matcher = &selector->matchers[i];
        if (!matcher->is_of_type && !matcher->matches_empty)
            ret_names[count++] = matcher->name;
    }
    return count;
}

/* ---- one text of all that are written otherwise ---- */

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

enum err_code selector_check_bounded(const struct selector *selector, struct err *err)
{
    uint32_t states = 0;
    for (size_t i = 0; i < selector->matcher_count; i++) {
        const struct matcher *matcher = &selector->matchers[i];
        states += matcher->regex ? regex_states(matcher->regex, REGEX_MEAN_BYTES) : 0;
        if (states > MAX_STATES_STORED)
            return err_set(err, ERR_INVALID,
                           "query: the expression of %.*s is too expensive to be matched with all "
                           "data that is ever stored: the expressions of the selector have more "
                           "than %d characters and classes that are repeated by *, + or {}, or "
                           "follow such a repeat",
                           SPAN_PRINT(matcher->name), MAX_STATES_STORED);
    }
    return ERR_NONE;
}

/* ---- matching ---- */

static struct span text_of(const struct dictionary *dictionary, uint32_t string)
{
    return dictionary->tables->strings[string];
}

/* Splits a type at its colons; returns 0 for more parts than a type can have. */
static size_t split_type(struct span type, struct span *parts)
{
    size_t count = 0;
    for (bool has_more = type.size > 0; has_more; count++) {
        if (count == TYPE_PARTS_MAX)
            return 0;
        has_more = span_split(type, ':', &parts[count], &type);
    }
    return count;
}

bool selector_find_type(const struct selector *selector, struct span *ret_parts)
{
    struct span parts[TYPE_PARTS_MAX];
    for (size_t i = 0; i < selector->matcher_count; i++) {
        const struct matcher *matcher = &selector->matchers[i];
        if (!matcher->is_of_type || matcher->comparison != EQUALS ||
            split_type(matcher->value, parts) < SELECTOR_TYPE_PARTS)
            continue;
        memcpy(ret_parts, parts, SELECTOR_TYPE_PARTS * sizeof(*parts));
        return true;
    }
    return false;
}

bool selector_names_type(const struct selector *selector, struct span name)
{
    for (size_t i = 0; i < selector->matcher_count; i++) {
        const struct matcher *matcher = &selector->matchers[i];
        if (matcher->is_of_type && matcher->comparison == EQUALS &&
            span_equal(matcher->value, name))
            return true;
    }
    return false;
}

static bool has_parts(const struct span *wanted, size_t count, const struct span *parts,
                      size_t first)
{
    if (first + count > SELECTOR_TYPE_PARTS)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!span_equal(wanted[i], parts[first + i]))
            return false;
    }
    return true;
}

static bool has_suffix(struct span part, enum batch_kind kind)
{
    const char *suffix = batch_type_suffix(kind);
    return suffix[0] && span_equal_text(part, suffix + 1);
}

static bool equals_type(struct span value, const struct span *parts, enum batch_kind kind)
{
    struct span wanted[TYPE_PARTS_MAX];
    const size_t count = split_type(value, wanted);
    if (count == TYPE_PARTS_MAX)
        return has_suffix(wanted[SELECTOR_TYPE_PARTS], kind) &&
               has_parts(wanted, SELECTOR_TYPE_PARTS, parts, 0);
    return count && (has_parts(wanted, count, parts, 0) || has_parts(wanted, count, parts, 1));
}

static void append_type_name(const struct span *parts, enum batch_kind kind, struct buf *text)
{
    for (size_t i = 0; i < SELECTOR_TYPE_PARTS; i++) {
        if (i)
            buf_append_byte(text, ':');
        buf_append_span(text, parts[i]);
    }
    buf_append_text(text, batch_type_suffix(kind));
}

static void find_parts(const struct dictionary *dictionary, const struct batch_type *type,
                       struct span ret_parts[SELECTOR_TYPE_PARTS])
{
    const uint32_t strings[SELECTOR_TYPE_PARTS] = {type->name, type->sample_type.type,
                                                   type->sample_type.unit, type->period_type.type,
                                                   type->period_type.unit};
    for (size_t i = 0; i < SELECTOR_TYPE_PARTS; i++)
        ret_parts[i] = text_of(dictionary, strings[i]);
}

static bool find_label(const struct dictionary *dictionary, const struct batch_series *series,
                       struct span name, struct span *ret_value)
{
    for (uint32_t i = 0; i < series->label_count; i++) {
        const struct batch_label *label = &dictionary->series_labels[series->first_label + i];
        if (span_equal(text_of(dictionary, label->name), name)) {
            *ret_value = text_of(dictionary, label->value);
            return true;
        }
    }
    return false;
}

/* Returns the maximum time of a match: REGEX_MATCH_STEPS with the interpreter, then the time of the
 * DFA fallback that regex.h states. */
static int64_t most_ns(const struct matcher *matcher, struct span value)
{
    enum { STEP_NS = 10 };
    const int64_t states = regex_states(matcher->regex, value.size);
    return REGEX_MATCH_STEPS * STEP_NS + (int64_t)value.size * states * states * 3 / 5;
}

static enum err_code check_time(struct selector *selector, const struct matcher *matcher,
                                struct span value, struct err *err)
{
    const int64_t ns = most_ns(matcher, value);
    if (ns > MATCH_MAX_MS * CLOCK_NS_PER_MS && !selector->was_kept)
        return err_set(err, ERR_INVALID,
                       "the expression for %.*s is too expensive to be compared with a value of "
                       "%zu bytes",
                       SPAN_PRINT(matcher->name), value.size);
    selector->unchecked_ns += ns;
    if (!selector->check || selector->unchecked_ns < CHECK_MS * CLOCK_NS_PER_MS)
        return ERR_NONE;
    selector->unchecked_ns = 0;
    return selector->check(selector->check_context, err);
}

/* Blocks repeat values: each is matched once while there is space to cache the result. */
static enum err_code match_value(struct selector *selector, struct matcher *matcher,
                                 struct span value, bool *ret_matches, struct err *err)
{
    const uint32_t known = map_bytes_find(&matcher->known, value);
    if (known != MAP_ABSENT) {
        *ret_matches = known;
        return ERR_NONE;
    }
    enum err_code code = check_time(selector, matcher, value, err);
    if (!code)
        code = regex_match(matcher->regex, value, ret_matches, err);
    const size_t bytes = value.size + sizeof(struct map_bytes_slot);
    if (code || matcher->known_bytes + bytes > KNOWN_MAX_BYTES)
        return code;
    matcher->known_bytes += bytes;
    value = span_of(arena_strndup(selector->arena, value.data, value.size), value.size);
    map_bytes_add(&matcher->known, value, *ret_matches);
    return ERR_NONE;
}

static enum err_code compare(struct selector *selector, struct matcher *matcher, struct span value,
                             bool *ret_matches, struct err *err)
{
    if (!matcher->regex) {
        *ret_matches = span_equal(matcher->value, value) == (matcher->comparison == EQUALS);
        return ERR_NONE;
    }
    bool matches;
    enum err_code code = match_value(selector, matcher, value, &matches, err);
    if (code)
        return code;
    *ret_matches = matches == (matcher->comparison == MATCHES);
    return ERR_NONE;
}

void selector_set_check(struct selector *selector, selector_check *check, void *context)
{
    selector->check = check;
    selector->check_context = context;
}

void selector_append_type(const struct dictionary *dictionary, const struct batch_type *type,
                          struct buf *text)
{
    struct span parts[SELECTOR_TYPE_PARTS];
    find_parts(dictionary, type, parts);
    append_type_name(parts, type->kind, text);
}

static enum err_code compare_type(struct selector *selector, struct matcher *matcher,
                                  const struct span *parts, enum batch_kind kind, bool *ret_matches,
                                  struct err *err)
{
    if (!matcher->regex) {
        *ret_matches = equals_type(matcher->value, parts, kind) == (matcher->comparison == EQUALS);
        return ERR_NONE;
    }
    buf_clear(&selector->type);
    append_type_name(parts, kind, &selector->type);
    if (buf_failed(&selector->type))
        return err_set(err, ERR_TOO_LARGE, "the type of a stored series is longer than %d bytes",
                       TYPE_MAX_BYTES);
    return compare(selector, matcher, buf_span(&selector->type), ret_matches, err);
}

enum err_code selector_matches_type(struct selector *selector, const struct span *parts,
                                    enum batch_kind kind, bool *ret_matches, struct err *err)
{
    bool matches = true;
    enum err_code code = ERR_NONE;
    for (size_t i = 0; matches && !code && i < selector->matcher_count; i++) {
        if (selector->matchers[i].is_of_type)
            code = compare_type(selector, &selector->matchers[i], parts, kind, &matches, err);
    }
    *ret_matches = matches;
    return code;
}

/* A label that the series lacks matches if the empty value does, or with takes_unknown. */
static enum err_code match_series(struct selector *selector, const struct dictionary *dictionary,
                                  uint32_t series, bool takes_unknown, bool *ret_matches,
                                  struct err *err)
{
    const struct batch_series *one = &dictionary->series[series];
    struct span parts[SELECTOR_TYPE_PARTS], value;
    bool matches;
    find_parts(dictionary, &one->type, parts);
    enum err_code code = selector_matches_type(selector, parts, one->type.kind, &matches, err);
    for (size_t i = 0; matches && !code && i < selector->matcher_count; i++) {
        struct matcher *matcher = &selector->matchers[i];
        if (matcher->is_of_type)
            continue;
        value = (struct span){0};
        if (find_label(dictionary, one, matcher->name, &value) || !takes_unknown)
            code = compare(selector, matcher, value, &matches, err);
    }
    *ret_matches = matches;
    return code;
}

enum err_code selector_matches(struct selector *selector, const struct dictionary *dictionary,
                               uint32_t series, bool *ret_matches, struct err *err)
{
    return match_series(selector, dictionary, series, false, ret_matches, err);
}

enum err_code selector_matches_known(struct selector *selector, const struct dictionary *dictionary,
                                     uint32_t series, bool *ret_matches, struct err *err)
{
    return match_series(selector, dictionary, series, true, ret_matches, err);
}

/* ---- labels of samples ---- */

bool selector_has_open_labels(const struct selector *selector, const struct dictionary *dictionary,
                              uint32_t series)
{
    struct span value;
    for (size_t i = 0; i < selector->matcher_count; i++) {
        const struct matcher *matcher = &selector->matchers[i];
        if (!matcher->is_of_type &&
            !find_label(dictionary, &dictionary->series[series], matcher->name, &value))
            return true;
    }
    return false;
}

/* Ids of traces and spans are not in the dictionary: any label set may have them. */
static bool may_have_label(const struct dictionary *dictionary, struct span name)
{
    if (span_equal_text(name, "trace_id") || span_equal_text(name, "span_id"))
        return dictionary->label_set_count > 1;
    for (uint32_t i = 0; i < dictionary->label_key_count; i++) {
        if (batch_labels_becomes(text_of(dictionary, dictionary->label_keys[i]), name))
            return true;
    }
    return false;
}

bool selector_may_match_samples(const struct selector *selector,
                                const struct dictionary *dictionary, bool are_required)
{
    for (size_t i = 0; i < selector->matcher_count; i++) {
        const struct matcher *matcher = &selector->matchers[i];
        if (!matcher->is_of_type && !(are_required && matcher->matches_empty) &&
            may_have_label(dictionary, matcher->name))
            return true;
    }
    return false;
}

/* True if the labels have the value, whatever the operator. */
static enum err_code has_value(struct selector *selector, struct matcher *matcher,
                               struct span value, bool *ret_has, struct err *err)
{
    bool matches;
    enum err_code code = compare(selector, matcher, value, &matches, err);
    if (!code)
        *ret_has = matches == (matcher->comparison == EQUALS || matcher->comparison == MATCHES);
    return code;
}

static enum err_code has_word(struct selector *selector, struct matcher *matcher,
                              const struct label_words *word, bool *ret_has, struct err *err)
{
    if (!word->is_numeric)
        return has_value(selector, matcher, word->text, ret_has, err);
    buf_auto text;
    buf_init(&text, TYPE_MAX_BYTES);
    buf_printf(&text, "%" PRId64, word->number);
    enum err_code code = has_value(selector, matcher, buf_span(&text), ret_has, err);
    if (code || *ret_has || !word->unit.size)
        return code;
    buf_append_byte(&text, ' ');
    buf_append_span(&text, word->unit);
    return has_value(selector, matcher, buf_span(&text), ret_has, err);
}

static enum err_code compare_words(struct selector *selector, struct matcher *matcher,
                                   const struct label_words *words, uint32_t word_count,
                                   bool *ret_matches, struct err *err)
{
    enum err_code code = ERR_NONE;
    const bool is_positive = matcher->comparison == EQUALS || matcher->comparison == MATCHES;
    bool is_there = false, has = false;
    for (uint32_t i = 0; !has && !code && i < word_count; i++) {
        const bool has_any = words[i].is_numeric || words[i].text.size;
        if (!has_any || !batch_labels_becomes(words[i].key, matcher->name))
            continue;
        is_there = true;
        code = has_word(selector, matcher, &words[i], &has, err);
    }
    if (!is_there)
        return compare(selector, matcher, (struct span){0}, ret_matches, err);
    *ret_matches = has == is_positive;
    return code;
}

enum err_code selector_matches_samples(struct selector *selector,
                                       const struct dictionary *dictionary, uint32_t series,
                                       const struct label_words *words, uint32_t word_count,
                                       bool *ret_matches, struct err *err)
{
    const struct batch_series *one = &dictionary->series[series];
    struct span value;
    bool matches = true;
    enum err_code code = ERR_NONE;
    for (size_t i = 0; matches && !code && i < selector->matcher_count; i++) {
        struct matcher *matcher = &selector->matchers[i];
        if (!matcher->is_of_type && !find_label(dictionary, one, matcher->name, &value))
            code = compare_words(selector, matcher, words, word_count, &matches, err);
    }
    *ret_matches = matches;
    return code;
}

/*
 * Matches the types, labels and samples of a dictionary. Regular expressions are the cost: results
 * are cached by value, the time that a match may take is limited, and the caller's check runs
 * between matches (selector_set_check).
 */
#include "store/block/selector_internal.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/profile/batch/batch_labels.h"
#include "lib/profile/batch/batch_type.h"
#include "lib/profile/report/label_filter.h"
#include "lib/regex/regex.h"
#include "store/block/dictionary.h"

#include <inttypes.h>
#include <string.h>

enum {
    KNOWN_MAX_BYTES = 8 << 20,
    /* A query fails if a match with a value could take longer than this. Stored selectors are
     * exempt: selector_check_bounded has limited them. */
    MATCH_MAX_MS = 2000,
    CHECK_MS = 50, /* see selector_set_check */
    /* See regex_states: in a merge, which all teams wait for, a match with a value of 2 KB takes at
     * most 5 ms. */
    MAX_STATES_STORED = 64
};

/* ---- what a selector compares ---- */

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
        if (count == SELECTOR_TYPE_PARTS_MAX)
            return 0;
        has_more = span_split(type, ':', &parts[count], &type);
    }
    return count;
}

bool selector_find_type(const struct selector *selector, struct span *ret_parts)
{
    struct span parts[SELECTOR_TYPE_PARTS_MAX];
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
    struct span wanted[SELECTOR_TYPE_PARTS_MAX];
    const size_t count = split_type(value, wanted);
    if (count == SELECTOR_TYPE_PARTS_MAX)
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
                       SELECTOR_TEXT_MAX_BYTES);
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
    buf_init(&text, SELECTOR_TEXT_MAX_BYTES);
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

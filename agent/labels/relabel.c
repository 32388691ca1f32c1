#include "agent/labels/relabel.h"

#include "agent/labels/label_set.h"
#include "agent/labels/relabel_rule.h"
#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/regex/regex.h"

#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <wctype.h>

enum { TEXT_MAX_BYTES = 64 << 10 };

struct match {
    struct span groups[REGEX_GROUPS_MAX];
    uint32_t count; /* 0: none */
};

static struct match match_of(const struct relabel_rule *rule, struct span text)
{
    struct match match = {0};
    struct err ignored;
    if (regex_match_groups(rule->regex, text, match.groups, &match.count, &ignored))
        match.count = 0;
    return match;
}

static bool matches(const struct relabel_rule *rule, struct span text)
{
    return match_of(rule, text).count > 0;
}

/* ---- $1 ---- */

static bool is_word(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '_' || byte >= 0x80;
}

/* Reads the name after a '$' like Go's package regexp: the longest word, so that $1x refers to a
 * group named "1x". False: no name follows, and the '$' stands for itself. */
static bool take_reference(struct span *rest, struct span *ret_name)
{
    const bool has_brace = rest->size && rest->data[0] == '{';
    size_t at = has_brace;
    while (at < rest->size && is_word(rest->data[at]))
        at++;
    *ret_name = span_of(rest->data + has_brace, at - has_brace);
    if (ret_name->size == 0 || (has_brace && (at == rest->size || rest->data[at] != '}')))
        return false;
    at += has_brace;
    *rest = span_of(rest->data + at, rest->size - at);
    return true;
}

/* The text of a group by its number, without leading zeros; groups have no other names. */
static struct span group_of(const struct match *match, struct span name)
{
    uint64_t number;
    if (!span_parse_u64(name, &number) || (name.data[0] == '0' && name.size > 1) ||
        number >= match->count)
        return (struct span){0};
    return match->groups[number];
}

static void expand_template(struct span template, const struct match *match, struct buf *text)
{
    struct span rest = template, before, name;
    while (span_split(rest, '$', &before, &rest)) {
        buf_append_span(text, before);
        if (rest.size && rest.data[0] == '$') {
            buf_append_byte(text, '$');
            rest = span_of(rest.data + 1, rest.size - 1);
        } else if (take_reference(&rest, &name)) {
            buf_append_span(text, group_of(match, name));
        } else {
            buf_append_byte(text, '$');
        }
    }
    buf_append_span(text, before);
}

/* ---- actions ---- */

static void replace(const struct relabel_rule *rule, struct span value, struct label_set *labels)
{
    buf_auto target, replacement;
    const struct match match = match_of(rule, value);
    buf_init(&target, TEXT_MAX_BYTES);
    buf_init(&replacement, TEXT_MAX_BYTES);
    if (!match.count)
        return;
    expand_template(rule->target, &match, &target);
    expand_template(rule->replacement, &match, &replacement);
    if (label_set_is_name(buf_span(&target)) && !buf_failed(&replacement))
        label_set_put(labels, buf_span(&target), buf_span(&replacement));
}

/* Changes the case like Go's strings.ToLower and ToUpper, for all of Unicode. */
static void change_case(const struct relabel_rule *rule, struct span value,
                        struct label_set *labels)
{
    buf_auto text;
    buf_init(&text, 2 * TEXT_MAX_BYTES);
    const bool is_lower = rule->action == RELABEL_LOWERCASE;
    const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    for (size_t i = 0; i < value.size;) {
        uint32_t letter = value.data[i];
        const size_t bytes = letter < 0x80 ? 1 : letter < 0xe0 ? 2 : letter < 0xf0 ? 3 : 4;
        letter &= bytes == 1 ? 0x7f : 0x7fU >> bytes;
        for (size_t j = 1; j < bytes && i + j < value.size; j++)
            letter = letter << 6 | (value.data[i + j] & 0x3f);
        i += bytes;
        if (locale)
            letter = is_lower ? towlower_l(letter, locale) : towupper_l(letter, locale);
        if (letter < 0x80) {
            buf_append_byte(&text, (uint8_t)letter);
        } else {
            const unsigned more = letter < 0x800 ? 1 : letter < 0x10000 ? 2 : 3;
            buf_append_byte(&text, (uint8_t)(0xffU << (7 - more) | letter >> 6 * more));
            for (unsigned j = more; j-- > 0;)
                buf_append_byte(&text, (uint8_t)(0x80 | (letter >> 6 * j & 0x3f)));
        }
    }
    if (locale)
        freelocale(locale);
    label_set_put(labels, rule->target, buf_span(&text));
}

/* Action hashmod: the last eight bytes of MD5, big-endian, modulo the modulus. */
static void set_hash_mod(const struct relabel_rule *rule, struct span value,
                         struct label_set *labels)
{
    uint8_t digest[DIGEST_MD5_BYTES];
    char text[24];
    uint64_t number = 0;
    digest_md5(value, digest);
    for (size_t i = DIGEST_MD5_BYTES - 8; i < DIGEST_MD5_BYTES; i++)
        number = number << 8 | digest[i];
    snprintf(text, sizeof(text), "%" PRIu64, number % rule->modulus);
    label_set_put(labels, rule->target, span_text(text));
}

static void map_labels(const struct relabel_rule *rule, struct label_set *labels)
{
    const struct label_set before = *labels;
    struct batch_text_label *copy = arena_new(labels->arena, struct batch_text_label, before.count);
    if (before.count)
        memcpy(copy, before.labels, before.count * sizeof(*copy));
    for (uint32_t i = 0; i < before.count; i++) {
        buf_auto name;
        buf_init(&name, TEXT_MAX_BYTES);
        const struct match match = match_of(rule, copy[i].name);
        if (!match.count)
            continue;
        expand_template(rule->replacement, &match, &name);
        label_set_put(labels, buf_span(&name), copy[i].value);
    }
}

static void drop_labels(const struct relabel_rule *rule, bool is_dropped_on_match,
                        struct label_set *labels)
{
    for (uint32_t i = labels->count; i-- > 0;) {
        if (matches(rule, labels->labels[i].name) == is_dropped_on_match)
            label_set_remove(labels, labels->labels[i].name);
    }
}

static void join_sources(const struct relabel_rule *rule, const struct label_set *labels,
                         struct buf *value)
{
    for (uint32_t i = 0; i < rule->source_count; i++) {
        if (i)
            buf_append_span(value, rule->separator);
        buf_append_span(value, label_set_get(labels, rule->sources[i]));
    }
}

/* False: the rule drops the process. */
static bool apply_rule(const struct relabel_rule *rule, struct label_set *labels)
{
    buf_auto joined;
    buf_init(&joined, TEXT_MAX_BYTES);
    join_sources(rule, labels, &joined);
    const struct span value = joined.size ? buf_span(&joined) : SPAN_LITERAL("");
    switch (rule->action) {
    case RELABEL_KEEP:
        return matches(rule, value);
    case RELABEL_DROP:
        return !matches(rule, value);
    case RELABEL_KEEPEQUAL:
        return span_equal(label_set_get(labels, rule->target), value);
    case RELABEL_DROPEQUAL:
        return !span_equal(label_set_get(labels, rule->target), value);
    case RELABEL_REPLACE:
        replace(rule, value, labels);
        break;
    case RELABEL_HASHMOD:
        set_hash_mod(rule, value, labels);
        break;
    case RELABEL_LOWERCASE:
    case RELABEL_UPPERCASE:
        change_case(rule, value, labels);
        break;
    case RELABEL_LABELMAP:
        map_labels(rule, labels);
        break;
    case RELABEL_LABELDROP:
        drop_labels(rule, true, labels);
        break;
    case RELABEL_LABELKEEP:
        drop_labels(rule, false, labels);
        break;
    case RELABEL_ACTION_COUNT:
        break;
    }
    return true;
}

bool relabel_apply(const struct relabel_rules *rules, struct label_set *labels)
{
    for (const struct relabel_rule *rule = rules ? rules->first : NULL; rule; rule = rule->next) {
        if (!apply_rule(rule, labels))
            return false;
    }
    return true;
}

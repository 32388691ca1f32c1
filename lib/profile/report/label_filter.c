#include "lib/profile/report/label_filter.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

struct label_rule {
    struct span key;
    struct span value;
    bool excludes;
    uint32_t key_bit; /* equal for rules with the same key */
    bool is_number;   /* value is a number or a range, for numeric labels */
    int64_t low;
    int64_t high;
    bool has_unit;
    struct span unit;
};

struct label_filter {
    struct label_rule rules[LABEL_RULES_MAX];
    size_t rule_count;
    uint32_t wanted; /* key bits of the rules that do not exclude */
};

/* A rule in the strings of one profile; PROFILE_NONE: the profile lacks the string. */
struct bound {
    uint32_t key;
    uint32_t text;
    uint32_t unit;
};

struct label_match {
    const struct label_filter *filter;
    const struct profile *profile;
    struct bound bounds[LABEL_RULES_MAX];
};

/* ---- reading rules ---- */

enum { KEYS_SHOWN = 12, KEY_BYTES_SHOWN = 60 };

/* Returns the key without its escapes; false when no "=" follows a key. */
static bool split_key(struct arena *arena, struct span text, struct label_rule *rule)
{
    uint8_t *key = arena_new_raw(arena, uint8_t, text.size);
    size_t size = 0, at = 0;
    bool is_bang = false;
    for (; at < text.size && text.data[at] != '='; at++) {
        bool is_escape = text.data[at] == '\\' && at + 1 < text.size;
        at += is_escape;
        is_bang = !is_escape && text.data[at] == '!';
        key[size++] = text.data[at];
    }
    if (at == text.size)
        return false;
    rule->excludes = is_bang;
    rule->key = span_of(key, size - is_bang);
    rule->value = span_of(text.data + at + 1, text.size - at - 1);
    return rule->key.size > 0;
}

/* Parses "12", "12 bytes", "1..12", "1.. bytes". */
static void read_number(struct label_rule *rule)
{
    struct span number = rule->value, low, high;
    rule->has_unit = span_split(rule->value, ' ', &number, &rule->unit);
    if (!rule->has_unit)
        number = rule->value;
    if (span_parse_i64(number, &rule->low)) {
        rule->high = rule->low;
        rule->is_number = true;
        return;
    }
    const uint8_t *dots = number.size > 2 ? memmem(number.data, number.size, "..", 2) : NULL;
    if (!dots)
        return;
    low = span_of(number.data, (size_t)(dots - number.data));
    high = span_of(dots + 2, number.size - low.size - 2);
    rule->low = INT64_MIN;
    rule->high = INT64_MAX;
    rule->is_number = (low.size == 0 || span_parse_i64(low, &rule->low)) &&
                      (high.size == 0 || span_parse_i64(high, &rule->high));
}

/* The bit of a key: that of the first rule with this key. */
static uint32_t key_bit(const struct label_filter *filter, struct span key)
{
    for (size_t i = 0; i < filter->rule_count; i++) {
        if (span_equal(filter->rules[i].key, key))
            return filter->rules[i].key_bit;
    }
    return UINT32_C(1) << filter->rule_count;
}

enum err_code label_filter_create(struct arena *arena, const struct span *rules, size_t rule_count,
                                  const struct label_filter **ret_filter, struct err *err)
{
    struct label_filter *filter = arena_new(arena, struct label_filter, 1);
    for (size_t i = 0; i < rule_count; i++) {
        struct label_rule *rule = &filter->rules[filter->rule_count];
        if (!split_key(arena, rules[i], rule))
            return err_set(err, ERR_INVALID, "'%.*s' is not written key=value, key!=value or key=",
                           rules[i].size > 100 ? 100 : (int)rules[i].size,
                           (const char *)rules[i].data);
        read_number(rule);
        rule->key_bit = key_bit(filter, rule->key);
        if (!rule->excludes)
            filter->wanted |= rule->key_bit;
        filter->rule_count++;
    }
    *ret_filter = filter->rule_count ? filter : NULL;
    return ERR_NONE;
}

/* ---- one profile ---- */

static uint32_t label_count(const struct profile *profile)
{
    return profile->sample_count ? profile->label_start[profile->sample_count] : 0;
}

static void bind_string(struct label_match *match, uint32_t string, bool is_key)
{
    struct span text = profile_string(match->profile, string);
    for (size_t i = 0; i < match->filter->rule_count; i++) {
        const struct label_rule *rule = &match->filter->rules[i];
        struct bound *bound = &match->bounds[i];
        if (is_key && span_equal(text, rule->key))
            bound->key = string;
        if (span_equal(text, rule->value))
            bound->text = string;
        if (span_equal(text, rule->unit))
            bound->unit = string;
    }
}

const struct label_match *label_match_create(struct arena *arena, const struct label_filter *filter,
                                             const struct profile *profile)
{
    arena_auto scratch = arena_create();
    uint8_t *is_key = arena_new(scratch, uint8_t, profile->string_count);
    struct label_match *match = arena_new(arena, struct label_match, 1);
    match->filter = filter;
    match->profile = profile;
    for (size_t i = 0; i < filter->rule_count; i++)
        match->bounds[i] = (struct bound){PROFILE_NONE, PROFILE_NONE, PROFILE_NONE};
    for (uint32_t i = 0; i < label_count(profile); i++)
        is_key[profile->labels[i].key] = 1;
    for (uint32_t i = 0; i < profile->string_count; i++)
        bind_string(match, i, is_key[i]);
    return match;
}

static bool is_value(const struct label_rule *rule, const struct bound *bound,
                     const struct profile_label *label)
{
    if (!label->is_numeric)
        return label->text == bound->text;
    return rule->is_number && label->number >= rule->low && label->number <= rule->high &&
           (!rule->has_unit || label->unit == bound->unit);
}

/* Computes bit sets: the keys for which the sample has a value, and the rules that a value
 * matches. */
static uint32_t look_at_labels(const struct label_match *match, uint32_t sample,
                               uint32_t *ret_present)
{
    const struct label_filter *filter = match->filter;
    const struct profile *profile = match->profile;
    uint32_t met = 0, present = 0;
    for (uint32_t i = profile->label_start[sample]; i < profile->label_start[sample + 1]; i++) {
        const struct profile_label *label = &profile->labels[i];
        bool has_value = label->is_numeric || label->text != 0;
        for (size_t j = 0; has_value && j < filter->rule_count; j++) {
            if (label->key != match->bounds[j].key)
                continue;
            present |= filter->rules[j].key_bit;
            if (is_value(&filter->rules[j], &match->bounds[j], label))
                met |= UINT32_C(1) << j;
        }
    }
    *ret_present = present;
    return met;
}

/* Decides by the bits of the present keys and of the matched rules. */
static bool decide(const struct label_filter *filter, uint32_t present, uint32_t met)
{
    uint32_t satisfied = 0;
    for (size_t i = 0; i < filter->rule_count; i++) {
        const struct label_rule *rule = &filter->rules[i];
        bool is_met = rule->value.size ? met >> i & 1 : !(present & rule->key_bit);
        if (is_met && rule->excludes)
            return false;
        if (is_met)
            satisfied |= rule->key_bit;
    }
    return (satisfied & filter->wanted) == filter->wanted;
}

bool label_match_passes(const struct label_match *match, uint32_t sample)
{
    uint32_t present;
    const uint32_t met = look_at_labels(match, sample, &present);
    return decide(match->filter, present, met);
}

static bool is_value_of(const struct label_rule *rule, const struct label_words *label)
{
    if (!label->is_numeric)
        return span_equal(label->text, rule->value);
    return rule->is_number && label->number >= rule->low && label->number <= rule->high &&
           (!rule->has_unit || span_equal(label->unit, rule->unit));
}

bool label_filter_passes(const struct label_filter *filter, const struct label_words *labels,
                         size_t label_count)
{
    uint32_t present = 0, met = 0;
    for (size_t i = 0; i < label_count; i++) {
        const bool has_value = labels[i].is_numeric || labels[i].text.size;
        for (size_t j = 0; has_value && j < filter->rule_count; j++) {
            if (!span_equal(labels[i].key, filter->rules[j].key))
                continue;
            present |= filter->rules[j].key_bit;
            if (is_value_of(&filter->rules[j], &labels[i]))
                met |= UINT32_C(1) << j;
        }
    }
    return decide(filter, present, met);
}

void label_filter_append_rules(const struct label_filter *filter, struct buf *text)
{
    buf_append_u64(text, filter->rule_count);
    for (size_t i = 0; i < filter->rule_count; i++) {
        const struct label_rule *rule = &filter->rules[i];
        buf_append_byte(text, rule->excludes);
        buf_append_u64(text, rule->key.size);
        buf_append_span(text, rule->key);
        buf_append_u64(text, rule->value.size);
        buf_append_span(text, rule->value);
    }
}

size_t label_filter_keys(const struct label_filter *filter, struct span *keys)
{
    size_t count = 0;
    for (size_t i = 0; i < filter->rule_count; i++) {
        /* The bit of a key is that of its first rule. */
        if (filter->rules[i].key_bit == UINT32_C(1) << i)
            keys[count++] = filter->rules[i].key;
    }
    return count;
}

void label_filter_append_keys(const struct profile *profile, struct buf *text)
{
    arena_auto scratch = arena_create();
    uint8_t *is_listed = arena_new(scratch, uint8_t, profile->string_count);
    uint32_t shown = 0;
    for (uint32_t i = 0; i < label_count(profile) && shown < KEYS_SHOWN; i++) {
        uint32_t string = profile->labels[i].key;
        if (is_listed[string])
            continue;
        is_listed[string] = 1;
        struct span name = profile_string(profile, string);
        buf_printf(text, "%s'%.*s'", shown++ ? ", " : ", which has ",
                   name.size > KEY_BYTES_SHOWN ? KEY_BYTES_SHOWN : (int)name.size,
                   (const char *)name.data);
    }
    if (shown == 0)
        buf_append_text(text, ", which has no labels");
}

enum err_code label_match_check_keys(const struct label_match *const *matches, size_t match_count,
                                     struct err *err)
{
    const struct label_filter *filter = matches[0]->filter;
    for (size_t i = 0; i < filter->rule_count; i++) {
        bool is_known = false;
        for (size_t j = 0; j < match_count; j++)
            is_known |= matches[j]->bounds[i].key != PROFILE_NONE;
        if (is_known)
            continue;
        buf_auto known;
        buf_init(&known, ERR_MESSAGE_BYTES / 2);
        label_filter_append_keys(matches[0]->profile, &known);
        struct span key = filter->rules[i].key;
        return err_set(err, ERR_INVALID, "label: '%.*s' is no label of this profile%.*s",
                       key.size > 100 ? 100 : (int)key.size, (const char *)key.data,
                       SPAN_PRINT(buf_span(&known)));
    }
    return ERR_NONE;
}

void label_filter_append_key(struct span key, struct buf *text)
{
    for (size_t i = 0; i < key.size; i++) {
        uint8_t byte = key.data[i];
        if (byte == '\\' || byte == '=' || (byte == '!' && i + 1 == key.size))
            buf_append_byte(text, '\\');
        buf_append_byte(text, byte);
    }
}

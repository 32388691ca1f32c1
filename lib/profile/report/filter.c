#include "lib/profile/report/filter.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/raw_name.h"
#include "lib/profile/report/label_filter.h"
#include "lib/regex/regex.h"

#include <assert.h>
#include <string.h>

struct rule {
    enum filter_action action;
    struct regex *regex;
    struct span pattern;
};

struct filter {
    struct rule rules[FILTER_RULES_MAX];
    size_t rule_count;
    const struct label_filter *labels;
};
static_assert((int)FILTER_RULES_MAX == (int)LABEL_RULES_MAX, "all rules may be of labels");

/* Matches one rule against one profile. Names and files are strings, so each is matched once. */
struct matcher {
    const struct profile *profile;
    struct regex *regex;
    bool is_of_addresses;
    uint8_t *known; /* cached results per string */
    struct err *err;
    enum err_code code;
};
enum { KNOWN_NOTHING, KNOWN_NO_MATCH, KNOWN_MATCH };

const char *filter_action_name(enum filter_action action)
{
    static const char *const names[] = {"focus", "ignore", "hide", "show", "label"};
    return names[action];
}

static void destroy_regex(void *regex)
{
    regex_destroy(regex);
}

static enum err_code add_frame_rule(struct arena *arena, const struct filter_rule *from,
                                    struct filter *filter, struct err *err)
{
    struct rule *rule = &filter->rules[filter->rule_count];
    enum err_code code = regex_create(from->pattern, &rule->regex, err);
    if (code)
        return code;
    arena_on_destroy(arena, destroy_regex, rule->regex);
    rule->action = from->action;
    rule->pattern = from->pattern;
    filter->rule_count++;
    return ERR_NONE;
}

enum err_code filter_create(struct arena *arena, const struct filter_rule *rules, size_t rule_count,
                            const struct filter **ret_filter, struct err *err)
{
    struct filter *filter = arena_new(arena, struct filter, 1);
    struct span labels[FILTER_RULES_MAX];
    size_t label_count = 0;
    for (size_t i = 0; i < rule_count; i++) {
        if (rules[i].pattern.size == 0)
            continue;
        if (filter->rule_count + label_count == FILTER_RULES_MAX)
            return err_set(err, ERR_TOO_LARGE, "more than %d filter expressions", FILTER_RULES_MAX);
        if (rules[i].action == FILTER_LABEL)
            labels[label_count++] = rules[i].pattern;
        else if (add_frame_rule(arena, &rules[i], filter, err))
            return err_add(err, "%s", filter_action_name(rules[i].action));
    }
    enum err_code code = label_filter_create(arena, labels, label_count, &filter->labels, err);
    if (code)
        return err_add(err, "%s", filter_action_name(FILTER_LABEL));
    *ret_filter = filter->rule_count + label_count ? filter : NULL;
    return ERR_NONE;
}

bool filter_is_of_addresses(struct span pattern)
{
    return pattern.size && memmem(pattern.data, pattern.size, "0x", 2) != NULL;
}

static bool matches_string(struct matcher *matcher, uint32_t string)
{
    uint8_t *known = &matcher->known[string];
    if (*known == KNOWN_NOTHING && !matcher->code) {
        bool is_match = false;
        matcher->code = regex_match(matcher->regex, profile_string(matcher->profile, string),
                                    &is_match, matcher->err);
        *known = is_match ? KNOWN_MATCH : KNOWN_NO_MATCH;
    }
    return *known == KNOWN_MATCH;
}

static bool matches_line(struct matcher *matcher, const struct profile_line *line)
{
    if (line->function == PROFILE_NONE)
        return false;
    const struct profile_function *function = &matcher->profile->functions[line->function];
    return matches_string(matcher, function->name) || matches_string(matcher, function->filename);
}

static bool matches_raw_name(struct matcher *matcher, const struct profile_location *location)
{
    char text[RAW_NAME_BYTES];
    const struct span name = raw_name_write(matcher->profile, location, text);
    bool is_match = false;
    if (name.size && !matcher->code)
        matcher->code = regex_match(matcher->regex, name, &is_match, matcher->err);
    return is_match;
}

static bool matches_mapping(struct matcher *matcher, const struct profile_location *location)
{
    if (location->mapping != PROFILE_NONE &&
        matches_string(matcher, matcher->profile->mappings[location->mapping].filename))
        return true;
    return matcher->is_of_addresses && matches_raw_name(matcher, location);
}

static bool matches_location(struct matcher *matcher, uint32_t first_line, uint32_t end_line,
                             const struct profile_location *location)
{
    for (uint32_t i = first_line; i < end_line; i++) {
        if (matches_line(matcher, &matcher->profile->lines[i]))
            return true;
    }
    return matches_mapping(matcher, location);
}

/*
 * For hide and show; false when no line of the location is left. A location without lines goes
 * under a show, since no name of it matches, and under a hide if its binary does.
 */
static bool hide_lines(struct matcher *matcher, enum filter_action action, uint32_t first_line,
                       uint32_t end_line, const struct profile_location *location,
                       uint8_t *line_is_hidden)
{
    bool is_hide = action == FILTER_HIDE, has_visible = false;
    bool is_all = matches_mapping(matcher, location);
    if (is_hide && location->line_count == 0)
        return !is_all;
    for (uint32_t i = first_line; i < end_line; i++) {
        const struct profile_line *line = &matcher->profile->lines[i];
        bool is_match = is_all || matches_line(matcher, line);
        bool is_nameless = line->function == PROFILE_NONE && !is_all;
        if (is_match == is_hide && !is_nameless)
            line_is_hidden[i] = 1;
        has_visible |= !line_is_hidden[i];
    }
    return has_visible;
}

static void apply_rule(const struct rule *rule, struct matcher *matcher, const uint32_t *first_line,
                       const struct filter_check *check, uint32_t focus_bit,
                       uint32_t *focus_matches, uint8_t *verdicts, uint8_t *line_is_hidden)
{
    const struct profile *profile = matcher->profile;
    for (uint32_t i = 0; i < profile->location_count && !matcher->code; i++) {
        if (check && i % FILTER_CHECK_STEPS == 0) {
            matcher->code = check->check(check->context, matcher->err);
            if (matcher->code)
                return;
        }
        const struct profile_location *location = &profile->locations[i];
        uint32_t end = location->first_line + location->line_count;
        bool is_lookup = rule->action == FILTER_FOCUS || rule->action == FILTER_IGNORE;
        bool is_match = is_lookup ? matches_location(matcher, first_line[i], end, location)
                                  : !hide_lines(matcher, rule->action, first_line[i], end, location,
                                                line_is_hidden);
        if (!is_match)
            continue;
        if (rule->action == FILTER_FOCUS)
            focus_matches[i] |= focus_bit;
        else
            verdicts[i] |= is_lookup ? FILTER_LOCATION_IGNORED : FILTER_LOCATION_HIDDEN;
    }
}

enum err_code filter_apply(const struct filter *filter, const struct profile *profile,
                           const uint32_t *first_line, const struct filter_check *check,
                           struct arena *arena, struct filter_result *ret_result, struct err *err)
{
    arena_auto scratch = arena_create();
    uint32_t *focus_matches = arena_new(arena, uint32_t, profile->location_count);
    uint8_t *verdicts = arena_new(arena, uint8_t, profile->location_count);
    uint8_t *line_is_hidden = arena_new(arena, uint8_t, profile->line_count);
    uint32_t focus_count = 0;
    for (size_t i = 0; i < filter->rule_count; i++) {
        const struct rule *rule = &filter->rules[i];
        struct matcher matcher = {.profile = profile,
                                  .regex = rule->regex,
                                  .is_of_addresses = filter_is_of_addresses(rule->pattern),
                                  .err = err};
        matcher.known = arena_new(scratch, uint8_t, profile->string_count);
        uint32_t focus_bit = UINT32_C(1) << focus_count;
        apply_rule(rule, &matcher, first_line, check, focus_bit, focus_matches, verdicts,
                   line_is_hidden);
        if (matcher.code)
            return matcher.code == ERR_INVALID
                       ? err_add(err, "%s", filter_action_name(rule->action))
                       : matcher.code;
        focus_count += rule->action == FILTER_FOCUS;
    }
    *ret_result = (struct filter_result){.has_frame_rules = filter->rule_count > 0,
                                         .focus_count = focus_count,
                                         .focus_matches = focus_matches,
                                         .verdicts = verdicts,
                                         .line_is_hidden = line_is_hidden};
    if (filter->labels)
        ret_result->labels = label_match_create(arena, filter->labels, profile);
    return ERR_NONE;
}

void filter_append_rules(const struct filter *filter, struct buf *text)
{
    buf_append_u64(text, filter->rule_count);
    for (size_t i = 0; i < filter->rule_count; i++) {
        buf_append_u32(text, (uint32_t)filter->rules[i].action);
        buf_append_u64(text, filter->rules[i].pattern.size);
        buf_append_span(text, filter->rules[i].pattern);
    }
    if (filter->labels)
        label_filter_append_rules(filter->labels, text);
}

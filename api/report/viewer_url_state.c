#include "api/report/viewer_url_state.h"

#include "api/http/request.h"
#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/profile/report/label_filter.h"

const char *const viewer_url_state_names[] = {"sv",   "v", "b", "st", "q",  "m",  "z",
                                              "root", "w", "g", "za", "zb", "c",  "s",
                                              "norm", "p", "x", "co", "gn", "lb", NULL};

/* Longer addresses are not transported by browsers or link previews. */
enum { CHAIN_MAX_BYTES = 16384 };

/* Removes one rule from *rest, with its doubled tildes made single; false at the end. */
static bool take_rule(struct arena *arena, struct span *rest, struct span *ret_rule)
{
    if (rest->size == 0)
        return false;
    uint8_t *rule = arena_new_raw(arena, uint8_t, rest->size);
    size_t size = 0, at = 0;
    while (at < rest->size) {
        uint8_t byte = rest->data[at++];
        bool is_double = byte == '~' && at < rest->size && rest->data[at] == '~';
        if (byte == '~' && !is_double)
            break;
        at += is_double;
        rule[size++] = byte;
    }
    *ret_rule = span_of(rule, size);
    *rest = span_of(rest->data + at, rest->size - at);
    return true;
}

static bool find_action(struct span name, enum chain_action *ret_action)
{
    for (int i = 0; i < CHAIN_ACTION_COUNT; i++) {
        if (span_equal_text(name, chain_action_name((enum chain_action)i))) {
            *ret_action = (enum chain_action)i;
            return true;
        }
    }
    return false;
}

/* Only recursion may apply to all functions; other rules without a text have no meaning. Rules of
 * unknown kinds count as rules. */
static bool is_rule(struct span action, struct span text)
{
    for (size_t i = 0; i < action.size; i++) {
        if (action.data[i] < 'a' || action.data[i] > 'z')
            return false;
    }
    return action.size > 0 && (text.size > 0 || span_equal_text(action, "recursion"));
}

static bool is_frame_group(struct span group)
{
    return group.size == 0 || span_equal_text(group, "function") ||
           span_equal_text(group, "line") || span_equal_text(group, "address");
}

/* The first four actions of a chain are those of the filter. */
static bool find_filter_action(enum chain_action action, enum filter_action *ret_action)
{
    static const enum filter_action actions[] = {[CHAIN_FOCUS] = FILTER_FOCUS,
                                                 [CHAIN_IGNORE] = FILTER_IGNORE,
                                                 [CHAIN_HIDE] = FILTER_HIDE,
                                                 [CHAIN_SHOW] = FILTER_SHOW};
    if (action > CHAIN_SHOW)
        return false;
    *ret_action = actions[action];
    return true;
}

/* Whether the filter can apply a rule with this action: whether the result after the rules that the
 * filter has already is the same as in the page. */
static bool is_filter(const struct viewer_url_state *state, enum filter_action action)
{
    bool is_lookup = action == FILTER_FOCUS || action == FILTER_IGNORE;
    for (size_t i = 0; is_lookup && i < state->rule_count; i++) {
        if (state->rules[i].action == FILTER_HIDE || state->rules[i].action == FILTER_SHOW)
            return false;
    }
    return is_frame_group(state->group_by) && state->rule_count < FILTER_RULES_MAX &&
           state->chain_count == 0;
}

static void read_rule(struct viewer_url_state *state, struct chain_rule *chain, struct span rule)
{
    struct span name, text;
    struct chain_rule read;
    enum filter_action action;
    bool is_off = span_starts_with(rule, "!");
    if (is_off || !span_split(rule, ':', &name, &text) || !is_rule(name, text))
        return;
    read.text = text;
    if (!find_action(name, &read.action) || !chain_rule_is_known(&read))
        state->left_out_count++;
    else if (find_filter_action(read.action, &action) && is_filter(state, action))
        state->rules[state->rule_count++] = (struct filter_rule){.action = action, .pattern = text};
    else
        chain[state->chain_count++] = read;
}

bool viewer_url_state_has_no_functions(struct span group_by)
{
    return span_equal_text(group_by, "file") || span_equal_text(group_by, "binary");
}

/* A focus or ignore may be applied before other rules of these two kinds, because all of them match
 * whole stacks. */
size_t viewer_url_state_take_rules(struct chain_rule *chain, size_t chain_count, const bool *wanted,
                                   struct filter_rule rules[FILTER_RULES_MAX], size_t *rule_count)
{
    bool may_look_up = true, may_drop = true;
    size_t left = 0;
    for (size_t i = 0; i < chain_count; i++) {
        const struct chain_rule rule = chain[i];
        const bool is_lookup = rule.action == CHAIN_FOCUS || rule.action == CHAIN_IGNORE;
        enum filter_action action;
        if (wanted[i] && *rule_count < FILTER_RULES_MAX && (is_lookup ? may_look_up : may_drop) &&
            find_filter_action(rule.action, &action)) {
            rules[(*rule_count)++] = (struct filter_rule){.action = action, .pattern = rule.text};
        } else {
            chain[left++] = rule;
            may_drop = false;
        }
        may_look_up = may_look_up && is_lookup;
    }
    return left;
}

/* Reads the rules about labels. They select samples, so they apply before all other rules and
 * whatever the grouping is. */
static void read_labels(const struct request *request, struct viewer_url_state *state)
{
    struct span rule;
    for (size_t n = 0; request_query_nth(request, "lb", n, &rule); n++) {
        const struct label_filter *filter;
        struct err err;
        if (label_filter_create(request->arena, &rule, 1, &filter, &err))
            continue; /* malformed */
        if (state->rule_count == FILTER_RULES_MAX)
            state->left_out_count++;
        else
            state->rules[state->rule_count++] =
                (struct filter_rule){.action = FILTER_LABEL, .pattern = rule};
    }
}

static void read_rules(const struct request *request, struct viewer_url_state *state)
{
    struct span rest, rule;
    if (!request_query(request, "x", &rest) || rest.size > CHAIN_MAX_BYTES)
        return;
    size_t most = 1; /* one rule more than there are tildes */
    for (size_t i = 0; i < rest.size; i++)
        most += rest.data[i] == '~';
    struct chain_rule *chain = arena_new(request->arena, struct chain_rule, most);
    state->chain = chain;
    while (take_rule(request->arena, &rest, &rule))
        read_rule(state, chain, rule);
}

static uint64_t read_zoom(const struct request *request)
{
    struct span text;
    uint8_t bytes[8];
    uint64_t hash = 0;
    if (!request_query(request, "z", &text) || !digest_parse_hex(text, bytes, sizeof(bytes)))
        return 0;
    for (size_t i = 0; i < sizeof(bytes); i++)
        hash = hash << 8 | bytes[i];
    return hash;
}

/* "0.2-0.4", as the page writes it (web/src/view_state.ts); at most nine digits after the point. */
static bool read_share(struct span text, double *ret_share)
{
    enum { DIGITS_MAX = 9 };
    double value = 0, digit_value = 1;
    if (!text.size || text.size > 2 + DIGITS_MAX || text.size == 2 ||
        (text.data[0] != '0' && text.data[0] != '1') || (text.size > 1 && text.data[1] != '.'))
        return false;
    for (size_t i = 0; i < text.size; i++) {
        const uint8_t byte = text.data[i];
        if (i == 1)
            continue;
        if (byte < '0' || byte > '9')
            return false;
        value += (byte - '0') * digit_value;
        digit_value /= 10;
    }
    *ret_share = value;
    return true;
}

static struct picture_window read_window(const struct request *request)
{
    struct span text, from, to;
    struct picture_window window;
    if (request_query(request, "w", &text) && span_split(text, '-', &from, &to) &&
        read_share(from, &window.from) && read_share(to, &window.to) && window.from < window.to &&
        window.to <= 1)
        return window;
    return (struct picture_window){0, 1};
}

/* Looks at the first of the page's views that is a picture of the tree. */
static bool is_upright(const struct request *request)
{
    static const char *const panes[] = {"v", "b"};
    for (size_t i = 0; i < sizeof(panes) / sizeof(*panes); i++) {
        struct span view;
        const bool is_given = request_query(request, panes[i], &view) && view.size;
        if (is_given && span_equal_text(view, "flame"))
            return true;
        if (!is_given || span_equal_text(view, "icicle"))
            return false;
    }
    return false;
}

static enum picture_colouring read_colouring(const struct request *request)
{
    struct span colour;
    if (!request_query(request, "c", &colour))
        return PICTURE_BY_PACKAGE;
    if (span_equal_text(colour, "value"))
        return PICTURE_BY_VALUE;
    return span_equal_text(colour, "binary") ? PICTURE_BY_BINARY : PICTURE_BY_PACKAGE;
}

void viewer_url_state_read(const struct request *request, struct viewer_url_state *ret_state)
{
    *ret_state = (struct viewer_url_state){.zoom = read_zoom(request)};
    if (!request_query(request, "sample_type", &ret_state->sample_type))
        request_query(request, "st", &ret_state->sample_type);
    if (!request_query(request, "group_by", &ret_state->group_by))
        request_query(request, "g", &ret_state->group_by);
    request_query(request, "q", &ret_state->search);
    request_query(request, "m", &ret_state->marked);
    struct span normalised;
    ret_state->is_normalised =
        request_query(request, "norm", &normalised) && span_equal_text(normalised, "1");
    ret_state->colouring = read_colouring(request);
    ret_state->is_upright = is_upright(request);
    ret_state->window = read_window(request);
    read_labels(request, ret_state);
    read_rules(request, ret_state);
}

void viewer_url_state_append_query(const struct request *request, struct buf *query)
{
    static const char *const drawn[] = {"st", "g", "z",    "w", "x",    "lb",
                                        "q",  "m", "norm", "c", "names"};
    for (size_t i = 0; i < sizeof(drawn) / sizeof(*drawn); i++) {
        struct span value;
        for (size_t n = 0; request_query_nth(request, drawn[i], n, &value) && value.size; n++) {
            buf_printf(query, "%s%s=", query->size ? "&" : "", drawn[i]);
            buf_append_url(query, value);
        }
    }
    if (is_upright(request))
        buf_printf(query, "%sv=flame", query->size ? "&" : "");
}

#include "cli/view_options.h"

#include "cli/client.h"
#include "lib/base/mem.h"

enum {
    OPTION_SAMPLE_TYPE = 0x300,
    OPTION_FOCUS,
    OPTION_IGNORE,
    OPTION_HIDE,
    OPTION_SHOW,
    OPTION_LABEL,
    OPTION_GROUP_BY,
    OPTION_LIMIT,
    OPTION_JSON,
    OPTION_PASSWORD_FILE
};

static const struct argp_option option_table[] = {
    {"sample-type", OPTION_SAMPLE_TYPE, "TYPE", 0, "Sample type, by name or index", 0},
    {"focus", OPTION_FOCUS, "REGEX", 0, "Only stacks with a matching frame", 0},
    {"ignore", OPTION_IGNORE, "REGEX", 0, "Exclude stacks with a matching frame", 0},
    {"hide", OPTION_HIDE, "REGEX", 0, "Remove matching frames from the stacks", 0},
    {"show", OPTION_SHOW, "REGEX", 0, "Remove all other frames from the stacks", 0},
    {"label", OPTION_LABEL, "KEY=VALUE", 0,
     "Only samples with this label; KEY!=VALUE for samples without it", 0},
    {"group-by", OPTION_GROUP_BY, "KEY", 0,
     "function (the default), file, line, address, binary or a label", 0},
    {"limit", OPTION_LIMIT, "N", 0, "Show at most N rows, 0 for all (20)", 0},
    {"json", OPTION_JSON, NULL, 0, "Print JSON with the profile's own units", 0},
    {"password-file", OPTION_PASSWORD_FILE, "FILE", 0,
     "The share's password is the first line of FILE (- is standard input)", 0},
    {0},
};

static void add_rule(struct view_options_input *input, enum filter_action action,
                     const char *pattern, struct argp_state *state)
{
    if (input->rule_count == VIEW_OPTIONS_MAX_RULES)
        argp_error(state, "too many filters: at most %d", VIEW_OPTIONS_MAX_RULES);
    input->rules[input->rule_count].action = action;
    input->rules[input->rule_count++].pattern = pattern;
}

static error_t parse_view_options(int key, char *text, struct argp_state *state)
{
    struct view_options_input *input = state->input;
    switch (key) {
    case OPTION_SAMPLE_TYPE:
        input->sample_type = text;
        return 0;
    case OPTION_FOCUS:
        add_rule(input, FILTER_FOCUS, text, state);
        return 0;
    case OPTION_IGNORE:
        add_rule(input, FILTER_IGNORE, text, state);
        return 0;
    case OPTION_HIDE:
        add_rule(input, FILTER_HIDE, text, state);
        return 0;
    case OPTION_SHOW:
        add_rule(input, FILTER_SHOW, text, state);
        return 0;
    case OPTION_LABEL:
        add_rule(input, FILTER_LABEL, text, state);
        return 0;
    case OPTION_GROUP_BY:
        input->group_by = text;
        return 0;
    case OPTION_LIMIT:
        if (!span_parse_u64(span_text(text), &input->limit) || input->limit > INT32_MAX)
            argp_error(state, "--limit takes a whole number");
        return 0;
    case OPTION_JSON:
        input->is_json = true;
        return 0;
    case OPTION_PASSWORD_FILE:
        input->password_file = text;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp view_options_argp = {.options = option_table, .parser = parse_view_options};

void view_options_append_query(struct buf *text, const struct view_options_input *input)
{
    char limit[24];
    client_append_parameter(text, "sample_type", input->sample_type);
    client_append_parameter(text, "group_by", input->group_by);
    for (size_t i = 0; i < input->rule_count; i++)
        client_append_parameter(text, filter_action_name(input->rules[i].action),
                                input->rules[i].pattern);
    if (input->limit == VIEW_OPTIONS_NO_LIMIT)
        return;
    snprintf(limit, sizeof(limit), "%llu", (unsigned long long)input->limit);
    client_append_parameter(text, "limit", limit);
}

enum err_code view_options_make(const struct view_options_input *input,
                                struct view_options *ret_options, struct err *err)
{
    struct filter_rule rules[VIEW_OPTIONS_MAX_RULES];
    struct view_options view = {
        .sample_type = span_text(input->sample_type ? input->sample_type : ""),
        .group_by = span_text(input->group_by ? input->group_by : ""),
    };
    for (size_t i = 0; i < input->rule_count; i++)
        rules[i] = (struct filter_rule){.action = input->rules[i].action,
                                        .pattern = span_text(input->rules[i].pattern)};
    enum err_code code =
        filter_create(input->cli->arena, rules, input->rule_count, &view.filter, err);
    if (code)
        return code;
    *ret_options = view;
    return ERR_NONE;
}

#include "cli/view_options.h"

#include "cli/client.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

/* The row's value is an enum filter_action. */
static enum err_code take_rule(void *values, const struct option_row *row, const char *pattern,
                               struct err *err)
{
    struct view_options_input *input = values;
    if (input->rule_count == VIEW_OPTIONS_MAX_RULES)
        return err_set(err, ERR_INVALID, "too many filters: at most %d", VIEW_OPTIONS_MAX_RULES);
    input->rules[input->rule_count].action = (enum filter_action)row->value;
    input->rules[input->rule_count++].pattern = pattern;
    return ERR_NONE;
}

static const struct option_row rows[] = {
    {"sample-type", 0, "TYPE", "Sample type, by name or index",
     OPTION_TEXT(struct view_options_input, sample_type)},
    {"focus", 0, "REGEX", "Only stacks with a matching frame", .take = take_rule,
     .value = FILTER_FOCUS},
    {"ignore", 0, "REGEX", "Exclude stacks with a matching frame", .take = take_rule,
     .value = FILTER_IGNORE},
    {"hide", 0, "REGEX", "Remove matching frames from the stacks", .take = take_rule,
     .value = FILTER_HIDE},
    {"show", 0, "REGEX", "Remove all other frames from the stacks", .take = take_rule,
     .value = FILTER_SHOW},
    {"label", 0, "KEY=VALUE", "Only samples with this label; KEY!=VALUE for samples without it",
     .take = take_rule, .value = FILTER_LABEL},
    {"group-by", 0, "KEY", "function (the default), file, line, address, binary or a label",
     OPTION_TEXT(struct view_options_input, group_by)},
    {"limit", 0, "N", "Show at most N rows, 0 for all (20)",
     OPTION_NUMBER(struct view_options_input, limit, 0, INT32_MAX, 1),
     .error = "--limit takes a whole number"},
    {"json", 0, NULL, "Print JSON with the profile's own units",
     OPTION_FLAG(struct view_options_input, is_json)},
    {"password-file", 0, "FILE",
     "The share's password is the first line of FILE (- is standard input)",
     OPTION_TEXT(struct view_options_input, password_file)},
    {0},
};

const struct option_table view_options_table = {.rows = rows};

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

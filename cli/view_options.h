/*
 * view_options: the options of top, diff and query for filters and grouping, as a part
 * of their tables.
 */
#ifndef CLI_VIEW_OPTIONS_H
#define CLI_VIEW_OPTIONS_H

#include "cli/cli.h"
#include "lib/profile/report/filter.h"
#include "lib/profile/report/view.h"

struct buf;

enum { VIEW_OPTIONS_MAX_RULES = 32, VIEW_OPTIONS_DEFAULT_LIMIT = 20 };
#define VIEW_OPTIONS_NO_LIMIT UINT64_MAX /* not set: the server chooses */

struct view_options_input {
    struct cli *cli;
    const char *sample_type; /* NULL: the profile's default */
    const char *group_by;    /* NULL: function */
    uint64_t limit;          /* rows; 0: all; VIEW_OPTIONS_NO_LIMIT */
    bool is_json;
    const char *password_file;
    struct {
        enum filter_action action;
        const char *pattern;
    } rules[VIEW_OPTIONS_MAX_RULES];
    size_t rule_count;
};

/* Its values are a struct view_options_input. */
extern const struct option_table view_options_table;
/* For a command's array of parts; offset is that of the struct. */
#define VIEW_OPTIONS_PART(offset)                                                                  \
    {                                                                                              \
        &view_options_table, offset, "What to show:", 1                                            \
    }

/* Appends "?sample_type=…&focus=…&limit=…" for the API, or "&sample_type=…" if text has parameters.
 * Options that are not set are left out. */
void view_options_append_query(struct buf *text, const struct view_options_input *input);
/* Makes the options for view_create; they are in the process's arena. Errors: ERR_INVALID (an
 * expression is malformed). */
enum err_code view_options_make(const struct view_options_input *input,
                                struct view_options *ret_options, struct err *err) MUST_USE;

#endif

/*
 * report: the values per function of one profile or of two, from the server or computed locally;
 * printed as a table, or as JSON in the form of the API.
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <jansson.h>

struct arena;
struct cli;
struct view;

struct report_row {
    struct span name;
    struct span file;
    int64_t line;                /* 0: unknown; see struct frame of lib/profile/report/view.h */
    int64_t flat, cum;           /* of side b in a diff */
    int64_t base_flat, base_cum; /* of side a; 0 unless a diff */
};

/* Its texts and rows are in the arena of the function that makes it, or borrowed from the view or
 * the JSON. */
struct report {
    bool is_diff;
    bool is_normalised;         /* side b is scaled to the total of side a */
    bool is_by_line;            /* rows of one name differ by their lines */
    struct span group_by;       /* "function", "file", ..., or the name of a label */
    struct span sample_type;    /* empty for a type without a name */
    uint32_t sample_type_index; /* in the profile, of side b in a diff */
    struct span unit;
    int64_t total;
    int64_t base_total;
    struct report_row *rows; /* in the order of output */
    size_t row_count;
    uint64_t function_count; /* all functions, also those without a row */
    /* The number of functions all of whose values a normalised diff rounded to 0. If the server
     * limited the number of rows, only functions with a row are counted. */
    uint64_t rounded_count;
};

/* Makes the report of a view, with at most limit rows; 0: all. */
void report_from_view(const struct view *view, uint64_t limit, struct arena *arena,
                      struct report *ret_report);
/* Reads a response of the API's /top or /diff/top. Errors: ERR_NETWORK (json is neither). */
enum err_code report_from_json(const json_t *json, struct arena *arena, struct report *ret_report,
                               struct err *err) MUST_USE;

/* Print to standard output, without flushing it. */
void report_print_table(const struct cli *cli, const struct report *report);
void report_print_json(const struct report *report);

#endif

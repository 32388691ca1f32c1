/*
 * report_write: the kinds of reports, and their bytes.
 */
#ifndef API_REPORT_REPORT_WRITE_H
#define API_REPORT_REPORT_WRITE_H

#include "api/report/report.h"

extern const struct report_kind report_flame_binary; /* limit: nodes */
extern const struct report_kind report_flame_json;   /* limit: nodes; depth */
extern const struct report_kind report_top;          /* limit: rows, 0 for all */
extern const struct report_kind report_callers;      /* limit: rows of each side, 0 for all */
extern const struct report_kind report_diff_top;
extern const struct report_kind report_labels; /* limit: values of each label, 0 for all */
extern const struct report_kind report_diff_labels;
extern const struct report_kind report_pprof;      /* normalised, gzip */
extern const struct report_kind report_call_graph; /* DOT, for Graphviz */
extern const struct report_kind report_folded;     /* of one sample type */
extern const struct report_kind report_svg;
extern const struct report_kind report_png;

/* "zoomed into main.work: 3.20 s (25.0 %) · search json: 12.3 %": the parts of the address that a
 * picture describes above its boxes, in arena; may be empty. Errors: those of the picture's
 * write. */
enum err_code report_write_seen(const struct report *report, struct arena *arena,
                                const struct view *view, struct span *ret_text,
                                struct err *err) MUST_USE;

/* The kind of flame graph that the field Accept selects, and its parameters; adds Vary. */
const struct report_kind *report_choose_flame(struct request *request, struct response *response,
                                              unsigned *ret_parameters);

/* The default of the parameter limit: rows of a table, and values of each label. */
enum { REPORT_TOP_ROWS_DEFAULT = 100, REPORT_LABEL_VALUES_DEFAULT = 50 };

#endif

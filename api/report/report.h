/*
 * report: what is computed from a profile, or from two that are compared: its parameters, which are
 * read in one place, and its bytes.
 *
 * The profiles are from shares (api/share/share_report.h), from a query (api/query/query.h) or from
 * both (api/query/query_diff.h). Each of these finds them, checks access, limits memory and keeps
 * finished responses; this module knows none of them.
 *
 * Parameters, the same for every report: sample_type (name or index), group_by (function, file,
 * line, address, binary, or a label), names (full, simple, none: how functions are called that
 * symbol tables name), focus, ignore, hide, show (expressions of lib/base/regex.h),
 * label (key=value of lib/profile/report/label_filter.h), each of which may be repeated, limit.
 * Each error names the parameter. Files (pictures, trees, stacks, call graphs) take the address of
 * a page too (api/report/viewer_url_state.h); of what they do not show of it the field
 * Perfolio-Warning tells.
 *
 * A body may have max-generated-bytes, or anonymous-max-generated-bytes without credentials.
 * Threads: any.
 */
#ifndef API_REPORT_REPORT_H
#define API_REPORT_REPORT_H

#include "api/http/request.h"
#include "lib/base/wait_limit.h"
#include "lib/profile/picture/picture.h"
#include "lib/profile/picture/picture_colours.h"
#include "lib/profile/report/diff.h"
#include "lib/profile/report/filter.h"
#include "lib/profile/report/rule_chain.h"
#include "lib/profile/report/view.h"
#include "lib/symbols/symbol_name.h"

struct profile;
struct report;
struct server;

/* The most that settings may allow a body; a flame graph of a million nodes has about 40 MB. */
enum { REPORT_MAX_BYTES = 512 << 20 };

/* One kind of report. */
struct report_kind {
    const char *name; /* in keys: distinct */
    const char *content_type;
    bool compresses;  /* zstd for those who take it */
    bool needs_view;  /* else only the profile */
    bool shows_title; /* the answer changes with the share's title */
    bool shows_zoom;  /* of a page's address */
    bool counts_labels;
    /* view is NULL unless needs_view. */
    enum err_code (*write)(const struct report *report, struct arena *arena,
                           const struct profile *profile, const struct view *view,
                           struct buf *output, struct err *err);
};

/* What a report shows of where its profile is from; texts are never NULL. */
struct report_side {
    const char *title;
    const char *filename;
};

/* What is asked, of one profile or of two (sides[0] is the base, sides[1] what is compared with
 * it). */
struct report {
    struct server *server;
    const struct report_kind *kind;
    size_t max_bytes;  /* of the body, before compression */
    bool is_anonymous; /* the request had no credentials */
    bool is_file;
    struct report_side sides[2];
    size_t side_count;
    struct span sample_type;
    struct span group_by;
    struct filter_rule rules[FILTER_RULES_MAX];
    size_t rule_count;
    const struct chain_rule *chain; /* of a page: what comes behind those rules */
    size_t chain_count;
    enum symbol_name_mode names;
    bool is_stored;            /* of continuous profiles: trees tell of which binaries they are */
    bool is_label_known;       /* what group_by names is a label of what the query finds */
    const char *symbolization; /* JSON: what names the shares lack; NULL: not told */
    uint64_t generation;       /* of the symbol tables that their names are from */
    int64_t limit;             /* rows or nodes; its meaning is the kind's */
    int64_t depth;             /* levels; 0: all */
    bool has_root;             /* the tree is made for what is below one node … */
    uint64_t root;             /* … of that path (lib/profile/report/path_hash.h) */
    uint64_t above;            /* paths from a function, before addresses had names
                                  (lib/profile/report/raw_path.h) */
    uint64_t below;            /* 0: not asked for */
    struct span function;
    struct span label_key; /* empty: all */
    enum diff_mode mode;
    /* Of what is made of a query (api/query/query.h); zeros: the setting, and without end. */
    int64_t cpu_deadline_ns;
    struct wait_limit wait_limit;
    uint64_t zoom;                    /* hash of the path of the node that is shown alone; 0: all */
    struct span search;               /* of the page, which a picture marks; empty: none */
    struct span marked;               /* likewise, a function's name */
    enum picture_colouring colouring; /* likewise */
    bool is_upright;                  /* likewise: the root is at the bottom */
    struct picture_window window;     /* likewise */
    /* Per enum view_side: of samples that a query's answer is without, but counts in its whole. */
    int64_t left_out[VIEW_SIDE_COUNT];
    uint32_t left_out_count; /* rules of the page that a file does not show */
};

/* Bits: which parameters a route knows besides those of the view. */
enum report_parameters {
    REPORT_TAKES_FILTER = 1 << 0, /* sample_type focus ignore hide show label */
    REPORT_TAKES_LIMIT = 1 << 1,
    REPORT_TAKES_DEPTH = 1 << 2,
    REPORT_TAKES_FUNCTION = 1 << 3,
    REPORT_TAKES_GROUP = 1 << 5, /* group_by */
    REPORT_TAKES_KEY = 1 << 6,   /* key: of labels */
    REPORT_TAKES_ROOT = 1 << 16,
    REPORT_TAKES_MODE = 1 << 11, /* mode: of a comparison; else norm in the page's */
    REPORT_TAKES_PAGE = 1 << 7,  /* those of a page's address, and with sv any others */
    REPORT_IS_FILE = 1 << 17,    /* no parameter: what a client downloads or shows as a picture */
    REPORT_TAKES_VIEW = REPORT_TAKES_FILTER | REPORT_TAKES_GROUP
};

/* The names of parameters that the source of the profiles takes beside those of the report;
 * NULL-terminated. */
struct report_source_names {
    const char *const *single;
    const char *const *repeatable; /* NULL: none */
};

/*
 * Reads the parameters. The caller then finds what the report is of, checks access, and sets sides,
 * side_count (1 before) and is_stored. source NULL: it takes no parameters. Handles: ERR_INVALID (a
 * parameter).
 */
enum err_code report_read(struct request *request, const struct report_kind *kind,
                          unsigned parameters, int64_t default_limit,
                          const struct report_source_names *source, struct report *ret_report,
                          struct err *err) MUST_USE;
/* Reads the parameter mode of a comparison. Handles: ERR_INVALID. */
enum err_code report_read_mode(const struct request *request, struct report *report,
                               struct err *err) MUST_USE;

/* The error of a body that would be larger than report->max_bytes: names the setting. */
enum err_code report_too_large(const struct report *report, struct err *err);

/* Rules about labels are obeyed already: the store gives the samples that they keep alone. */
void report_drop_label_rules(struct report *report);

/* All that decides the answer but the profiles, as text; appended. */
void report_append_question(const struct report *report, struct buf *key);

/* The report of these profiles, at once. Two where the report is a diff. Handles: ERR_INVALID
 * (parameters that do not fit the profiles), ERR_TOO_LARGE. */
enum err_code report_write_profiles(const struct report *report,
                                    const struct profile *const profiles[2], struct buf *body,
                                    struct err *err) MUST_USE;

/* Before slow work for key, which is a share's id or names a tenant (api/http/concurrency_limit.h).
 * Handles: ERR_BUSY (a GET is handled again later). */
enum err_code report_take_turn(struct request *request, const char *key, struct err *err) MUST_USE;

#endif

/*
 * report: a report of a profile, or of two that are compared: reads its parameters and computes its
 * bytes.
 *
 * The profiles are from shares (api/share/share_report.h), from a query (api/query/query_report.h)
 * or from both (api/query/query_diff.h). Each of these modules finds its profiles, checks access,
 * limits memory and caches complete responses; this module knows none of them.
 *
 * Parameters, the same for every report: sample_type (name or index), group_by (function, file,
 * line, address, binary, or a label), names (full, simple, none: the form of names from symbol
 * tables), limit; and, each of them repeatable, focus, ignore, hide, show (expressions of
 * lib/regex/regex.h) and label (key=value of lib/profile/report/label_filter.h). Each error names
 * the parameter. Files (pictures, trees, stacks, call graphs) also accept the parameters of a
 * page's address (api/report/viewer_url_state.h); the field Perfolio-Warning states how many rules
 * of the page a file does not show.
 *
 * A body may have max-generated-bytes, or anonymous-max-generated-bytes without credentials.
 * Threads: any.
 */
#ifndef API_REPORT_REPORT_H
#define API_REPORT_REPORT_H

#include "api/http/request.h"
#include "lib/base/digest.h"
#include "lib/base/wait_limit.h"
#include "lib/profile/picture/picture.h"
#include "lib/profile/picture/picture_colours.h"
#include "lib/profile/report/diff.h"
#include "lib/profile/report/filter.h"
#include "lib/profile/report/rule_chain.h"
#include "lib/profile/report/view.h"
#include "lib/symbols/symbol_name_format.h"

struct profile;
struct report;
struct server;

/* The maximum that settings may allow for a body; a flame graph of a million nodes has about 40 MB.
 */
enum { REPORT_MAX_BYTES = 512 << 20 };

/* One kind of report. */
struct report_kind {
    const char *name; /* distinct; used in cache keys */
    const char *content_type;
    bool compresses;    /* zstd for clients that accept it */
    bool needs_view;    /* write gets a view; false: only the profile, and view is NULL */
    bool shows_title;   /* the result depends on the share's title */
    bool shows_zoom;    /* the result depends on the zoom of a page's address */
    bool counts_labels; /* the result depends on all labels of the samples */
    /* Appends the body to output. Called on the worker that handles the request. */
    enum err_code (*write)(const struct report *report, struct arena *arena,
                           const struct profile *profile, const struct view *view,
                           struct buf *output, struct err *err);
};

/* The source of a profile, as far as a report shows it; texts are never NULL. */
struct report_side {
    const char *title;
    const char *filename;
};

/* The parameters of a report of one profile or of two (sides[0] is the base, sides[1] is compared
 * with it). */
struct report {
    struct server *server;
    const struct report_kind *kind;
    size_t max_bytes;  /* limit of the body before compression */
    int64_t client;    /* tenant of the request, for the memory gate */
    bool is_anonymous; /* the request had no credentials */
    bool is_file;      /* REPORT_IS_FILE */
    struct report_side sides[2];
    size_t side_count;
    struct span sample_type;
    struct span group_by;
    struct filter_rule rules[FILTER_RULES_MAX];
    size_t rule_count;
    const struct chain_rule *chain; /* rules of a page, applied after `rules` */
    size_t chain_count;
    enum symbol_name_format_mode names;
    bool is_stored;            /* the profiles are the result of a query: trees list the binaries */
    bool is_label_known;       /* the query's result has the label in group_by */
    const char *symbolization; /* JSON: which binaries lack names; NULL: not reported */
    uint64_t generation;       /* sum of the generations of the shares' symbol tables */
    int64_t limit;             /* the meaning depends on the kind */
    int64_t depth;             /* levels; 0: all */
    bool has_root;             /* the tree contains only the nodes below one node … */
    uint64_t root;             /* … with this path (lib/profile/report/path_hash.h) */
    uint64_t above;            /* paths from a function, before addresses had names
                                  (lib/profile/report/raw_path.h) */
    uint64_t below;            /* 0: not requested */
    struct span function;
    struct span label_key; /* empty: all */
    enum diff_mode mode;
    /* The limits of the query, for a report of its result; zeros: the setting report-cpu-time, and
     * no wait limit. */
    int64_t cpu_deadline_ns;
    struct wait_limit wait_limit;
    uint64_t zoom;      /* hash of the path of the node that the picture shows; 0: all */
    struct span search; /* the page's search, which a picture highlights; empty: none */
    struct span marked; /* name of the function that a picture highlights; empty: none */
    enum picture_colouring colouring; /* how a picture is coloured */
    bool is_upright;                  /* a picture has its root at the bottom */
    struct picture_window window;     /* the part of the width that a picture shows */
    /* Per enum view_side: the sum of the samples that count in the total of a query although its
     * result does not contain them. */
    int64_t left_out[VIEW_SIDE_COUNT];
    uint32_t left_out_count; /* number of the page's rules that a file does not show */
};

/* Bits: the parameters that a route accepts besides those of the view. */
enum report_parameters {
    REPORT_TAKES_FILTER = 1 << 0, /* sample_type focus ignore hide show label */
    REPORT_TAKES_LIMIT = 1 << 1,
    REPORT_TAKES_DEPTH = 1 << 2,
    REPORT_TAKES_FUNCTION = 1 << 3,
    REPORT_TAKES_GROUP = 1 << 5, /* group_by */
    REPORT_TAKES_KEY = 1 << 6,   /* key: of labels */
    REPORT_TAKES_ROOT = 1 << 16,
    REPORT_TAKES_MODE = 1 << 11, /* mode: of a comparison; otherwise norm of the page */
    REPORT_TAKES_PAGE = 1 << 7,  /* the parameters of a page's address; any others if it has sv */
    REPORT_IS_FILE = 1 << 17,    /* not a parameter: a file to download, or a picture */
    REPORT_TAKES_VIEW = REPORT_TAKES_FILTER | REPORT_TAKES_GROUP
};

/* The parameters that the source of the profiles accepts besides those of the report;
 * NULL-terminated. */
struct report_source_names {
    const char *const *single;
    const char *const *repeatable; /* NULL: none */
};

/* Reads the parameters. The caller then finds the profiles, checks access, and sets sides,
 * side_count (1 before) and is_stored. source NULL: the source has no parameters. Errors:
 * ERR_INVALID (a parameter). */
enum err_code report_read(struct request *request, const struct report_kind *kind,
                          unsigned parameters, int64_t default_limit,
                          const struct report_source_names *source, struct report *ret_report,
                          struct err *err) MUST_USE;
/* Reads the parameter mode of a comparison. Errors: ERR_INVALID. */
enum err_code report_read_mode(const struct request *request, struct report *report,
                               struct err *err) MUST_USE;

/* The error for a body larger than report->max_bytes; names the setting. */
enum err_code report_too_large(const struct report *report, struct err *err);

/* Drops the rules about labels. For results of a query: the store has applied these rules. */
void report_drop_label_rules(struct report *report);

/* Hashes everything that determines the result except the profiles, for keys of caches: the
 * client's texts themselves may be long. */
void report_hash_parameters(const struct report *report, char ret_hex[DIGEST_HEX_BYTES]);

/* An upper bound of the memory that computing the report takes for one of its profiles, in bytes,
 * besides the profile and the body. */
uint64_t report_memory(const struct report *report, const struct profile *profile);

/* Computes the report of these profiles, two for a diff. Errors: ERR_INVALID (parameters that do
 * not fit the profiles), ERR_TOO_LARGE. */
enum err_code report_write_profiles(const struct report *report,
                                    const struct profile *const profiles[2], struct buf *body,
                                    struct err *err) MUST_USE;

/* Takes a concurrency slot (api/http/concurrency_limit.h); call it before slow work. key is the id
 * of a share, or names a tenant. Errors: ERR_BUSY (a GET is handled again later). */
enum err_code report_take_slot(struct request *request, const char *key, struct err *err) MUST_USE;

#endif

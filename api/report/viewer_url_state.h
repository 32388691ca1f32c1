/*
 * view_state: what the address of a page says about a view (web/src/state.ts), for files of it.
 *
 *   st=<sample type>  g=<group>  z=<path hash>  x=<rules, as web/src/model/chain.ts writes them>
 *   lb=<a rule of lib/profile/report/label_filter.h>, once for each
 *   q=<search>  m=<marked function>  norm=1, both sides of a comparison scaled to one total
 *   c=<what colours tell apart>: binary or value; else packages
 *   v=flame (or b=flame beside what is no picture), the root is at the bottom
 *   w=<from>-<to>, the part of the width that is seen, of what z zooms to
 *   names=<how functions of symbol tables are called>, which the API has, too
 *
 * These become what a report is asked for. The others (other views, other colours, order) change
 * nothing in a file and are taken without a word, as are those of later versions when sv is there.
 * A parameter of the API's own name wins over the page's.
 *
 * Rules apply one after the other, each to what the one before it left. Those at the chain's begin
 * of which the server's filter (lib/profile/report/filter.h) makes the same are its own, as they
 * are where a page asks for a large tree (web/src/model/served_rules.ts): grouped by function, line
 * or address, and no focus or ignore behind a hide or show, since it would look at frames that are
 * hidden. By file and binary those are the filter's that name nothing in the view, and so are of
 * functions (viewer_url_state_take_rules). From the first other one on,
 * lib/profile/report/rule_chain.h has them. What no version knows yet and what is no expression is
 * counted, so that the answer says of how many rules it shows nothing; the page leaves those out,
 * too. Threads: any.
 */
#ifndef API_REPORT_VIEWER_URL_STATE_H
#define API_REPORT_VIEWER_URL_STATE_H

#include "lib/base/buf.h"
#include "lib/profile/picture/picture.h"
#include "lib/profile/picture/picture_colours.h"
#include "lib/profile/report/filter.h"
#include "lib/profile/report/rule_chain.h"

struct request;

struct viewer_url_state {
    struct span sample_type;
    struct span group_by;
    uint64_t zoom; /* path hash (lib/profile/report/flame_zoom.h); 0: the root */
    struct filter_rule rules[FILTER_RULES_MAX];
    size_t rule_count;
    const struct chain_rule *chain; /* those that come behind the filter's */
    size_t chain_count;
    struct span search;
    struct span marked; /* a function's name */
    bool is_normalised;
    enum picture_colouring colouring;
    bool is_upright;
    struct picture_window window; /* of a picture alone */
    uint32_t left_out_count;      /* rules that are switched on and among neither */
};

/* The names of the page's parameters, NULL-terminated. */
extern const char *const viewer_url_state_names[];

/* From the request's query; what is malformed counts as absent, as in the page. Texts live in the
 * request's arena. */
void viewer_url_state_read(const struct request *request, struct viewer_url_state *ret_state);

/* Has the group no functions: is it file or binary? */
bool viewer_url_state_has_no_functions(struct span group_by);

/*
 * Moves those of the chain that wanted says to the filter's rules, where that means the same;
 * returns how many are left in the chain.
 */
size_t viewer_url_state_take_rules(struct chain_rule *chain, size_t chain_count, const bool *wanted,
                                   struct filter_rule rules[FILTER_RULES_MAX], size_t *rule_count);

/* Appends those of the query's parameters that a picture depends on, as a query without "?"; for
 * the address of the picture of a page. */
void viewer_url_state_append_query(const struct request *request, struct buf *query);

#endif

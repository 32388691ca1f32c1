/*
 * viewer_url_state: the parameters in the address of a page that describe a view
 * (web/src/view_state.ts), for files of the view.
 *
 *   st=<sample type>  g=<group>  z=<path hash>  x=<rules, see web/src/model/rules/chain.ts>
 *   lb=<a rule of lib/profile/report/label_filter.h>, once for each
 *   q=<search>  m=<marked function>  norm=1, both sides of a comparison scaled to one total
 *   c=binary or c=value: the property by which frames are coloured; otherwise their package
 *   v=flame (or b=flame beside a view that is no picture), the root is at the bottom
 *   w=<from>-<to>, the visible part of the width, of the node selected by z
 *   names=<the form of names from symbol tables>, a parameter of the API, too
 *
 * These become parameters of a report. Other parameters of the page (views, colours, order) do not
 * change a file and are ignored; so are unknown parameters, of later versions, if sv is present. A
 * parameter with the API's own name overrides the page's.
 *
 * Rules apply in order, each to the result of the one before. The rules at the start of the chain
 * that the server's filter (lib/profile/report/filter.h) can express are applied by it, as when a
 * page requests a large tree (web/src/model/rules/served_rules.ts): the group is function,
 * line or address, and no focus or ignore follows a hide or show, since it would match hidden
 * frames. With the group file or binary, a rule that matches nothing in the view is a rule about
 * functions, and the filter applies it too (viewer_url_state_take_rules). The first rule that the
 * filter cannot apply, and all after it, are applied by lib/profile/report/rule_chain.h. Rules of
 * unknown kinds and invalid expressions are ignored, as in the page, and counted, so that the
 * response can report their number.
 * Threads: any.
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
    const struct chain_rule *chain; /* the rules after those of the filter */
    size_t chain_count;
    struct span search;
    struct span marked; /* a function's name */
    bool is_normalised;
    enum picture_colouring colouring;
    bool is_upright;
    struct picture_window window; /* for pictures only */
    uint32_t left_out_count;      /* enabled rules that are in neither list */
};

/* The names of the page's parameters, NULL-terminated. */
extern const char *const viewer_url_state_names[];

/* Reads the request's query; malformed values count as absent, as in the page. Texts live in the
 * request's arena. */
void viewer_url_state_read(const struct request *request, struct viewer_url_state *ret_state);

/* Whether the group has no functions: file or binary. */
bool viewer_url_state_has_no_functions(struct span group_by);

/* Moves the rules of the chain that are marked in wanted to the filter's rules, if the meaning
 * stays the same; returns how many are left in the chain. */
size_t viewer_url_state_take_rules(struct chain_rule *chain, size_t chain_count, const bool *wanted,
                                   struct filter_rule rules[FILTER_RULES_MAX], size_t *rule_count);

/* Appends the query's parameters that a picture depends on, as a query without "?", for the address
 * of the picture of a page. */
void viewer_url_state_append_query(const struct request *request, struct buf *query);

#endif

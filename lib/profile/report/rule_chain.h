/*
 * rule_chain: the ordered rules of a page's address, on the stacks of a view, as
 * web/src/model/transform.ts applies them to its tree.
 *
 *   focus      keep stacks in which some frame matches
 *   ignore     leave out stacks in which some frame matches
 *   hide       take matching frames out of the stacks
 *   show       take all other frames out of the stacks
 *   merge      cut away what the first matching frame calls
 *   recursion  a matching frame that stands above in its stack already goes, and what is between
 *   only       hide what a preset names (rule_preset.h)
 *
 * Unlike a filter (filter.h) it sees the frames of the view's grouping, and each rule what the one
 * before it left. A frame matches by its name, file or binary. A stack that loses its frames is
 * left out; one that had none goes under all rules but merge and recursion. Threads: any.
 */
#ifndef LIB_PROFILE_REPORT_RULE_CHAIN_H
#define LIB_PROFILE_REPORT_RULE_CHAIN_H

#include "lib/profile/report/view.h"

enum chain_action {
    CHAIN_FOCUS,
    CHAIN_IGNORE,
    CHAIN_HIDE,
    CHAIN_SHOW,
    CHAIN_MERGE,
    CHAIN_RECURSION,
    CHAIN_ONLY
};
enum { CHAIN_ACTION_COUNT = CHAIN_ONLY + 1 };

struct chain_rule {
    enum chain_action action;
    /* An expression (lib/base/regex.h), of CHAIN_ONLY a preset's name. Empty: all frames. */
    struct span text;
};

/* "focus" … "only". */
const char *chain_action_name(enum chain_action action);

/* Does the action know what the text says: an expression, or a preset's name? */
bool chain_rule_is_known(const struct chain_rule *rule);

/*
 * Of each rule, whether no frame of a stack matches it. Handles: as rule_chain_apply.
 */
enum err_code rule_chain_find_nameless(const struct view *view, const struct chain_rule *rules,
                                       size_t rule_count, bool *ret_nameless,
                                       struct err *err) MUST_USE;

/*
 * What the rules leave of view, in arena, which borrows from it; total stays, kept is counted anew.
 * Handles: ERR_INVALID (an expression, or its cost), ERR_TOO_LARGE (the view's deadline).
 */
enum err_code rule_chain_apply(struct arena *arena, const struct view *view,
                               const struct chain_rule *rules, size_t rule_count,
                               const struct view **ret_view, struct err *err) MUST_USE;

#endif

/*
 * rule_chain: applies the ordered rules of a page's address to the stacks of a view, as
 * web/src/model/rules/transform.ts applies them to its tree.
 *
 *   focus      keep stacks in which some frame matches
 *   ignore     drop stacks in which some frame matches
 *   hide       remove matching frames from the stacks
 *   show       remove all other frames from the stacks
 *   merge      remove everything that the first matching frame calls
 *   recursion  remove a matching frame that occurs above in its stack already, and the
 *              frames between
 *   only       hide the frames of a preset (rule_preset.h)
 *
 * Unlike a filter (filter.h), it uses the frames of the view's grouping, and each rule applies to
 * the result of the previous one. A frame matches by its name, file or binary. A stack that loses
 * all its frames is dropped; one that had none is dropped by all rules except merge and recursion.
 * Threads: any.
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
    /* An expression (lib/regex/regex.h), or the name of a preset for CHAIN_ONLY. Empty: all
     * frames. */
    struct span text;
};

/* "focus" … "only". */
const char *chain_action_name(enum chain_action action);

/* Whether the text is valid for the action: an expression or empty or, for CHAIN_ONLY, the name of
 * a preset. */
bool chain_rule_is_known(const struct chain_rule *rule);

/*
 * Sets ret_nameless[i], for each of rule_count rules, to whether rule i matches no frame of any
 * stack of view. Each rule is tested alone. Errors: as rule_chain_apply.
 */
enum err_code rule_chain_find_nameless(const struct view *view, const struct chain_rule *rules,
                                       size_t rule_count, bool *ret_nameless,
                                       struct err *err) MUST_USE;

/*
 * Makes the view that the rules leave, in arena; it borrows from view. total is unchanged, kept is
 * recomputed. Errors: ERR_INVALID (an expression, or its cost), ERR_TOO_LARGE (the view's
 * deadline).
 */
enum err_code rule_chain_apply(struct arena *arena, const struct view *view,
                               const struct chain_rule *rules, size_t rule_count,
                               const struct view **ret_view, struct err *err) MUST_USE;

#endif

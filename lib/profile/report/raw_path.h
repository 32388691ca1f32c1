/*
 * raw_path: translates links that were made before a symbol table arrived.
 *
 * At that time, a location in a file was one frame named "app+0x2a10" (raw_name.h), or had the
 * names that the sender gave it, without lines. Now it is a function and the calls inlined into it,
 * which other addresses share. A node of the old tree is found by its stacks, since their addresses
 * have not changed: an address without a name corresponds to the node of the function that contains
 * it. Calls that the sender named correspond, from the root on, to the current calls; if there were
 * more of them than now, the others correspond to the last current one.
 *
 * Only for groupings that show such names: by function, line and label. A location without new
 * lines has the same name as before. Threads: an object belongs to one thread.
 */
#ifndef LIB_PROFILE_REPORT_RAW_PATH_H
#define LIB_PROFILE_REPORT_RAW_PATH_H

#include "lib/profile/report/view.h"

struct buf;
struct filter_rule;

/* Whether any address has another name than it was uploaded with, and the view's grouping shows
 * such names; false if stacks are cut. One pass over the locations. */
bool raw_path_may_be(const struct view *view);

/* The same for addresses that were uploaded with a name that a symbol table has replaced. Then any
 * expression may refer to old names. */
bool raw_path_has_sent_names(const struct view *view);

/*
 * Finds the current hash (path_hash.h) of the node whose path had `hash` before. Uses the stacks
 * before a rule chain (without_chain). One pass over the stacks, unless no location got a name.
 * Errors: ERR_NOT_FOUND; ERR_TOO_LARGE (the view's deadline).
 */
enum err_code raw_path_find(const struct view *view, uint64_t hash, uint64_t *ret_now,
                            struct err *err) MUST_USE;

/* The direction of a path from a function: to its callers, or to its callees. */
enum raw_path_way { RAW_PATH_ABOVE, RAW_PATH_BELOW };

/*
 * The same for a path that begins with a function anywhere in a stack: one that a focus expression
 * matches by its current or old name. When grouped by line, a function is the first of its frames,
 * as in the page. view must be one without a rule chain. One pass over the stacks, and over the
 * rest of a stack from each occurrence. Errors: ERR_NOT_FOUND; ERR_INVALID (an expression is too
 * costly); ERR_TOO_LARGE (the view's deadline).
 */
enum err_code raw_path_find_from(const struct view *view, enum raw_path_way way,
                                 const struct filter_rule *rules, size_t rule_count, uint64_t hash,
                                 uint64_t *ret_now, struct err *err) MUST_USE;

enum { RAW_PATH_NAMES_MAX = 100 };

/*
 * Appends a JSON array of the current names of the functions whose old names a focus expression
 * matches: at most RAW_PATH_NAMES_MAX, each once. *ret_is_more is set when there are others.
 * Locations that were uploaded without a name are matched only by expressions that may refer to
 * addresses. Errors: ERR_INVALID (an expression is too costly).
 */
enum err_code raw_path_list_names(const struct view *view, const struct filter_rule *rules,
                                  size_t rule_count, struct buf *json, bool *ret_is_more,
                                  struct err *err) MUST_USE;

#endif

/*
 * raw_path: what links mean that were made before a symbol table came. A location in a file was one
 * frame then, called "app+0x2a10" (raw_name.h), or was called as the profile's sender called it,
 * without a line; now it is a function and the calls inlined into it, which other addresses share.
 * A node of then is found by its stacks: they are still the same addresses. An address is the node
 * of the function that it lies in; calls that the sender named are, from the root on, those of now,
 * and where they were more than now, the last of those.
 *
 * Only for groupings that show such names: by function, line and label. What got no other lines is
 * called now as it was then. Threads: an object belongs to one thread.
 */
#ifndef LIB_PROFILE_REPORT_RAW_PATH_H
#define LIB_PROFILE_REPORT_RAW_PATH_H

#include "lib/profile/report/view.h"

struct buf;
struct filter_rule;

/* Did addresses get other names than they came with, or none? One loop over the locations. */
bool raw_path_may_be(const struct view *view);

/* Did some come with a name that has made place? Then any expression may be of then. */
bool raw_path_has_sent_names(const struct view *view);

/*
 * *ret_now is the hash (path_hash.h) that a node's path has now which had hash then. One loop over
 * the stacks, unless no location got a name. Handles: ERR_NOT_FOUND; ERR_TOO_LARGE (the view's
 * deadline).
 */
enum err_code raw_path_find(const struct view *view, uint64_t hash, uint64_t *ret_now,
                            struct err *err) MUST_USE;

/* Of a path from a function: to its callers, or to what it calls. */
enum raw_path_way { RAW_PATH_ABOVE, RAW_PATH_BELOW };

/*
 * As raw_path_find of a path that begins with a function, wherever that stands in a stack: one that
 * an expression of a focus names, as it is called now or was then. By line a function is the first
 * of its frames, as in the page. One loop over the stacks, and from each place of the function.
 * Handles: ERR_NOT_FOUND; ERR_INVALID (an expression is too costly); ERR_TOO_LARGE (the view's
 * deadline).
 */
enum err_code raw_path_find_from(const struct view *view, enum raw_path_way way,
                                 const struct filter_rule *rules, size_t rule_count, uint64_t hash,
                                 uint64_t *ret_now, struct err *err) MUST_USE;

enum { RAW_PATH_NAMES_MAX = 100 };

/*
 * Appends a JSON array of the names that the functions have now that were called as an expression
 * of a focus says: RAW_PATH_NAMES_MAX at most, each once; *ret_is_more: there are others. By its
 * address what came without a name is found by expressions of addresses alone. Handles: ERR_INVALID
 * (an expression is too costly).
 */
enum err_code raw_path_list_names(const struct view *view, const struct filter_rule *rules,
                                  size_t rule_count, struct buf *json, bool *ret_is_more,
                                  struct err *err) MUST_USE;

#endif

/*
 * selector: which series a question is about.
 *
 *   selector := [type] ["{" [matcher {"," matcher}] [","] "}"]
 *   type     := name of a profile type: two, three or more of its parts, joined by ":"
 *   matcher  := label ("=" | "!=" | "=~" | "!~") string
 *
 * As PromQL's, strings in double or single quotes with \\ \" \' \n \t \x0a, or raw in backquotes. A
 * label that a series does not have is empty. Regular expressions (lib/base/regex.h) must match the
 * whole value. `__profile_type__` may stand for the type. A label's name is read as series have it:
 * k8s.pod is k8s_pod.
 *
 * A type is name:sample_type:sample_unit:period_type:period_unit[:delta]. Fewer parts find every
 * type that has them: "memory:inuse_space" by name and sample type, "cpu:nanoseconds" by sample
 * type and unit; whether that is one type only the data tell.
 *
 * Threads: a selector belongs to one thread (regular expressions do).
 */
#ifndef STORE_SELECTOR_H
#define STORE_SELECTOR_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/batch.h"

struct dictionary;
struct selector;

enum { SELECTOR_MAX_BYTES = 8192, SELECTOR_MAX_MATCHERS = 64, SELECTOR_TYPE_PARTS = 5 };
enum { SELECTOR_CANONICAL_MAX_BYTES = 5 * SELECTOR_MAX_BYTES }; /* a byte becomes four at most */

/* In arena. Handles: ERR_INVALID, pointing at the place. */
enum err_code selector_parse(struct arena *arena, struct span text, struct selector **ret_selector,
                             struct err *err) MUST_USE;

/* Written so that selectors which differ only by spaces, the order and repetition of their
 * matchers, the way of quoting, dots for underscores in names, and expressions without anything
 * special for comparisons have the same text, which is such a selector unless it is too long.
 * Expressions that match the same in other words, and types of fewer parts, have texts of their
 * own. */
void selector_append_canonical(const struct selector *selector, struct buf *text);

/* For what is kept, such as deletions: whatever is stored later, it can be matched. Handles:
 * ERR_INVALID (an expression that counts too far). */
enum err_code selector_check_steady(const struct selector *selector, struct err *err) MUST_USE;

/* Does the series match, its type and its labels? What a value gave is remembered. Handles:
 * ERR_INVALID (an expression that selector_check_steady refuses takes too long). */
enum err_code selector_matches(struct selector *selector, const struct dictionary *dictionary,
                               uint32_t series, bool *ret_matches, struct err *err) MUST_USE;

/* Does its type find this one? Any does when it has none. parts: SELECTOR_TYPE_PARTS texts. */
bool selector_matches_type(const struct selector *selector, const struct span *parts,
                           bool is_delta);

/* The type's whole name, appended. */
void selector_append_type(const struct dictionary *dictionary, const struct batch_type *type,
                          struct buf *text);

#endif

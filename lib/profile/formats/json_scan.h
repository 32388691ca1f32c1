/*
 * json_scan: examines JSON text without building its tree: the members of the top-level object, and
 * the cost of a tree, so that a hostile text is refused before memory is allocated.
 *
 * It does not check syntax; the parser does that afterwards. Threads: any.
 */
#ifndef LIB_PROFILE_FORMATS_JSON_SCAN_H
#define LIB_PROFILE_FORMATS_JSON_SCAN_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

/* Whether text begins like a JSON object: "{", then a quote or "}". "{main};run 1" (PHP's folded
 * stacks) does not. */
bool json_scan_is_object(struct span text);

/* Whether the top-level object has a member of that name (written without escapes). */
bool json_scan_has_member(struct span text, const char *name);

/*
 * The same for up to 64 names in one pass: bit i is set if there is a member names[i]. A name may
 * be NULL, which never matches.
 */
uint64_t json_scan_find_members(struct span text, const char *const *names, size_t count);

/*
 * Checks that the text has at most limit_bytes and that its tree, by an estimate, would take at
 * most JSON_SCAN_TREE_RATIO times limit_bytes. Errors: ERR_TOO_LARGE.
 */
enum { JSON_SCAN_TREE_RATIO = 10 };
enum err_code json_scan_check(struct span text, size_t limit_bytes, struct err *err) MUST_USE;

/* Returns free heap memory to the system if text is larger than 2 MiB. json_tree_free calls it,
 * because the many small pieces of a tree would otherwise stay with the thread (400 MB for a text
 * of 40 MB). */
void json_scan_trim(struct span text);

#endif

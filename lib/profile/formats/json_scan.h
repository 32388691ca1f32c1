/*
 * json_scan: looks at JSON text without building its tree: which members the top-level object has,
 * and what a tree would cost, so that a hostile text is refused before memory is spent on it.
 *
 * It does not check syntax; the parser does that afterwards. Threads: any.
 */
#ifndef LIB_PROFILE_FORMATS_JSON_SCAN_H
#define LIB_PROFILE_FORMATS_JSON_SCAN_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* Does text begin like a JSON object? "{main};run 1" (PHP's folded stacks) does not. */
bool json_scan_is_object(struct span text);

/* Has the top-level object a member of that name (written without escapes)? */
bool json_scan_has_member(struct span text, const char *name);

/*
 * The same for several names, up to 64, in one pass: bit i is set where there is a member names[i].
 * A name may be NULL, which no member has.
 */
uint64_t json_scan_find_members(struct span text, const char *const *names, size_t count);

/*
 * Checks that the text has at most limit_bytes and that its tree would take at most
 * JSON_SCAN_TREE_RATIO times that. Handles: ERR_TOO_LARGE.
 */
enum { JSON_SCAN_TREE_RATIO = 10 };
enum err_code json_scan_check(struct span text, size_t limit_bytes, struct err *err) MUST_USE;

/* After the tree of a large text was freed: gives the memory of its many small pieces back, which
 * would otherwise stay with the thread (400 MB for a text of 40 MB). */
void json_scan_trim(struct span text);

#endif

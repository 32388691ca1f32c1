/*
 * regex_scan: the items of a pattern, one after the other: accepts the subset that regex.h
 * describes. Private to regex*.c. Threads: an object belongs to one thread.
 */
#ifndef LIB_REGEX_REGEX_SCAN_H
#define LIB_REGEX_REGEX_SCAN_H

#include "lib/base/span.h"

#include <limits.h>

enum { REGEX_SCAN_MANY = INT_MAX }; /* the most repeats of *, + and {2,} */

/* The state of a scan. The caller sets pattern and zeroes all other members. */
struct regex_scan {
    struct span pattern;
    size_t at;           /* of the next item */
    bool has_atom;       /* the previous item can be repeated */
    const char *problem; /* set if an item is refused; completes "the regular expression …" */
};

/* The byte at that distance from the next item; 0 behind the end. */
static inline uint8_t regex_scan_peek(const struct regex_scan *scanner, size_t ahead)
{
    size_t at = scanner->at + ahead;
    return at < scanner->pattern.size ? scanner->pattern.data[at] : 0;
}

/* Moves past the next item, such as "a", "[a-z]", "(", ")" or "{2,5}". Returns false, with problem,
 * if the subset does not contain it. The caller checks that the pattern has not ended. */
bool regex_scan_next(struct regex_scan *scanner);
/*
 * At "{": returns the end of the repeat {2}, {2,} or {2,5}; *ret_most is REGEX_SCAN_MANY for {2,}.
 * Returns 0 when it is not a repeat; then the brace is literal, as in {{closure}}.
 */
size_t regex_scan_braces(const struct regex_scan *scanner, unsigned *ret_least, unsigned *ret_most);

#endif

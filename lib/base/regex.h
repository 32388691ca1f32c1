/*
 * regex: regular expressions that mean the same here, in a browser and in Go.
 *
 * What is accepted is what PCRE2, JavaScript and RE2 (which pprof uses) agree on:
 *   x . \. [a-z] [^a-z] \d \D \w \W \s \S \t \n \r \f \xHH  ^ $ \b \B
 *   x* x+ x? x{2} x{2,} x{2,5}, each also lazy with a "?" behind it; counts up to 1000
 *   (x) (?:x) a|b        and "(?i)" at the very beginning: letters of either case
 * Refused, by name: backreferences, look-around, recursion, conditionals, callouts, atomic groups,
 * possessive repeats, named groups, flags elsewhere, verbs, \Q…\E, \A \z \G \K \R \X \p \C \N \v,
 * octal and braces of \x{…}, {,n}, POSIX classes, "]" unescaped as the first of a class.
 * "]" and braces that are no repeat stand for themselves, so {{closure}} needs no escaping. The
 * page's reader of the same subset is web/src/model/regex.ts.
 *
 * A match may begin anywhere; case counts unless "(?i)" is there; "$" matches at the very end only;
 * "." matches anything but a line feed; \d, \w and \s are ASCII.
 *
 * A hostile pattern is bounded three times: length, steps and memory of one match, and CPU time
 * of all matches since regex_create. A steady expression is for short subjects that others choose:
 * what takes many steps is matched anew with the set of all states at once, which takes about the
 * subject's length times the square of the pattern's places at the worst, whatever the pattern is,
 * and is never given up for a pattern of which regex_repeats_much is false. The interpreter is
 * used, not the JIT compiler: its limits count the same everywhere and the server needs no memory
 * that is writable and executable.
 *
 * Threads: an object belongs to one thread. The only file that includes pcre2.h.
 */
#ifndef LIB_BASE_REGEX_H
#define LIB_BASE_REGEX_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum {
    REGEX_PATTERN_BYTES = 8192, /* drop_frames of C++ profiles are 3 kB long */
    REGEX_MATCH_STEPS = 200000, /* PCRE2's match limit, per match */
    REGEX_HEAP_KIB = 4096,      /* PCRE2's heap limit, per match */
    REGEX_CPU_MS = 2000,        /* of all matches of one object together; not of steady ones */
    REGEX_REPEATED_MAX = 2000,  /* places that {2,5} and the like add to a pattern's own */
    REGEX_GROUPS_MAX = 32,      /* of regex_match_groups; more are refused */
};

struct regex;

/* The caller destroys *ret_regex. Handles: ERR_INVALID (syntax or outside the subset; the message
 * says where and why, and shows the pattern). */
enum err_code regex_create(struct span pattern, struct regex **ret_regex, struct err *err) MUST_USE;
void regex_destroy(struct regex *regex); /* NULL is a no-op */

/*
 * For rules that rewrite texts, which their owner wrote: as regex_create, but what matches is the
 * whole subject, "." matches line feeds, too, and (x) is kept for regex_match_groups. There is no
 * bound on the CPU time of all matches together, only on that of each. regex_match may be used,
 * too.
 */
enum err_code regex_create_whole(struct span pattern, struct regex **ret_regex,
                                 struct err *err) MUST_USE;
/* groups[0] is the subject, groups[n] what the n-th group matched last, empty where it did not;
 * *ret_count: 0 for no match, else one more than there are groups. Handles: as regex_match. */
enum err_code regex_match_groups(struct regex *regex, struct span subject,
                                 struct span groups[REGEX_GROUPS_MAX], uint32_t *ret_count,
                                 struct err *err) MUST_USE;

/* Before the first match. */
void regex_set_steady(struct regex *regex);
/* Do its counted repeats, written out, pass REGEX_REPEATED_MAX? */
bool regex_repeats_much(const struct regex *regex);

/* Does subject, which may be no UTF-8, hold a match? Handles: ERR_INVALID (a bound was passed; the
 * pattern is to blame). */
enum err_code regex_match(struct regex *regex, struct span subject, bool *ret_matches,
                          struct err *err) MUST_USE;

#endif

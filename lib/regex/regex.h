/*
 * regex: regular expressions that have the same meaning here, in a browser and in Go.
 *
 * The accepted syntax is the common subset of PCRE2, JavaScript and RE2 (which pprof uses):
 *
 *   x . \. [a-z] [^a-z] \d \D \w \W \s \S \t \n \r \f \xHH  ^ $ \b \B
 *   x* x+ x? x{2} x{2,} x{2,5}, each also lazy with a "?" after it; counts up to 1000
 *   (x) (?:x) a|b        and "(?i)" at the very beginning: letters of either case
 *
 * Refused, with a message that names the construct: backreferences, look-around, recursion,
 * conditionals, callouts, atomic groups, possessive repeats, named groups, flags elsewhere, verbs,
 * \Q…\E, \A \z \G \K \R \X \p \C \N \v, octal numbers and braces of \x{…}, {,n}, POSIX classes, "]"
 * unescaped as the first of a class. "]" and braces that are not a repeat are literal, so
 * {{closure}} needs no escaping. web/src/model/search/regex.ts parses the same subset.
 *
 * A match may begin anywhere; case matters unless "(?i)" is there; "$" matches at the very end
 * only; "." matches anything but a line feed; \d, \w and \s are ASCII.
 *
 * Hostile patterns have three limits: pattern length, steps and memory of one match, and CPU time
 * of all matches since regex_create. The DFA fallback (regex_use_dfa_fallback) is for short
 * subjects that others than the author of the pattern choose: a match that takes more than 10,000
 * steps is repeated with PCRE2's DFA matcher, which tracks the set of all states at once. The DFA
 * matcher cannot be interrupted. It takes at most about 0.6 ns times the length of the subject
 * times the square of regex_states: 5 ms for a subject of 2 KB and 64 states, 1.3 s for 1,000. The
 * interpreter is used instead of the JIT compiler: its limits count the same on all machines, and
 * the server needs no memory that is writable and executable.
 *
 * Threads: an object belongs to one thread. Only regex.c includes pcre2.h.
 */
#ifndef LIB_REGEX_REGEX_H
#define LIB_REGEX_REGEX_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

enum {
    REGEX_PATTERN_BYTES = 8192, /* drop_frames of C++ profiles are 3 kB long */
    REGEX_MATCH_STEPS = 200000, /* PCRE2's match limit, per match */
    REGEX_HEAP_KIB = 4096,      /* PCRE2's heap limit, per match */
    REGEX_CPU_MS = 2000,        /* CPU time of all matches of one object by PCRE2's matcher that
                                   backtracks; the DFA fallback has no limit */
    REGEX_MEAN_BYTES = 2048,    /* the longest value of a label; see regex_states */
    REGEX_GROUPS_MAX = 32,      /* regex_create_whole refuses patterns with more groups */
};

struct regex;

/* The caller destroys *ret_regex. Errors: ERR_INVALID (syntax error or outside the subset; the
 * message contains the position, the reason and the pattern). */
enum err_code regex_create(struct span pattern, struct regex **ret_regex, struct err *err) MUST_USE;
void regex_destroy(struct regex *regex); /* NULL is a no-op */

/*
 * For rewrite rules that their owner wrote. As regex_create, but the whole subject must match, "."
 * matches line feeds too, and (x) is captured for regex_match_groups. The CPU time of all matches
 * together is not limited, only that of each one. regex_match may be used, too.
 */
enum err_code regex_create_whole(struct span pattern, struct regex **ret_regex,
                                 struct err *err) MUST_USE;
/* groups[0] is the subject, groups[n] the last match of the n-th group, empty where it did not
 * take part. *ret_count is 0 without a match, else the number of groups plus one. Errors: as
 * regex_match. */
enum err_code regex_match_groups(struct regex *regex, struct span subject,
                                 struct span groups[REGEX_GROUPS_MAX], uint32_t *ret_count,
                                 struct err *err) MUST_USE;

/* Replaces REGEX_CPU_MS; call it before the first match. */
void regex_limit_cpu(struct regex *regex, uint32_t cpu_ms);
/* Enables the DFA fallback; call it before the first match. */
void regex_use_dfa_fallback(struct regex *regex);
/* Returns an upper bound of the items of the pattern (characters, classes, groups) that the DFA
 * matcher tracks at once, on average over the positions of a subject of REGEX_MEAN_BYTES: 5 for
 * ".*foo.*", because each item may be next at any position, 1 for "foo.*", and 0 for "foo|bar",
 * where each item has one position near the start. For longer subjects it returns the maximum over
 * all positions. The bound depends on the subject's size only. */
uint32_t regex_states(const struct regex *regex, size_t subject_bytes);

/* Whether subject, which need not be UTF-8, contains a match. Errors: ERR_INVALID (a limit was
 * exceeded because of the pattern). */
enum err_code regex_match(struct regex *regex, struct span subject, bool *ret_matches,
                          struct err *err) MUST_USE;

#endif

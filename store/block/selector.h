/*
 * selector: selects the series, and their samples, of a query.
 *
 *   selector := [type] ["{" [matcher {"," matcher}] [","] "}"]
 *   type     := name of a profile type: two, three or more of its parts, joined by ":"
 *   matcher  := label ("=" | "!=" | "=~" | "!~") string
 *
 * The syntax is PromQL's: strings in double or single quotes with \\ \" \' \n \t \x0a, or raw in
 * backquotes. A label that a series lacks is empty; queries then look for it in the samples
 * (selector_matches_samples). Regular expressions (lib/regex/regex.h) must match the whole value. A
 * label's name is read as series have it: k8s.pod is k8s_pod. Names that begin with "__" are
 * refused, except `__profile_type__`, the type: "=" matches the types that a leading type would,
 * "!=" all others, and expressions match its whole name as lists of types show it. Several
 * conditions on it must all hold, as with labels. A type that contains one of } [ ] ( ) @ or quotes
 * must be quoted.
 *
 * A type is name:sample_type:sample_unit:period_type:period_unit with a suffix for some kinds of
 * values, such as ":delta" (batch_type_suffix). Fewer parts match every type that has them:
 * "memory:inuse_space" by name and sample type, "cpu:nanoseconds" by sample type and unit. Five
 * parts match the type without a suffix and with each suffix. Whether only one type matches depends
 * on the stored data.
 *
 * Threads: a selector belongs to one thread, as regular expressions do.
 */
#ifndef STORE_BLOCK_SELECTOR_H
#define STORE_BLOCK_SELECTOR_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"
#include "lib/profile/batch/batch.h"

struct dictionary;
struct label_words;
struct selector;

/* The selectors of one query; a series matches when any of them matches it. */
struct selector_set {
    struct selector *const *selectors;
    size_t count;
};

enum { SELECTOR_MAX_BYTES = 8192, SELECTOR_MAX_MATCHERS = 64, SELECTOR_TYPE_PARTS = 5 };
#define SELECTOR_QUOTED_SIGNS "}[]()@\"'`" /* not allowed in an unquoted type */
/* A byte becomes at most four, such as "\\x0a"; the rest is for quotes and separators. */
enum { SELECTOR_CANONICAL_MAX_BYTES = 5 * SELECTOR_MAX_BYTES };

/* Parses a selector into arena. Errors: ERR_INVALID (the message points at the position). */
enum err_code selector_parse(struct arena *arena, struct span text, struct selector **ret_selector,
                             struct err *err) MUST_USE;

/* The same; messages call the selector `name` instead of "query". */
enum err_code selector_parse_named(struct arena *arena, const char *name, struct span text,
                                   struct selector **ret_selector, struct err *err) MUST_USE;

/* Parses a stored selector. Accepts constructs that selector_parse refuses but that earlier
 * versions stored. */
enum err_code selector_parse_stored(struct arena *arena, struct span text,
                                    struct selector **ret_selector, struct err *err) MUST_USE;

/* Lists the labels that the selector compares. Names are borrowed, and repeated where the selector
 * repeats them. Returns their number. */
uint32_t selector_compared_labels(const struct selector *selector,
                                  struct span ret_names[SELECTOR_MAX_MATCHERS]);

/* Lists the labels that a matching series must have, because the empty value does not match. Names
 * are borrowed, and repeated where the selector repeats them. Returns their number. */
uint32_t selector_required_labels(const struct selector *selector,
                                  struct span ret_names[SELECTOR_MAX_MATCHERS]);

/*
 * Appends a canonical text. Selectors have the same text if they differ only by spaces, the order
 * and repetition of matchers, quoting, dots for underscores in names, or by using an expression
 * without special characters in place of a comparison. The text is an equivalent selector unless it
 * is too long. Other equivalent expressions, and types of fewer parts, have texts of their own.
 */
void selector_append_canonical(const struct selector *selector, struct buf *text);

/* Checks a selector that is stored, such as a deletion's: it must be possible to match it against
 * any later data. Errors: ERR_INVALID (its expressions together repeat too often). */
enum err_code selector_check_bounded(const struct selector *selector, struct err *err) MUST_USE;

/* Makes the matching functions call check before a match once the matches since the last check may
 * have taken 50 ms (an upper bound, not a measured time). They return its code if that is not
 * ERR_NONE. */
typedef enum err_code selector_check(void *context, struct err *err);
void selector_set_check(struct selector *selector, selector_check *check, void *context);

/* Matches a series by its type and labels. Results per value are cached. Errors: ERR_INVALID (an
 * expression that selector_check_bounded refuses takes too long). */
enum err_code selector_matches(struct selector *selector, const struct dictionary *dictionary,
                               uint32_t series, bool *ret_matches, struct err *err) MUST_USE;

/* As selector_matches, but labels that the series lacks are ignored: its samples may have them.
 * Errors: the same. */
enum err_code selector_matches_known(struct selector *selector, const struct dictionary *dictionary,
                                     uint32_t series, bool *ret_matches, struct err *err) MUST_USE;

/* Reports whether the selector compares a label that the series lacks. */
bool selector_has_open_labels(const struct selector *selector, const struct dictionary *dictionary,
                              uint32_t series);

/* Reports whether the selector compares (with are_required: requires) a label that samples of the
 * dictionary may have. */
bool selector_may_match_samples(const struct selector *selector,
                                const struct dictionary *dictionary, bool are_required);

/*
 * Matches samples by their own labels, of a series that selector_matches_known matches. Labels that
 * the series has are not compared again. A sample's label name is read as series have it. Of
 * several values of one label one must match for = and =~, none may for != and !~. A number is
 * compared as its digits and, where it has a unit, as "4096 bytes". Errors: as selector_matches.
 */
enum err_code selector_matches_samples(struct selector *selector,
                                       const struct dictionary *dictionary, uint32_t series,
                                       const struct label_words *words, uint32_t word_count,
                                       bool *ret_matches, struct err *err) MUST_USE;

/* Matches a type only; a selector without a type matches any. parts: SELECTOR_TYPE_PARTS texts.
 * Errors: as selector_matches. */
enum err_code selector_matches_type(struct selector *selector, const struct span *parts,
                                    enum batch_kind kind, bool *ret_matches,
                                    struct err *err) MUST_USE;

/* True when the selector names a type with all its parts: SELECTOR_TYPE_PARTS texts, borrowed. */
bool selector_find_type(const struct selector *selector, struct span *ret_parts);

/* Reports whether the selector requires the type to be equal to name, its whole name. */
bool selector_names_type(const struct selector *selector, struct span name);

/* Appends the whole name of the type. */
void selector_append_type(const struct dictionary *dictionary, const struct batch_type *type,
                          struct buf *text);

#endif

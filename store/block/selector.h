/*
 * selector: which series a question is about.
 *
 *   selector := [type] ["{" [matcher {"," matcher}] [","] "}"]
 *   type     := name of a profile type: two, three or more of its parts, joined by ":"
 *   matcher  := label ("=" | "!=" | "=~" | "!~") string
 *
 * As PromQL's, strings in double or single quotes with \\ \" \' \n \t \x0a, or raw in backquotes. A
 * label that a series does not have is empty. Questions look for such a label in the samples
 * (selector_matches_samples): a sample's label counts where its series lacks it. Regular
 * expressions (lib/base/regex.h) must match the whole value. A label's name is read as series have
 * it: k8s.pod is k8s_pod. No label's name begins with "__", and none that does is taken, but
 * `__profile_type__`, which is the type: "=" finds the types that a type in front would, "!=" all
 * others, and expressions match its whole name, as lists of types tell it. Several conditions of it
 * have to hold together, as of labels. A type with one of } [ ] ( ) @ and quotes in it stands in
 * quotes.
 *
 * A type is name:sample_type:sample_unit:period_type:period_unit[:delta]. Fewer parts find every
 * type that has them: "memory:inuse_space" by name and sample type, "cpu:nanoseconds" by sample
 * type and unit; whether that is one type only the data tell.
 *
 * Threads: a selector belongs to one thread (regular expressions do).
 */
#ifndef STORE_BLOCK_SELECTOR_H
#define STORE_BLOCK_SELECTOR_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/batch/batch.h"

struct dictionary;
struct label_words;
struct selector;

/* Those of one question: what any of them finds. */
struct selector_set {
    struct selector *const *selectors;
    size_t count;
};

enum { SELECTOR_MAX_BYTES = 8192, SELECTOR_MAX_MATCHERS = 64, SELECTOR_TYPE_PARTS = 5 };
#define SELECTOR_QUOTED_SIGNS "}[]()@\"'`"                      /* that no type in front has */
enum { SELECTOR_CANONICAL_MAX_BYTES = 5 * SELECTOR_MAX_BYTES }; /* a byte becomes four at most */

/* In arena. Handles: ERR_INVALID, pointing at the place. */
enum err_code selector_parse(struct arena *arena, struct span text, struct selector **ret_selector,
                             struct err *err) MUST_USE;

/* The same; messages call the text by this name in place of "query". */
enum err_code selector_parse_named(struct arena *arena, const char *name, struct span text,
                                   struct selector **ret_selector, struct err *err) MUST_USE;

/* Of a text that was taken once and kept: what is refused by now has to be read all the same. */
enum err_code selector_parse_stored(struct arena *arena, struct span text,
                                    struct selector **ret_selector, struct err *err) MUST_USE;

/* Names of the labels that a matching series must have, since the empty value does not match;
 * borrowed, each as often as it is there. Returns how many. */
uint32_t selector_required_labels(const struct selector *selector,
                                  struct span ret_names[SELECTOR_MAX_MATCHERS]);

/* Written so that selectors which differ only by spaces, the order and repetition of their
 * matchers, the way of quoting, dots for underscores in names, and expressions without anything
 * special for comparisons have the same text, which is such a selector unless it is too long.
 * Expressions that match the same in other words, and types of fewer parts, have texts of their
 * own. */
void selector_append_canonical(const struct selector *selector, struct buf *text);

/* For what is kept, such as deletions: whatever is stored later, it can be matched. Handles:
 * ERR_INVALID (an expression that counts too far). */
enum err_code selector_check_bounded(const struct selector *selector, struct err *err) MUST_USE;

/* Does the series match, its type and its labels? What a value gave is remembered. Handles:
 * ERR_INVALID (an expression that selector_check_bounded refuses takes too long). */
enum err_code selector_matches(struct selector *selector, const struct dictionary *dictionary,
                               uint32_t series, bool *ret_matches, struct err *err) MUST_USE;

/* As selector_matches, whatever the values of labels are that the series does not have: its samples
 * may have them. Handles: the same. */
enum err_code selector_matches_known(struct selector *selector, const struct dictionary *dictionary,
                                     uint32_t series, bool *ret_matches, struct err *err) MUST_USE;

/* Does it compare a label that the series does not have? */
bool selector_has_open_labels(const struct selector *selector, const struct dictionary *dictionary,
                              uint32_t series);

/* Does it compare (with are_required: require) a label that samples of the dictionary may have? */
bool selector_may_match_samples(const struct selector *selector,
                                const struct dictionary *dictionary, bool are_required);

/*
 * Do samples with these labels of their own match, of a series that selector_matches_known finds?
 * Labels that the series has are not looked at again. A sample's name is read as series have it.
 * Of several values of one label one has to match for = and =~, none may for != and !~. A number is
 * compared as its digits and, where it has a unit, as "4096 bytes". Handles: as selector_matches.
 */
enum err_code selector_matches_samples(struct selector *selector,
                                       const struct dictionary *dictionary, uint32_t series,
                                       const struct label_words *words, uint32_t word_count,
                                       bool *ret_matches, struct err *err) MUST_USE;

/* Does what it says of the type find this one? Any does when that is nothing. parts:
 * SELECTOR_TYPE_PARTS texts. Handles: as selector_matches. */
enum err_code selector_matches_type(struct selector *selector, const struct span *parts,
                                    bool is_delta, bool *ret_matches, struct err *err) MUST_USE;

/* True where it names a type with all its parts: SELECTOR_TYPE_PARTS texts, borrowed. */
bool selector_find_type(const struct selector *selector, struct span *ret_parts);

/* The type's whole name, appended. */
void selector_append_type(const struct dictionary *dictionary, const struct batch_type *type,
                          struct buf *text);

#endif

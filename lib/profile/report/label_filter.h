/*
 * label_filter: selects samples by their labels.
 *
 * A rule is text:
 *
 *   key=value    samples with this value of the label
 *   key!=value   samples without it
 *   key=         samples without this label, or without a value of it; key!= those that have one
 *
 * The key ends at the first "=" that does not follow "\"; "\" makes the next byte of the key
 * literal, so a key that ends in "!" is written "key\!=value". Several rules key=value with the
 * same key keep samples with any of these values; rules with different keys must all be satisfied;
 * a rule with "!=" whose value the sample has drops the sample. A sample with several values of a
 * label has each of them.
 *
 * A text value is compared byte by byte. A numeric value is given by its number, "4096"; with a
 * blank and its unit where units matter, "4096 bytes" or "4096 " for no unit; or by an inclusive
 * range, "1024..4096", "1024..", "..4096 bytes".
 *
 * Threads: a filter and the objects made from it may be read by any number of threads.
 */
#ifndef LIB_PROFILE_REPORT_LABEL_FILTER_H
#define LIB_PROFILE_REPORT_LABEL_FILTER_H

#include "lib/profile/profile.h"

enum { LABEL_RULES_MAX = 32 };

struct buf;
struct label_filter;

/* Compiles at most LABEL_RULES_MAX rules, which must live as long as arena. *ret_filter is NULL
 * without rules. Errors: ERR_INVALID (not key=value). */
enum err_code label_filter_create(struct arena *arena, const struct span *rules, size_t rule_count,
                                  const struct label_filter **ret_filter, struct err *err) MUST_USE;

/* Resolves a filter for the strings of one profile, in arena. */
struct label_match;
const struct label_match *label_match_create(struct arena *arena, const struct label_filter *filter,
                                             const struct profile *profile);

bool label_match_passes(const struct label_match *match, uint32_t sample);

/* A label with its texts, independent of a profile. */
struct label_words {
    struct span key;
    struct span text; /* empty for a numeric label */
    int64_t number;
    struct span unit; /* of number */
    bool is_numeric;
};
/* The same test as label_match_passes, for a sample with these labels. */
bool label_filter_passes(const struct label_filter *filter, const struct label_words *labels,
                         size_t label_count);

/* Appends bytes that identify this filter, as a key of caches: filters that select different
 * samples have different bytes. */
void label_filter_append_rules(const struct label_filter *filter, struct buf *text);

/* Sets keys, which has space for LABEL_RULES_MAX, to the distinct keys of the rules. Returns their
 * number. The texts are borrowed from the filter. */
size_t label_filter_keys(const struct label_filter *filter, struct span *keys);

/* Checks that each key is a label of at least one of the profiles; the matches belong to one
 * filter. Errors: ERR_INVALID; the message lists labels of the first profile. */
enum err_code label_match_check_keys(const struct label_match *const *matches, size_t match_count,
                                     struct err *err) MUST_USE;

/* Appends ", which has 'a', 'b'", the first 12 labels of a profile, for messages; ", which has no
 * labels" without any. */
void label_filter_append_keys(const struct profile *profile, struct buf *text);

/* Appends the key of a rule key=value, escaped so that it is parsed unchanged. */
void label_filter_append_key(struct span key, struct buf *text);

#endif

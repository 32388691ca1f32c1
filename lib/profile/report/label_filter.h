/*
 * label_filter: which samples stay by their labels.
 *
 * A rule is text:
 *   key=value    samples with this value of the label
 *   key!=value   samples without it
 *   key=         samples that have no such label, or none with a value; key!= those that have one
 * The key ends at the first "=" that no "\" stands before; "\" makes the next byte of the key stand
 * for itself, so a key that ends in "!" is written "key\!=value". Several rules key=value of one
 * key keep samples with any of these values; different keys must all be satisfied; any rule with
 * "!=" that holds leaves the sample out. A sample with several values of a label has each of them.
 *
 * A text value is equal byte by byte. A numeric one is named by its number, "4096", with a blank
 * and its unit where units matter, "4096 bytes" or "4096 " for none, or by a range with both ends
 * in it, "1024..4096", "1024..", "..4096 bytes".
 *
 * Threads: a filter and what is made of it may be read by any number.
 */
#ifndef LIB_PROFILE_REPORT_LABEL_FILTER_H
#define LIB_PROFILE_REPORT_LABEL_FILTER_H

#include "lib/profile/profile.h"

enum { LABEL_RULES_MAX = 32 };

struct label_filter;

/* rules live as long as arena; *ret_filter is NULL without any. Handles: ERR_INVALID (no
 * key=value). At most LABEL_RULES_MAX rules. */
enum err_code label_filter_create(struct arena *arena, const struct span *rules, size_t rule_count,
                                  const struct label_filter **ret_filter, struct err *err) MUST_USE;

/* A filter with the strings of one profile, in arena. */
struct label_match;
const struct label_match *label_match_create(struct arena *arena, const struct label_filter *filter,
                                             const struct profile *profile);

bool label_match_passes(const struct label_match *match, uint32_t sample);

/* A label as it is, without a profile. */
struct label_words {
    struct span key;
    struct span text; /* empty where is_numeric */
    int64_t number;
    struct span unit; /* of number */
    bool is_numeric;
};
/* As label_match_passes, of a sample with these labels. */
bool label_filter_passes(const struct label_filter *filter, const struct label_words *labels,
                         size_t label_count);

/* What tells this filter from others that keep other samples; appended. */
void label_filter_append_rules(const struct label_filter *filter, struct buf *text);

/* The keys of the rules, distinct; at most LABEL_RULES_MAX. Returns how many. */
size_t label_filter_keys(const struct label_filter *filter, struct span *keys);

/* Of matches of one filter with several profiles: is each key a label of one of them at least?
 * Handles: ERR_INVALID, which says what labels the first has. */
enum err_code label_match_check_keys(const struct label_match *const *matches, size_t match_count,
                                     struct err *err) MUST_USE;

/* ", which has 'a', 'b'": the first labels of a profile, for messages. */
void label_filter_append_keys(const struct profile *profile, struct buf *text);

/* key=value as a rule, with what the key needs to be read as it is; appended. */
void label_filter_append_key(struct span key, struct buf *text);

#endif

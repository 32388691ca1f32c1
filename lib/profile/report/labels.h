/*
 * labels: the labels of the samples in a view, and the value that each of them has.
 *
 * Counts the stacks that the view's filter kept. A sample counts once for each label that it has,
 * and once for each different value of it. Keys and values are ordered by descending size (in a
 * diff by the larger of both sides), then by name, numbers by number. A numeric value consists of
 * its number and unit. A key has a unit if all its values are numbers of one unit. It then has a
 * histogram if it has more than LABELS_BARS_EQUAL values: bars as wide as powers of two if the
 * numbers differ by a factor of at least 64 and none is negative, else LABELS_BARS_EQUAL equal
 * bars.
 *
 * Memory is bounded: of more than LABELS_VALUES_MAX different values the last ones in the profile
 * are summed as `uncounted` of their key; of more than LABELS_KEYS_MAX keys the last ones are left
 * out. Both are reported. Cost: one hash map lookup per label of a kept sample. Threads: an object
 * belongs to one thread.
 */
#ifndef LIB_PROFILE_REPORT_LABELS_H
#define LIB_PROFILE_REPORT_LABELS_H

#include "lib/profile/report/view.h"

enum {
    LABELS_VALUES_MAX = 1 << 20,
    LABELS_KEYS_MAX = 4096,
    LABELS_BARS_MAX = 64,
    LABELS_BARS_EQUAL = 16
};

struct labels_count {
    int64_t total[VIEW_SIDE_COUNT];
    uint32_t samples[VIEW_SIDE_COUNT];
};

struct labels_value {
    struct span word; /* the text, or the unit of the number */
    int64_t number;
    struct labels_count count;
    uint32_t key;        /* only used by labels_create */
    uint32_t last_stack; /* likewise: the last stack that was counted, plus 1 */
    bool is_numeric;
};

struct labels_bar {
    int64_t low; /* low and high are inclusive */
    int64_t high;
    struct labels_count count; /* of values: a sample with two values in the bar counts twice */
};

struct labels_key {
    struct span name;
    struct span unit;          /* of all values; empty also if they have none or several */
    bool is_numeric;           /* every value is a number */
    bool has_one_unit;         /* all values have the same unit */
    struct labels_count count; /* of the samples that have the label */
    const struct labels_value *values;
    uint32_t value_count;
    struct labels_count uncounted;
    const struct labels_bar *bars;
    uint32_t bar_count;  /* 0: no histogram */
    uint32_t last_stack; /* as in labels_value */
};

struct labels {
    const struct view *view;
    struct labels_count kept; /* of all stacks */
    const struct labels_key *keys;
    uint32_t key_count;
    bool has_more_keys;
};

/*
 * Allocates in arena. key selects one label; empty: all. Errors: ERR_INVALID (no such label in the
 * profiles; the message lists those that exist), ERR_TOO_LARGE (the view's deadline).
 */
enum err_code labels_create(struct arena *arena, const struct view *view, struct span key,
                            const struct labels **ret_labels, struct err *err) MUST_USE;

#endif

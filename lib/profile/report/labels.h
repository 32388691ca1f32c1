/*
 * labels: which labels the samples of a view have, and how much each of their values holds.
 *
 * Counted are the stacks that the view's filter kept; a sample counts once for a label that it has,
 * and once for each different value of it. Keys and values are ordered by descending size (of a
 * diff by the larger of both sides), then by name, numbers by number. A numeric value is its number
 * and its unit; the unit of a key is told when all its values are numbers of one unit, and then,
 * with many values, a histogram: of bars as wide as powers of two where numbers differ by a factor
 * of 64 and more and none is negative, else of 16 equal ones.
 *
 * Memory is bounded: of more than LABELS_VALUES_MAX different values those that come last in the
 * profile are summed up as `uncounted` of their key, and of more than LABELS_KEYS_MAX keys the last
 * are left out; both are said. Cost: a look into a hash map per label of a sample that was kept.
 * Threads: an object belongs to one thread.
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
    uint32_t key;        /* used while counting */
    uint32_t last_stack; /* that was counted, plus 1 */
    bool is_numeric;
};

struct labels_bar {
    int64_t low; /* both ends are in it */
    int64_t high;
    struct labels_count count; /* of values: a sample with two is in it twice */
};

struct labels_key {
    struct span name;
    struct span unit;          /* of all values; empty too where they have none or several */
    bool is_numeric;           /* every value is a number */
    bool has_one_unit;         /* and all are of one unit */
    struct labels_count count; /* of the samples that have the label */
    const struct labels_value *values;
    uint32_t value_count;
    struct labels_count uncounted;
    const struct labels_bar *bars;
    uint32_t bar_count;  /* 0: no histogram */
    uint32_t last_stack; /* as of values */
};

struct labels {
    const struct view *view;
    struct labels_count kept; /* of all stacks */
    const struct labels_key *keys;
    uint32_t key_count;
    bool has_more_keys;
};

/*
 * In arena. key is empty for all, or the one label that is asked for. Handles: ERR_INVALID (no such
 * label in the profiles; the message says which there are), ERR_TOO_LARGE (the view's deadline).
 */
enum err_code labels_create(struct arena *arena, const struct view *view, struct span key,
                            const struct labels **ret_labels, struct err *err) MUST_USE;

#endif

/*
 * row_labels: decides by labels whether a row stays in a query, and in which group it is.
 *
 * A row stays in the query if the label filter matches it and the selectors do; selectors are
 * compared with rows only for labels that the row's series lacks. A row has the labels of its
 * series. It also has the labels of its label set and its link ("trace_id" and "span_id",
 * hexadecimal), except those whose names, normalized as names of series are, the series has. So
 * groups, filters and selectors compare the same value. A sender's spelling of a name ("k8s.pod")
 * finds the series' label, and the normalized one ("k8s_pod") the sample's. If several labels of a
 * sample have that normalized name, it has all their values, as a name that is given several times.
 *
 * Rows with equal values of the names that a query groups by are one group; group 0 has none of
 * them. Results are cached per label set of the current series, so the cost is an array access per
 * row. Threads: an object belongs to one thread. Private to store/.
 */
#ifndef STORE_QUERY_ROW_LABELS_H
#define STORE_QUERY_ROW_LABELS_H

#include "lib/profile/report/label_filter.h"

struct arena;
struct block;
struct block_granule;
struct row_labels;
struct selector_set;

/* Groups of rows that do not stay: rows that the label filter leaves out, whose values still count
 * in the total of the profile, and rows that no selector matches. (UINT32_MAX - 1 is used inside
 * row_labels.c.) */
#define ROW_LABELS_LEFT_OUT UINT32_MAX
#define ROW_LABELS_NOT_FOUND (UINT32_MAX - 2)

static inline bool row_labels_stays(uint32_t group)
{
    return group != ROW_LABELS_LEFT_OUT && group != ROW_LABELS_NOT_FOUND;
}

enum { ROW_LABELS_NAMES_MAX = LABEL_RULES_MAX + 1 }; /* names of a filter and of a group */

enum row_labels_kind {
    ROW_LABELS_EXACT, /* labels of the names; numbers stay numbers */
    ROW_LABELS_ALL,   /* all labels, numbers stay numbers; ids of traces and spans only if named */
    ROW_LABELS_TEXTS  /* labels of the names as text: "4096 bytes", several values with commas */
};

/* Creates an object in arena; filter and selectors may be NULL, names are borrowed. */
struct row_labels *row_labels_create(struct arena *arena, const struct label_filter *filter,
                                     const struct selector_set *selectors, const struct span *names,
                                     size_t name_count, enum row_labels_kind kind);
/* frees what is not in the arena; NULL: a no-op */
void row_labels_destroy(struct row_labels *labels);

/* Starts a granule: the calls that follow are about its rows. Also for one without rows, so that
 * the labels of its series are known to exist. */
void row_labels_begin(struct row_labels *labels, const struct block *block,
                      const struct block_granule *granule);
/* True when each row has to be looked at. False when all rows are in the group of label set 0,
 * because all labels that count are those of series, in the whole block. */
bool row_labels_wants_rows(const struct row_labels *labels, const struct block_granule *granule);
/* The group of the rows with this label set, or one of the two groups that do not stay. */
uint32_t row_labels_group(struct row_labels *labels, uint32_t label_set);

/* The labels of a group, in order of the names; keys are the names. */
const struct label_words *row_labels_get(const struct row_labels *labels, uint32_t group,
                                         uint32_t *ret_count);
/* Whether the memory has grown by more than a few MiB since the last call that returned true: the
 * caller then checks its limits. A group may have hundreds of texts of 16 KiB. */
bool row_labels_have_grown(struct row_labels *labels);
size_t row_labels_memory(const struct row_labels *labels);
/* Fails if a row could not be compared. Rows that came later were then not compared either, so the
 * query has no result. Errors: as selector_matches_samples. */
enum err_code row_labels_check(const struct row_labels *labels, struct err *err) MUST_USE;

/* Describes, in the arena, one of the names to group by that neither a series nor a row that the
 * selectors match has, and lists the names that exist. NULL: all names exist. */
const char *row_labels_describe_absent(const struct row_labels *labels);
/* The same for a label that the filter compares, without a list of names. */
const char *row_labels_describe_absent_key(const struct row_labels *labels);

#endif

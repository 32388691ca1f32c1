/*
 * row_labels: which labels of a question rows have: whether a row stays, and with which it goes.
 *
 * Whether a row stays a label filter decides, and selectors where they compare a label that the
 * row's series does not have. A row has the labels of its series, and those of its label set and
 * its link, as "trace_id" and "span_id" (hexadecimal), whose names, read as series have them, are
 * none of the series: so groups, filters and selectors compare the same value. A name that a
 * question has in a sender's letters finds the series' label, too. Rows
 * with the same values of the names that a question asks for are one group; group 0 has none of
 * them. What is found out is kept per label set of the series in hand, so the cost is a look into
 * an array per row. Threads: an object belongs to one thread. Private to the room.
 */
#ifndef STORE_QUERY_ROW_LABELS_H
#define STORE_QUERY_ROW_LABELS_H

#include "lib/profile/report/label_filter.h"

struct arena;
struct block;
struct block_granule;
struct row_labels;
struct selector_set;

/* Groups of rows that do not stay: those that the label filter leaves out, which are part of the
 * whole, and those that no selector finds. */
#define ROW_LABELS_LEFT_OUT UINT32_MAX
#define ROW_LABELS_NOT_FOUND (UINT32_MAX - 2)

static inline bool row_labels_stays(uint32_t group)
{
    return group != ROW_LABELS_LEFT_OUT && group != ROW_LABELS_NOT_FOUND;
}

enum { ROW_LABELS_NAMES_MAX = LABEL_RULES_MAX + 1 }; /* those of a filter and a group */

enum row_labels_kind {
    ROW_LABELS_EXACT, /* a number is a number */
    ROW_LABELS_ALL,   /* the same, of all labels; of ids of traces and spans only those named */
    ROW_LABELS_TEXTS  /* as people read them: "4096 bytes", several with commas between */
};

/* In arena; filter and selectors may be NULL, names are borrowed. */
struct row_labels *row_labels_create(struct arena *arena, const struct label_filter *filter,
                                     const struct selector_set *selectors, const struct span *names,
                                     size_t name_count, enum row_labels_kind kind);
void row_labels_destroy(struct row_labels *labels); /* what is not in the arena; NULL: a no-op */

/* The granule's rows are asked from now on. */
void row_labels_begin(struct row_labels *labels, const struct block *block,
                      const struct block_granule *granule);
/* Must each row of it be looked at? Else all are as those without labels of their own: set 0. That
 * is so where the labels that count are of series alone, in all of the block. */
bool row_labels_wants_rows(const struct row_labels *labels, const struct block_granule *granule);
/* The group of the rows with this label set, or ROW_LABELS_LEFT_OUT. */
uint32_t row_labels_group(struct row_labels *labels, uint32_t label_set);

/* Of a group: its labels, in order of the names; keys are the names. */
const struct label_words *row_labels_get(const struct row_labels *labels, uint32_t group,
                                         uint32_t *ret_count);
size_t row_labels_memory(const struct row_labels *labels);
/* Were all rows compared? Else the answer is none. Handles: as selector_matches_samples. */
enum err_code row_labels_check(const struct row_labels *labels, struct err *err) MUST_USE;

/* Why a name is no label of any row that stayed, and which there are, in the arena; NULL: each is.
 */
const char *row_labels_describe_absent(const struct row_labels *labels);

#endif

/*
 * deletion_set: decides which profiles of a block queries and merges leave out: those of deletions
 * and those that have expired (retention.h). The result is a list of time windows per series.
 *
 * A deletion concerns the profiles that were stored when the deletion was committed. Therefore the
 * catalogue lists for each block the deletions that may concern it (catalogue_place).
 *
 * Threads: one at a time, as selectors. Private to store/.
 */
#ifndef STORE_CATALOGUE_DELETION_SET_H
#define STORE_CATALOGUE_DELETION_SET_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct block_granule;
struct catalogue_deletion;
struct deletion_set;
struct dictionary;
struct match_budget;
struct retention;

/* Ids of the deletions that may concern a block. */
struct deletion_set_ids {
    const int64_t *ids;
    uint32_t count;
};

/* Profiles that begin at start_ns or later and before end_ns are left out. */
struct deletion_set_window {
    int64_t start_ns;
    int64_t end_ns;
};

/* The windows of one series of one block: ascending, disjoint and not adjacent. */
struct deletion_set_windows {
    struct deletion_set_window *windows;
    uint32_t count;
    bool has_totals; /* only totals are kept of hours that begin before totals_before_ns */
    int64_t totals_before_ns;
};

/* Reports whether the granule's hour has only totals, either in the block or by the retention
 * rules. Such a granule is deleted as a whole when any part of it is deleted. */
bool deletion_set_has_only_totals(const struct deletion_set_windows *windows,
                                  const struct block_granule *granule);

/* Creates a set in arena, with space for the windows of one series. The set keeps a pointer to
 * retention; NULL: nothing expires. Errors: ERR_INVALID (a selector). */
enum err_code deletion_set_create(struct arena *arena, const struct catalogue_deletion *deletions,
                                  uint32_t count, const struct retention *retention,
                                  struct deletion_set **ret_deleted, struct err *err) MUST_USE;

/* Makes deletion_set_find use the budget for the selectors of deletions; for those of rules see
 * retention_set_budget. The budget must live as long as the set. */
void deletion_set_set_budget(struct deletion_set *deleted, struct match_budget *budget);

/* Whether deletion_set_find may find a window in a block with these deletions whose profiles begin
 * at begin_ns or later. False: the caller need not call it. */
bool deletion_set_can_have(const struct deletion_set *deleted, const struct deletion_set_ids *ids,
                           int64_t begin_ns);

/* Finds the windows of one series; they are borrowed until the next call. Errors: what
 * selector_matches and match_budget_check return. */
enum err_code deletion_set_find(struct deletion_set *deleted, const struct deletion_set_ids *ids,
                                const struct dictionary *dictionary, uint32_t series,
                                struct deletion_set_windows *ret_windows, struct err *err) MUST_USE;

/* Report whether any time, or every time, with first_ns <= time <= last_ns is in a window. */
bool deletion_set_has_any(const struct deletion_set_windows *windows, int64_t first_ns,
                          int64_t last_ns);
bool deletion_set_has_all(const struct deletion_set_windows *windows, int64_t first_ns,
                          int64_t last_ns);

#endif

/*
 * deleted: profiles that are deleted, or older than their tenant keeps them, and still stand in
 * blocks: which of a block's series, and when.
 *
 * A deletion is of what was stored when it was committed, so the catalogue tells of each block
 * which ones it has to do with (catalogue_place). Questions and merges leave out what these are
 * about. Threads: as selectors, one at a time. Private to the room.
 */
#ifndef STORE_CATALOGUE_DELETION_SET_H
#define STORE_CATALOGUE_DELETION_SET_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct block_granule;
struct catalogue_deletion;
struct deletion_set;
struct dictionary;
struct retention;

/* Of a block: ids of deletions. */
struct deletion_set_ids {
    const int64_t *ids;
    uint32_t count;
};

/* Profiles that begin at start_ns and later, and before end_ns. */
struct deletion_set_window {
    int64_t start_ns;
    int64_t end_ns;
};

/* Of one series of one block: ascending, neither touching nor overlapping. */
struct deletion_set_windows {
    struct deletion_set_window *windows;
    uint32_t count;
    bool has_totals; /* of hours that begin before totals_before_ns totals alone are kept */
    int64_t totals_before_ns;
};

/* Is what the granule's hour has together all that is kept of it, or all that is to be told? Then
 * it is deleted as a whole, if any of it is. */
bool deletion_set_has_only_totals(const struct deletion_set_windows *windows,
                                  const struct block_granule *granule);

/* In arena, with room for the windows of one series. retention is kept; NULL: nothing is too old.
 * Handles: ERR_INVALID (a selector). */
enum err_code deletion_set_create(struct arena *arena, const struct catalogue_deletion *deletions,
                                  uint32_t count, const struct retention *retention,
                                  struct deletion_set **ret_deleted, struct err *err) MUST_USE;

/* Can deletion_set_find find any of what a block has that begins at begin_ns or later? */
bool deletion_set_can_have(const struct deletion_set *deleted, const struct deletion_set_ids *ids,
                           int64_t begin_ns);

/* Borrowed until the next call. Handles: what selector_matches does. */
enum err_code deletion_set_find(struct deletion_set *deleted, const struct deletion_set_ids *ids,
                                const struct dictionary *dictionary, uint32_t series,
                                struct deletion_set_windows *ret_windows, struct err *err) MUST_USE;

/* Is one of the moments, or all of them, deleted: first_ns <= moment <= last_ns? */
bool deletion_set_has_any(const struct deletion_set_windows *windows, int64_t first_ns,
                          int64_t last_ns);
bool deletion_set_has_all(const struct deletion_set_windows *windows, int64_t first_ns,
                          int64_t last_ns);

#endif

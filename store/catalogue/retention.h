/*
 * retention: how long a tenant keeps the profiles of a series: what the first of its rules that
 * finds it says, else the tenant's default.
 *
 * Questions read nothing that is older, from the moment on at which it is; merges leave it out; a
 * block is written anew once all of it is older than one of the rules says (compact). Of profiles
 * that are past a rule which keeps totals longer, what each hour has together is left: hours go
 * from the one state to the other as a whole, when their end is past. Threads: as selectors, one at
 * a time. Private to the room.
 */
#ifndef STORE_CATALOGUE_RETENTION_H
#define STORE_CATALOGUE_RETENTION_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct catalogue_rules;
struct dictionary;
struct retention;

/* Of a series. */
struct retention_times {
    int64_t keep_s;           /* 0: for ever */
    int64_t totals_s;         /* 0: no totals are kept longer */
    int64_t gone_before_ns;   /* profiles that begin earlier are gone; INT64_MIN: none */
    int64_t totals_before_ns; /* of hours that begin earlier totals alone are kept; likewise */
};

/* In arena; the rules' texts are not needed any more. Handles: ERR_INVALID (a selector). */
enum err_code retention_create(struct arena *arena, const struct catalogue_rules *rules,
                               struct retention **ret_retention, struct err *err) MUST_USE;

/* Profiles that begin then or later are kept whole, whatever rule is theirs; INT64_MIN: all are. */
int64_t retention_latest_cutoff(const struct retention *retention);

/* Handles: what selector_matches does. */
enum err_code retention_find(const struct retention *retention, const struct dictionary *dictionary,
                             uint32_t series, struct retention_times *ret_times,
                             struct err *err) MUST_USE;

/* When the next of these comes due on a block whose last profile begins at end_ns, of which
 * are_totals or all is kept; INT64_MAX: never. */
int64_t retention_next_due(const struct retention_times *times, bool are_totals, int64_t end_ns);

#endif

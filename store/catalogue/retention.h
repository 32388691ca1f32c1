/*
 * retention: the retention of the profiles of each series. The first of the tenant's rules that
 * matches a series applies, else the tenant's default.
 *
 * Queries skip a profile from the moment at which it expires; merges leave it out. A block is
 * rewritten once all of it is older than one of the rules allows (store/maintain/compact.h). A rule
 * may keep totals longer than profiles: an hour changes from profiles to totals as a whole, when
 * its end is older than the rule keeps profiles.
 *
 * Threads: one at a time, as selectors. Private to store/.
 */
#ifndef STORE_CATALOGUE_RETENTION_H
#define STORE_CATALOGUE_RETENTION_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct catalogue_rules;
struct dictionary;
struct match_budget;
struct retention;

/* The retention of one series. */
struct retention_times {
    int64_t keep_s;           /* 0: for ever */
    int64_t totals_s;         /* 0: totals are not kept longer */
    int64_t gone_before_ns;   /* profiles that begin earlier have expired; INT64_MIN: none */
    int64_t totals_before_ns; /* hours that begin earlier have only totals; INT64_MIN: none */
};

/* Creates the object in arena; the rules' texts are not needed afterwards. Errors: ERR_INVALID (a
 * selector). */
enum err_code retention_create(struct arena *arena, const struct catalogue_rules *rules,
                               struct retention **ret_retention, struct err *err) MUST_USE;

/* Makes retention_find use the budget, which must live as long as retention. */
void retention_set_budget(struct retention *retention, struct match_budget *budget);

/* Profiles that begin at this time or later are kept whole under every rule; INT64_MIN: all are. */
int64_t retention_latest_cutoff(const struct retention *retention);

/* Finds the rule of a series. Errors: what selector_matches and match_budget_check return. */
enum err_code retention_find(const struct retention *retention, const struct dictionary *dictionary,
                             uint32_t series, struct retention_times *ret_times,
                             struct err *err) MUST_USE;

/* Returns the time at which the next of these limits is due on a block whose last profile begins at
 * end_ns; INT64_MAX: never. are_totals: the block already contains only totals. */
int64_t retention_next_due(const struct retention_times *times, bool are_totals, int64_t end_ns);

#endif

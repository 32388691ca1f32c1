/*
 * retention: how long a tenant keeps the profiles of a series: what the first of its rules that
 * finds it says, else the tenant's default.
 *
 * Questions read nothing that is older, from the moment on at which it is; merges leave it out; a
 * block is written anew once all of it is older than one of the rules says (compact). Threads: as
 * selectors, one at a time. Private to the room.
 */
#ifndef STORE_RETENTION_H
#define STORE_RETENTION_H

#include "lib/base/err.h"

#include <stdint.h>

struct arena;
struct catalogue_rules;
struct dictionary;
struct retention;

/* In arena; the rules' texts are not needed any more. Handles: ERR_INVALID (a selector). */
enum err_code retention_create(struct arena *arena, const struct catalogue_rules *rules,
                               struct retention **ret_retention, struct err *err) MUST_USE;

/* Profiles that begin then or later are kept, whatever rule is theirs; INT64_MIN: all are. */
int64_t retention_latest_cutoff(const struct retention *retention);
/* Of profiles that are kept for that long (0: for ever) those that begin earlier are gone. */
int64_t retention_cutoff(const struct retention *retention, int64_t keep_s);

/* How long the series' profiles are kept; 0: for ever. Handles: what selector_matches does. */
enum err_code retention_find(const struct retention *retention, const struct dictionary *dictionary,
                             uint32_t series, int64_t *ret_keep_s, struct err *err) MUST_USE;

#endif

/*
 * share_charge: charges the texts in the rows of a share to its tenant.
 *
 * The column row_bytes counts the bytes of title, description, file name, labels and both summaries
 * of a share, and those of its comments and short links, whoever wrote them. They count towards the
 * quota as raw_bytes do: share_create charges both, a change of a text charges or gives back the
 * difference here, and share_jobs gives everything back when the share becomes a tombstone.
 * Threads: any.
 */
#ifndef API_SHARE_SHARE_CHARGE_H
#define API_SHARE_SHARE_CHARGE_H

#include "lib/base/err_code.h"

#include <stdint.h>

struct pg_connection;
struct request;
struct share;

/* Locks the row of a share for share_charge_change, in the caller's transaction, before rows that
 * belong to the share: its deletion locks them in this order. Errors: ERR_GONE. */
enum err_code share_charge_lock(struct request *request, struct pg_connection *connection,
                                const struct share *share, struct err *err) MUST_USE;

/*
 * Adds delta to row_bytes of a share and to the stored bytes of its tenant, in the caller's
 * transaction, which has locked the share's row while it was live. The statements are sent with the
 * next one or with the commit, whose code the caller passes to quota_refuse. Errors:
 * ERR_RATE_LIMITED.
 */
enum err_code share_charge_change(struct request *request, struct pg_connection *connection,
                                  const struct share *share, int64_t delta,
                                  struct err *err) MUST_USE;

#endif

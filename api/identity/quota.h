/*
 * quota: limits a tenant's stored bytes, uploads per minute and size of an upload. Stored bytes are
 * the bytes of objects and of texts in the rows of shares.
 *
 * The limits are columns of the table tenant, set by the operator. Stored bytes are counted in
 * tenant_usage, spread over several rows, so that a tenant's parallel uploads do not wait for each
 * other's commit while the tenant is far from the limit. The statement that charges bytes also
 * checks the limit, so the committed bytes never exceed it. The bytes of objects that are waiting
 * for their deletion (object_trash) count, too, so a tenant cannot fill the disk by replacing or
 * deleting data while a backup holds deletions up. Threads: any.
 */
#ifndef API_IDENTITY_QUOTA_H
#define API_IDENTITY_QUOTA_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct pg_connection;
struct arena;
struct request;
struct server;

struct quota {
    int64_t max_bytes_stored;
    bool has_own_max_bytes; /* set for this tenant, not by the server's settings */
    int64_t bytes_stored;
    int64_t trash_bytes; /* deleted and replaced objects that are still stored; they count, too */
    int64_t row_bytes;   /* size of the rows of shares in the database; 0 without a bucket */
    int64_t max_upload_bytes;
    int64_t uploads_per_minute;
    int64_t profile_retention_s; /* 0: for ever */
};

/* Reads a tenant's quotas and usage. Where the operator set no value, the server's settings apply.
 */
enum err_code quota_read(const struct server *server, struct pg_connection *connection,
                         int64_t tenant_id, struct arena *arena, struct quota *ret_quota,
                         struct err *err) MUST_USE;

/*
 * Call it before an upload of that size is accepted or stored. Counts one upload, for the tenant
 * and for anonymous clients also for the address, whose bytes of a day are counted, too. An upload
 * in parts calls it once, when it is announced with its size. Takes and returns a connection
 * itself, so the caller must hold none. Errors: ERR_TOO_LARGE (413: more than max_upload_bytes, or
 * than may be stored in total), ERR_QUOTA (429: the tenant's storage is full), ERR_RATE_LIMITED
 * (429).
 */
enum err_code quota_take_upload(struct request *request, uint64_t bytes, struct err *err) MUST_USE;
/* Checks only the limits on bytes of quota_take_upload, and counts the bytes: for an upload that
 * was counted before its size was known. Errors: ERR_TOO_LARGE, ERR_QUOTA, ERR_RATE_LIMITED. */
enum err_code quota_check_size(struct request *request, uint64_t bytes, struct err *err) MUST_USE;

/* Counts one upload. Call it before the parts of an upload are joined: a client can repeat that,
 * and each time all bytes are written. The size was checked when the upload was announced. Errors:
 * ERR_RATE_LIMITED (429). */
enum err_code quota_take_completion(struct request *request, struct err *err) MUST_USE;

/*
 * Adds bytes > 0 to the stored bytes of the request's tenant, in the caller's transaction. The
 * statement is sent with the next one or with the commit (pg_queue), which therefore returns
 * ERR_QUOTA if the quota is too small; the caller passes that code to quota_refuse. Commit soon:
 * other uploads of the tenant wait for it when they come near the limit.
 */
enum err_code quota_charge(struct request *request, struct pg_connection *connection, int64_t bytes,
                           struct err *err) MUST_USE;

/* As quota_charge for a tenant without a request: for background work, as perfolio_server. */
enum err_code quota_charge_tenant(const struct server *server, struct pg_connection *connection,
                                  int64_t tenant_id, int64_t bytes, struct arena *arena,
                                  struct err *err) MUST_USE;

/*
 * As quota_charge_tenant for an object that replaces another one, whose replaced_bytes are given
 * back. The caller has put the old object into object_trash, where it counts until it is deleted;
 * charging the difference would not check it. A transaction that calls quota_give_back first
 * instead can deadlock: it then holds the row that quota_charge of another transaction waits for.
 */
enum err_code quota_replace(const struct server *server, struct pg_connection *connection,
                            int64_t tenant_id, int64_t replaced_bytes, int64_t bytes,
                            struct arena *arena, struct err *err) MUST_USE;

/* Called after the transaction that stores an upload: counts its texts in the anonymous bytes of a
 * day. Their size is known only after the upload itself was allowed, so they are not refused, but
 * delay the next upload. */
void quota_count_row_bytes(struct request *request, uint64_t bytes);

/*
 * Charges or gives back the difference that a request makes to texts in rows of a tenant, in the
 * caller's transaction, as quota_charge does. The tenant may be another one than the principal's.
 * The growth of anonymous texts counts in the bytes of a day of the address; the caller passes the
 * result of the transaction to quota_refuse. Errors: ERR_RATE_LIMITED (429).
 */
enum err_code quota_change(struct request *request, struct pg_connection *connection,
                           int64_t tenant_id, int64_t delta, struct err *err) MUST_USE;

/* Called after the handler of any request. Gives back the bytes of a day that quota_change took for
 * a transaction that was not committed. */
void quota_return_uncommitted(struct request *request);

/* Called in the transaction that announces an anonymous upload of that many bytes. Limits the bytes
 * that one address has announced and not yet sent, because they reduce the space for all anonymous
 * clients. The caller stores *ret_subscriber (rate_limiter_subscriber) in the row of the upload.
 * Parallel announcements are counted correctly. Errors: ERR_QUOTA (429). */
enum err_code quota_check_announcement(struct request *request, struct pg_connection *connection,
                                       int64_t bytes, const char **ret_subscriber,
                                       struct err *err) MUST_USE;

/* Subtracts the bytes of deleted data from the stored bytes of a tenant. The statement is sent with
 * the next one or the commit (pg_queue). Works with both database roles. Not before a charge in the
 * same transaction: see quota_replace. */
enum err_code quota_give_back(struct pg_connection *connection, int64_t tenant_id, int64_t bytes,
                              struct arena *arena, struct err *err) MUST_USE;

/* Call it once with the result of a transaction in which bytes were charged to the tenant. After a
 * success, what quota_change took is not given back. Replaces the text of ERR_QUOTA by one that
 * states what the user can do. Returns code. */
enum err_code quota_refuse(struct request *request, int64_t tenant_id, enum err_code code,
                           struct err *err) MUST_USE;

#endif

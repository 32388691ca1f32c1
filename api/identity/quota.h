/*
 * quota: what a tenant may store and send: bytes stored, uploads per minute, the largest upload.
 *
 * The figures are columns of the table tenant, set by the operator. Stored bytes are counted in
 * tenant_usage, spread over several rows, so that a tenant's parallel uploads do not wait for each
 * other's commit while there is plenty of room. The charge itself is the check: what is committed
 * never passes the limit. Threads: any.
 */
#ifndef API_IDENTITY_QUOTA_H
#define API_IDENTITY_QUOTA_H

#include "lib/base/err.h"

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
    int64_t max_upload_bytes;
    int64_t uploads_per_minute;
    int64_t profile_retention_s; /* 0: for ever */
};

/* The quotas and the use of a tenant; where the operator set none, the server's settings count. */
enum err_code quota_read(const struct server *server, struct pg_connection *connection,
                         int64_t tenant_id, struct arena *arena, struct quota *ret_quota,
                         struct err *err) MUST_USE;

/*
 * Asked before an upload of so many bytes is taken or stored; counts one upload, of the tenant and
 * for anonymous ones also of the address. An upload in parts asks once, when it is announced with
 * its size. Takes and gives back a connection itself, so the caller holds none. Handles:
 * ERR_TOO_LARGE (413: past max_upload_bytes, or all that may be stored), ERR_QUOTA (429: the
 * tenant's storage is full), ERR_RATE_LIMITED (429).
 */
enum err_code quota_take_upload(struct request *request, uint64_t bytes, struct err *err) MUST_USE;

/*
 * Asked before an upload's parts are joined, which may be tried again and again and writes all of
 * its bytes each time; counts as one upload. Its size was asked for when it was announced. Handles:
 * ERR_RATE_LIMITED (429).
 */
enum err_code quota_take_completion(struct request *request, struct err *err) MUST_USE;

/*
 * Adds bytes > 0 to what the request's tenant stores, in the caller's transaction, unless its quota
 * is too small for that: then ERR_QUOTA comes from the transaction's next statement or its commit,
 * with which this travels (pg_queue), and goes through quota_refuse. Others who come near the limit
 * wait for the commit, so it should follow soon.
 */
enum err_code quota_charge(struct request *request, struct pg_connection *connection, int64_t bytes,
                           struct err *err) MUST_USE;

/* The same for a tenant without a request: background work, as perfolio_server. */
enum err_code quota_charge_tenant(const struct server *server, struct pg_connection *connection,
                                  int64_t tenant_id, int64_t bytes, struct arena *arena,
                                  struct err *err) MUST_USE;

/*
 * In the transaction that announces an anonymous upload of so many bytes: what one address
 * announces and does not send is bounded, since it takes room from all. The row keeps
 * *ret_subscriber, whom the address counts for. Of parallel announcements each sees the others.
 * Handles: ERR_QUOTA (429).
 */
enum err_code quota_check_announcement(struct request *request, struct pg_connection *connection,
                                       int64_t bytes, const char **ret_subscriber,
                                       struct err *err) MUST_USE;

/* Gives bytes back, of what was deleted; travels as quota_charge. Works under both database roles.
 */
enum err_code quota_give_back(struct pg_connection *connection, int64_t tenant_id, int64_t bytes,
                              struct arena *arena, struct err *err) MUST_USE;

/* To be called with the outcome of a transaction that has charged: makes the text of ERR_QUOTA one
 * for people, with what to do. Returns code. */
enum err_code quota_refuse(const struct request *request, enum err_code code,
                           struct err *err) MUST_USE;

#endif

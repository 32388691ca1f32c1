/*
 * quota: what a tenant may store and send: bytes stored, uploads per minute, the largest upload.
 *
 * The limits are columns of the table tenant, set by the operator. Stored bytes are counted in
 * tenant_usage, spread over several rows, so that a tenant's parallel uploads do not wait for each
 * other's commit while there is plenty of room. The charge is the check: committed bytes never
 * exceed the limit. Threads: any.
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
 * and for anonymous clients also for the address. An upload in parts calls it once, when it is
 * announced with its size. Takes and returns a connection itself, so the caller must hold none.
 * Handles: ERR_TOO_LARGE (413: more than max_upload_bytes, or than may be stored in total),
 * ERR_QUOTA (429: the tenant's storage is full), ERR_RATE_LIMITED (429).
 */
enum err_code quota_take_upload(struct request *request, uint64_t bytes, struct err *err) MUST_USE;
/* The limits on bytes of quota_take_upload alone: for an upload whose rate was taken before its
 * size was known. Handles: ERR_TOO_LARGE, ERR_QUOTA. */
enum err_code quota_check_size(struct request *request, uint64_t bytes, struct err *err) MUST_USE;

/* Call it before an upload's parts are joined, which can be retried and writes all of its bytes
 * each time; counts as one upload. Its size was checked when it was announced. Handles:
 * ERR_RATE_LIMITED (429). */
enum err_code quota_take_completion(struct request *request, struct err *err) MUST_USE;

/*
 * Adds bytes > 0 to the stored bytes of the request's tenant, in the caller's transaction. If the
 * quota is too small, ERR_QUOTA comes from the transaction's next statement or its commit, with
 * which this is sent (pg_queue), and goes through quota_refuse. Other uploads that come near the
 * limit wait for the commit, so it should follow soon.
 */
enum err_code quota_charge(struct request *request, struct pg_connection *connection, int64_t bytes,
                           struct err *err) MUST_USE;

/* As quota_charge for a tenant without a request: for background work, as perfolio_server. */
enum err_code quota_charge_tenant(const struct server *server, struct pg_connection *connection,
                                  int64_t tenant_id, int64_t bytes, struct arena *arena,
                                  struct err *err) MUST_USE;

/* In the transaction that announces an anonymous upload of so many bytes: limits what one address
 * announces and does not send, since it takes room from all. The row stores *ret_subscriber, the
 * subscriber of the address. Parallel announcements see each other. Handles: ERR_QUOTA (429). */
enum err_code quota_check_announcement(struct request *request, struct pg_connection *connection,
                                       int64_t bytes, const char **ret_subscriber,
                                       struct err *err) MUST_USE;

/* Returns the bytes of deleted data; sent as quota_charge is. Works with both database roles. */
enum err_code quota_give_back(struct pg_connection *connection, int64_t tenant_id, int64_t bytes,
                              struct arena *arena, struct err *err) MUST_USE;

/* Call it with the result of a transaction that has charged: replaces the text of ERR_QUOTA by one
 * for people, with what to do. Returns code. */
enum err_code quota_refuse(const struct request *request, enum err_code code,
                           struct err *err) MUST_USE;

#endif

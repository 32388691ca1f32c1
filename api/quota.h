/*
 * quota: what a tenant may store and send: bytes stored, uploads per minute, the largest upload.
 *
 * The figures are columns of the table tenant, set by the operator. Stored bytes are counted in
 * tenant_usage, spread over several rows, so that a tenant's parallel uploads do not wait for each
 * other's commit. Concurrent uploads may pass the limit by what is in flight. Threads: any.
 */
#ifndef API_QUOTA_H
#define API_QUOTA_H

#include "lib/base/err.h"

#include <stdint.h>

struct pg_connection;
struct arena;
struct request;
struct server;

struct quota {
    int64_t max_bytes_stored;
    int64_t bytes_stored;
    int64_t max_upload_bytes;
    int64_t uploads_per_minute;
};

/* The quotas and the use of a tenant; where the operator set none, the server's settings count. */
enum err_code quota_read(const struct server *server, struct pg_connection *connection,
                         int64_t tenant_id, struct arena *arena, struct quota *ret_quota,
                         struct err *err) MUST_USE;

/*
 * Asked before an upload of so many bytes is taken or stored; counts one upload, of the tenant and
 * for anonymous ones also of the address. An upload in parts asks once, when it is announced with
 * its size. Takes and gives back a connection itself, so the caller holds none. Handles:
 * ERR_TOO_LARGE (413: past max_upload_bytes), ERR_QUOTA (429: the tenant's storage is full),
 * ERR_RATE_LIMITED (429).
 */
enum err_code quota_take_upload(struct request *request, uint64_t bytes, struct err *err) MUST_USE;

/*
 * Asked before an upload's parts are joined, which may be tried again and again and writes all of
 * its bytes each time; counts as one upload. Its size was asked for when it was announced. Handles:
 * ERR_RATE_LIMITED (429).
 */
enum err_code quota_take_completion(struct request *request, struct err *err) MUST_USE;

/*
 * Adds to the bytes that the tenant stores, in the caller's transaction; delta is negative for what
 * was deleted. Works under both database roles. Checks no limit: quota_take_upload did. Travels
 * with the transaction's next statement or its commit (pg_queue).
 */
enum err_code quota_charge_bytes(struct pg_connection *connection, int64_t tenant_id, int64_t delta,
                                 struct arena *arena, struct err *err) MUST_USE;

#endif

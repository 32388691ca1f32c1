/*
 * tenant: the own tenant and its audit log: /api/v1/tenant, /api/v1/audit; and the order of locks
 * that prevents deadlocks with a tenant's deletion.
 *
 * A deletion of a tenant locks its row, then everything that it has, in an order that the database
 * chooses. A transaction that locked something of a tenant and then its row, as each foreign key
 * and each audit line does, would deadlock with it. So every transaction locks the tenant's row
 * before anything else, in a mode that excludes deletion only (FOR KEY SHARE):
 *   requests           tenant_begin, or FOR KEY SHARE or more where no tenant is given
 *   background work    the same with SKIP LOCKED, since it can leave out a tenant that is being
 *                      deleted; or it locks its rows with SKIP LOCKED and so never waits
 * A single statement outside of a transaction needs no such lock if it locks one row only, or if it
 * inserts one row, because its foreign key then locks the tenant's row.
 */
#ifndef API_IDENTITY_TENANT_H
#define API_IDENTITY_TENANT_H

#include "api/http/request.h"

enum { TENANT_MAX_NAME_BYTES = 100 };

struct arena;
struct json_body;
struct pg_connection;

/* Begins a transaction for a tenant (pg_begin) and locks the tenant's row (FOR KEY SHARE). The
 * locking statement is sent with the next one (pg_queue), until which arena must live. Errors:
 * those of pg_begin and pg_queue. */
enum err_code tenant_begin(struct pg_connection *connection, int64_t tenant_id, struct arena *arena,
                           struct err *err) MUST_USE;

/* Reads the field "sample_labels" of the body. *ret_labels is the list in its stored form, in
 * arena; unchanged if the field is absent or null, so that the server's setting applies. Errors:
 * ERR_INVALID, ERR_TOO_LARGE. */
enum err_code tenant_read_labels(const struct json_body *body, struct arena *arena,
                                 const char **ret_labels, struct err *err) MUST_USE;

enum err_code tenant_get(struct request *request, struct response *response, struct err *err);
enum err_code tenant_patch(struct request *request, struct response *response, struct err *err);
enum err_code tenant_get_audit(struct request *request, struct response *response, struct err *err);

#endif

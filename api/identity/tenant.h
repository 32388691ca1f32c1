/*
 * tenant: the own tenant and its audit log: /api/v1/tenant, /api/v1/audit; and the order of locks
 * that prevents deadlocks with a tenant's deletion.
 *
 * A deletion of a tenant locks its row, then everything that it has, in an order that the database
 * chooses. A transaction that locked something of a tenant and then its row, as each foreign key
 * and each audit line does, would deadlock with it. So every transaction locks the tenant's row
 * before anything else, in a mode that excludes deletion only (FOR KEY SHARE):
 *   requests           tenant_begin, or FOR KEY SHARE or more where no tenant is given
 *   background work    the same with SKIP LOCKED, since what a deletion has it need not do; or it
 *                      locks its rows with SKIP LOCKED and so never waits
 * A statement of its own that locks one row, or inserts one and thereby its tenant first, needs
 * nothing.
 */
#ifndef API_IDENTITY_TENANT_H
#define API_IDENTITY_TENANT_H

#include "api/http/request.h"

enum { TENANT_MAX_NAME_BYTES = 100 };

struct arena;
struct json_body;
struct pg_connection;

/* pg_begin for a tenant, and locks its row; arena must live until the next statement. Handles: what
 * pg_begin and pg_queue do. */
enum err_code tenant_begin(struct pg_connection *connection, int64_t tenant_id, struct arena *arena,
                           struct err *err) MUST_USE;

/* The body's "sample_labels" in their stored form, in arena; *ret_labels is unchanged if the body
 * has none, or null: the server's setting applies. Handles: ERR_INVALID, ERR_TOO_LARGE. */
enum err_code tenant_read_labels(const struct json_body *body, struct arena *arena,
                                 const char **ret_labels, struct err *err) MUST_USE;

enum err_code tenant_get(struct request *request, struct response *response, struct err *err);
enum err_code tenant_patch(struct request *request, struct response *response, struct err *err);
enum err_code tenant_get_audit(struct request *request, struct response *response, struct err *err);

#endif

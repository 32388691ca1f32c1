/*
 * tenant: the own tenant and its audit log: /api/v1/tenant, /api/v1/audit; and how transactions
 * meet a tenant's deletion.
 *
 * Whoever deletes a tenant locks its row, then all that it has, in an order of the database's own.
 * Whoever locks something of a tenant and then its row, as each foreign key and each audit line
 * does, would meet that half way: a deadlock. So every transaction locks the tenant's row before
 * anything else, in a mode that excludes deletion only (FOR KEY SHARE):
 *   requests           tenant_begin, or with FOR KEY SHARE or more where no tenant is given
 *   background work    the same with SKIP LOCKED, since what a deletion has it need not do; or it
 *                      locks the rows with SKIP LOCKED and so waits for nobody
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

/* pg_begin for a tenant, whose row is locked first; arena must live until the next statement.
 * Handles: what pg_begin and pg_queue do. */
enum err_code tenant_begin(struct pg_connection *connection, int64_t tenant_id, struct arena *arena,
                           struct err *err) MUST_USE;

/* The body's "sample_labels" as they are kept, in arena; *ret_labels is untouched where it has
 * none, or null: those of the server's setting. Handles: ERR_INVALID, ERR_TOO_LARGE. */
enum err_code tenant_read_labels(const struct json_body *body, struct arena *arena,
                                 const char **ret_labels, struct err *err) MUST_USE;

enum err_code tenant_get(struct request *request, struct response *response, struct err *err);
enum err_code tenant_patch(struct request *request, struct response *response, struct err *err);
enum err_code tenant_get_audit(struct request *request, struct response *response, struct err *err);

#endif

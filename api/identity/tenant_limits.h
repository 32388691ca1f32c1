/*
 * tenant_limits: the limits of a tenant for ingest, queries and retention, by name.
 *
 * A limit is a setting of the server (api/core/settings.h) unless the operator set it for the
 * tenant (the column tenant.limits; PATCH /api/v1/admin/tenants/{id}). They are read from the
 * database once in TENANT_LIMITS_S for each active tenant, and once a second for a tenant with much
 * replaced data or many blocks. The request that finds them too old reads them again; meanwhile
 * other requests use the old ones, which stay in use if that fails. Threads: any.
 */
#ifndef API_IDENTITY_TENANT_LIMITS_H
#define API_IDENTITY_TENANT_LIMITS_H

#include "api/core/sample_labels.h"
#include "api/core/tenant_limit.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct json_response;
struct arena;
struct json_body;
struct pg_connection;
struct pg_pool;
struct request;
struct settings;
struct tenant_limits_memory;

enum { TENANT_LIMITS_S = 10, TENANT_LIMITS_TEXT_BYTES = 160 };

struct tenant_limits {
    int64_t values[TENANT_LIMIT_COUNT];
    bool is_own[TENANT_LIMIT_COUNT]; /* set for the tenant */
    int64_t stored_profile_bytes;    /* bytes of the tenant's profiles in the store */
    int64_t replaced_profile_bytes;  /* size of replaced blocks, not yet deleted */
    int64_t block_count;             /* the tenant's blocks in the store, with replaced ones */
    char sample_labels[SAMPLE_LABELS_BYTES]; /* api/core/sample_labels.h */
};

/* sample_labels: the list for tenants without one of their own, in the form of sample_labels_read.
 */
struct tenant_limits_memory *tenant_limits_create(const char *sample_labels);
void tenant_limits_destroy(struct tenant_limits_memory *memory); /* NULL is a no-op */

/* The limits of the request's tenant. May take a connection, so the caller must hold none. Errors,
 * only if no limits were read before: ERR_DATABASE, ERR_BUSY. */
enum err_code tenant_limits_get(const struct request *request, struct tenant_limits *ret_limits,
                                struct err *err) MUST_USE;
const char *tenant_limits_default_labels(const struct tenant_limits_memory *memory);
/* Call it when this process has changed the limits of a tenant: the next request reads them again.
 */
void tenant_limits_forget(struct tenant_limits_memory *memory, int64_t tenant_id);

/* "samples_per_second is 1000, by the setting tenant-samples-per-second": for refusals. */
void tenant_limits_describe(const struct tenant_limits *limits, enum tenant_limit limit,
                            char ret_text[TENANT_LIMITS_TEXT_BYTES]);

/* ---- for operators ---- */

/* Reads the limits in the body as a JSON object in the column's form: null removes one, so that the
 * setting applies. Errors: ERR_INVALID. */
enum err_code tenant_limits_read_input(const struct json_body *body, struct arena *arena,
                                       const char **ret_json, struct err *err) MUST_USE;
/* Writes one member for each limit: the value that json, the text of the column tenant.limits,
 * contains, or null. */
void tenant_limits_write_own(struct json_response *writer, const char *json);
/* As tenant_limits_write_own, with the value of the setting instead of null. */
void tenant_limits_write(struct json_response *writer, const struct settings *settings,
                         const char *json);
/* Returns the names in more, followed by the names of all limits: the fields of a request's body.
 * Both lists are NULL-terminated; the result is in arena. */
const char *const *tenant_limits_names(struct arena *arena, const char *const *more);

#endif

/*
 * tenant_limits: what a tenant may send to the store, ask of it and keep there, by name.
 *
 * A limit is a setting of the server (api/core/settings.h) unless the operator set it for the
 * tenant (the column tenant.limits; PATCH /api/v1/admin/tenants/{id}). They are read from the
 * database once in TENANT_LIMITS_S for each tenant that sends or asks, and never while a request
 * waits that could go by what was read before. Threads: any.
 */
#ifndef API_IDENTITY_TENANT_LIMITS_H
#define API_IDENTITY_TENANT_LIMITS_H

#include "api/core/sample_labels.h"
#include "api/core/tenant_limit.h"
#include "lib/base/err.h"

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
    bool is_own[TENANT_LIMIT_COUNT];         /* set for the tenant */
    char sample_labels[SAMPLE_LABELS_BYTES]; /* api/core/sample_labels.h */
};

/* sample_labels: of tenants that say nothing of it, as sample_labels_read has it. */
struct tenant_limits_memory *tenant_limits_create(const char *sample_labels);
void tenant_limits_destroy(struct tenant_limits_memory *memory); /* NULL is a no-op */

/* Of the tenant that sent the request. Handles: ERR_DATABASE, ERR_BUSY (nothing is known yet). */
enum err_code tenant_limits_get(const struct request *request, struct tenant_limits *ret_limits,
                                struct err *err) MUST_USE;
const char *tenant_limits_default_labels(const struct tenant_limits_memory *memory);
/* They were changed, by this process. */
void tenant_limits_forget(struct tenant_limits_memory *memory, int64_t tenant_id);

/* "samples_per_second is 1000, by the setting tenant-samples-per-second": for refusals. */
void tenant_limits_tell(const struct tenant_limits *limits, enum tenant_limit limit,
                        char ret_text[TENANT_LIMITS_TEXT_BYTES]);

/* ---- for operators ---- */

/* Reads those that the body has as a JSON object of the column's form: null gives one back to the
 * settings. Handles: ERR_INVALID. */
enum err_code tenant_limits_read_wish(const struct json_body *body, struct arena *arena,
                                      const char **ret_json, struct err *err) MUST_USE;
/* Members of an object: those set in the column's text, null where none is. */
void tenant_limits_write_own(struct json_response *answer, const char *json);
/* Those that count. */
void tenant_limits_write(struct json_response *answer, const struct settings *settings,
                         const char *json);
/* The names that a body may have, after those of more; NULL-terminated, in arena. */
const char *const *tenant_limits_names(struct arena *arena, const char *const *more);

#endif

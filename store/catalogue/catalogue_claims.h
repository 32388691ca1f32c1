/*
 * catalogue_claims: what claims have in common. Private to store/catalogue*.c.
 */
#ifndef STORE_CATALOGUE_CATALOGUE_CLAIMS_H
#define STORE_CATALOGUE_CATALOGUE_CLAIMS_H

#include "lib/base/err.h"

#include <stdint.h>

struct arena;
struct pg_connection;
struct pg_result;

/* Ends writers and gives back what they had claimed; what another has locked keeps its lease. */
#define CATALOGUE_END_WRITERS(which)                                                               \
    "WITH ended AS ("                                                                              \
    "  UPDATE store_writer SET ended_at = now() WHERE ended_at IS NULL AND " which                 \
    "  RETURNING id), "                                                                            \
    "blocks AS ("                                                                                  \
    "  UPDATE block SET leased_by = NULL, leased_until = NULL WHERE id IN ("                       \
    "    SELECT b.id FROM block b JOIN ended e ON b.leased_by = e.id ORDER BY b.id"                \
    "    FOR UPDATE OF b SKIP LOCKED)) "                                                           \
    "UPDATE segment_tenant SET leased_by = NULL, leased_until = NULL"                              \
    "  WHERE (segment_id, tenant_id) IN ("                                                         \
    "    SELECT t.segment_id, t.tenant_id FROM segment_tenant t JOIN ended e"                      \
    "    ON t.leased_by = e.id ORDER BY t.segment_id, t.tenant_id FOR UPDATE OF t SKIP LOCKED)"

/* ERR_CONFLICT when not all that was claimed is still this writer's. */
enum err_code catalogue_check_count(int64_t found, int64_t wanted, struct err *err) MUST_USE;

/* A block of which a rule of retention is due, or that rules have not been told of: columns as of
 * other claims, then the key of the tenant's rules. */
enum err_code catalogue_claim_expiry(struct pg_connection *connection, struct arena *arena,
                                     int64_t writer_id, int64_t retention_s,
                                     struct pg_result **ret_result, struct err *err) MUST_USE;

#endif

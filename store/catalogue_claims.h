/*
 * catalogue_claims: what claims have in common. Private to store/catalogue*.c.
 */
#ifndef STORE_CATALOGUE_CLAIMS_H
#define STORE_CATALOGUE_CLAIMS_H

#include "lib/base/err.h"

#include <stdint.h>

struct arena;
struct pg_connection;
struct pg_result;

/* ERR_CONFLICT when not all that was claimed is still this writer's. */
enum err_code catalogue_check_count(int64_t found, int64_t wanted, struct err *err) MUST_USE;

/* A block of which a rule of retention is due, or that rules have not been told of: columns as of
 * other claims, then the key of the tenant's rules. */
enum err_code catalogue_claim_expiry(struct pg_connection *connection, struct arena *arena,
                                     int64_t writer_id, int64_t retention_s,
                                     struct pg_result **ret_result, struct err *err) MUST_USE;

#endif

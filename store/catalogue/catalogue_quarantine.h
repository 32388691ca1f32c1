/*
 * catalogue_marks: parts that no merge takes. Private to store/catalogue*.c.
 */
#ifndef STORE_CATALOGUE_CATALOGUE_QUARANTINE_H
#define STORE_CATALOGUE_CATALOGUE_QUARANTINE_H

#include "store/catalogue/catalogue.h"

struct arena;
struct pg_connection;
struct pg_result;

/* The ids of a claim as an array. */
const char *catalogue_id_list(struct arena *arena, const struct catalogue_claim *claim);

/* Claims one that is due to be looked at again: rows as of all claims, and the mark. */
enum err_code catalogue_claim_marked(struct pg_connection *connection, struct arena *arena,
                                     int64_t writer_id, struct catalogue_mark *ret_mark,
                                     struct pg_result **ret_result, struct err *err) MUST_USE;
/* In the transaction that swaps the part. */
enum err_code catalogue_insert_remainder(struct pg_connection *connection, struct arena *arena,
                                         int64_t writer_id, const struct catalogue_claim *claim,
                                         const struct catalogue_remainder *remainder,
                                         struct err *err) MUST_USE;

#endif

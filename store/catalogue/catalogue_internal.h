/*
 * catalogue_internal: the functions that the files store/catalogue/catalogue*.c share:
 * catalogue_internal.c has those on which all of them build. No other file includes it.
 *
 * Threads: as catalogue.h. Every function takes the caller's connection; results live in the arena.
 */
#ifndef STORE_CATALOGUE_CATALOGUE_INTERNAL_H
#define STORE_CATALOGUE_CATALOGUE_INTERNAL_H

#include "store/catalogue/catalogue.h"

struct arena;
struct buf;
struct pg_connection;
struct pg_result;

/* ---- arrays in PostgreSQL's text form: "{1,2}" ---- */

void catalogue_append_number(struct buf *list, int64_t number);
/* The whole array, in arena; "{}" when nothing was appended. */
const char *catalogue_end_list(struct arena *arena, struct buf *list);
/* The ids of a claim's segments or blocks as an array, in arena. */
const char *catalogue_id_list(struct arena *arena, const struct catalogue_claim *claim);
/* Reads an array of numbers. */
void catalogue_read_ids(struct arena *arena, const struct pg_result *result, int row, int column,
                        struct deletion_set_ids *ret_ids);

/* ---- rows as places ---- */

/* The columns that describe the places of a row of block, or of segment_tenant t and its segment s:
 * object key, first byte, lengths (an array with one length per place; NULL: the whole object is
 * one place), level, ids of deletions, checksums of footers. */
#define CATALOGUE_BLOCK_PLACE                                                                      \
    "b.object_key, 0::bigint, NULL::text, b.level::bigint, b.deletions::text,"                     \
    " '{' || b.footer_crc || '}'"
#define CATALOGUE_SEGMENT_PLACE                                                                    \
    "s.object_key, t.first_byte, t.lengths::text, 0::bigint, t.deletions::text,"                   \
    " t.footer_crcs::text"
enum { CATALOGUE_PLACE_COLUMNS = 6 };

/* Reads the places of all rows, in arena; `first` is the first of those columns. The places of row
 * i are ret_starts[i] <= place < ret_starts[i + 1]. */
struct catalogue_place *catalogue_read_places(struct arena *arena, const struct pg_result *result,
                                              int first, const uint32_t **ret_starts);

/* ---- claims ---- */

/* SQL that ends the writers for which `which` is true and releases their claims. Rows that another
 * transaction has locked are skipped and keep their lease until it expires. */
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

/* ERR_CONFLICT if this writer no longer holds all rows of its claim. */
enum err_code catalogue_check_count(int64_t found, int64_t wanted, struct err *err) MUST_USE;

/* Renews the heartbeat of a writer and locks its row. ERR_CONFLICT when the writer was ended. */
enum err_code catalogue_renew_writer(struct pg_connection *connection, struct arena *arena,
                                     int64_t writer_id, struct err *err) MUST_USE;

/* Claims a block on which a retention rule is due, or which has not been checked against the
 * tenant's current rules. The result has a row or none: id, tenant, the columns of the place, and
 * the key of the tenant's rules. */
enum err_code catalogue_claim_expiry(struct pg_connection *connection, struct arena *arena,
                                     int64_t writer_id, int64_t retention_s,
                                     struct pg_result **ret_result, struct err *err) MUST_USE;

/* Claims a marked part whose next retry is due. The result has a row or none: id, tenant, and the
 * columns of the place; *ret_mark is set if there is a row. */
enum err_code catalogue_claim_marked(struct pg_connection *connection, struct arena *arena,
                                     int64_t writer_id, struct catalogue_mark *ret_mark,
                                     struct pg_result **ret_result, struct err *err) MUST_USE;

/* Inserts the remainder of a claimed part, in the transaction that swaps the part. */
enum err_code catalogue_insert_remainder(struct pg_connection *connection, struct arena *arena,
                                         int64_t writer_id, const struct catalogue_claim *claim,
                                         const struct catalogue_remainder *remainder,
                                         struct err *err) MUST_USE;

#endif

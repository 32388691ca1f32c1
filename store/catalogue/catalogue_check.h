/* catalogue_check: reads the whole catalogue, for `store verify` and `store stats`. Private to
 * store/. */
#ifndef STORE_CATALOGUE_CATALOGUE_CHECK_H
#define STORE_CATALOGUE_CATALOGUE_CHECK_H

#include "store/catalogue/catalogue.h"
#include "store/types.h"

/* The catalogue's record of one tenant's part of a segment, or of a block. */
struct catalogue_entry {
    struct catalogue_place *places;
    uint32_t place_count;
    int64_t tenant_id;
    uint64_t row_count; /* row_count to reach_ns: of all places together */
    int64_t begin_ns;
    int64_t end_ns;
    int64_t reach_ns;
    uint64_t object_bytes; /* size of the whole object */
    bool is_marked;        /* a merge could not read it */
};

/* Lists all entries, or those of the objects with these keys (NULL: all), in arena. Entries of one
 * object are adjacent. */
enum err_code catalogue_list_all(struct pg_pool *database, struct arena *arena,
                                 const char *const *keys, uint32_t key_count,
                                 const struct catalogue_entry **ret_entries, uint32_t *ret_count,
                                 struct err *err) MUST_USE;
/* Reports whether a row names the object. */
enum err_code catalogue_has_object(struct pg_pool *database, const char *object_key,
                                   bool *ret_exists, struct err *err) MUST_USE;
/* Removes the mark of a tenant's part of the object, after it was read without an error. *ret_did:
 * whether it was marked. */
enum err_code catalogue_unmark_object(struct pg_pool *database, const char *object_key,
                                      int64_t tenant_id, bool *ret_did, struct err *err) MUST_USE;

/* Measures the store, by tenant and level, in arena. */
enum err_code catalogue_measure(struct pg_pool *database, struct arena *arena,
                                const struct store_measure **ret_measures, uint32_t *ret_count,
                                struct err *err) MUST_USE;

#endif

/*
 * catalogue_check: the whole catalogue, for operators. Private to the room.
 */
#ifndef STORE_CATALOGUE_CATALOGUE_CHECK_H
#define STORE_CATALOGUE_CATALOGUE_CHECK_H

#include "store/catalogue/catalogue.h"
#include "store/store.h"

/* What the catalogue says of one tenant's part of a segment, or of a block. */
struct catalogue_entry {
    struct catalogue_place *places;
    uint32_t place_count;
    int64_t tenant_id;
    uint64_t row_count; /* of all places together, as are the next two */
    int64_t begin_ns;
    int64_t end_ns;
    uint64_t object_bytes; /* of the whole object */
    bool is_marked;        /* no merge could read it */
};

/* All, or those of the objects of these keys (NULL: all); those of one object one after the other;
 * in arena. */
enum err_code catalogue_list_all(struct pg_pool *database, struct arena *arena,
                                 const char *const *keys, uint32_t key_count,
                                 const struct catalogue_entry **ret_entries, uint32_t *ret_count,
                                 struct err *err) MUST_USE;
/* Is there a row for the object? */
enum err_code catalogue_has_object(struct pg_pool *database, const char *object_key,
                                   bool *ret_exists, struct err *err) MUST_USE;
/* The tenant's part of the object is whole: merges take it, if it was marked. */
enum err_code catalogue_unmark_object(struct pg_pool *database, const char *object_key,
                                      int64_t tenant_id, bool *ret_did, struct err *err) MUST_USE;

#endif

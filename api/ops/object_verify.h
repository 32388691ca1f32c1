/*
 * object_verify: compares all stored objects with the rows that name them.
 *
 * Shares, parts of uploads, debug files and symbol tables are compared with the size and the
 * SHA-256 of their rows; segments and blocks of the store with their own checksums and with the
 * catalogue (store_verify of store/store.h). Used by `perfoliod store verify`, backup and restore,
 * and page by page by the background scrub (api/ops/scrub.h).
 *
 * An object that was deleted or merged while it was read is not a problem. An object that is
 * missing or unreadable is one only if another object can be read (api/ops/object_outage.h);
 * otherwise the verification fails with ERR_BUSY. One thread.
 */
#ifndef API_OPS_OBJECT_VERIFY_H
#define API_OPS_OBJECT_VERIFY_H

#include "api/core/integrity.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct arena;
struct object_store;
struct pg_pool;

struct object_problem {
    enum integrity_kind kind;
    enum store_problem problem;
    const char *key;
    int64_t tenant_id; /* 0: of all tenants, or unknown */
    const char *detail;
};

/* An object that no row refers to. */
struct object_unknown {
    const char *name; /* in the form of object_list_all; may contain any bytes */
    uint64_t bytes;
    int64_t modified_ns; /* wall time */
};

/* "broken", "missing", … */
const char *object_verify_problem_name(enum store_problem problem);
/* One line: problem, key, tenant, detail. */
void object_verify_print_problem(FILE *file, const struct object_problem *problem);

struct object_verify {
    struct pg_pool *database; /* of a role that sees all tenants */
    struct object_store *objects;
    /* The objects were restored and have no identity yet (api/ops/storage_identity.h), so that
     * reading it does not show whether the store can be used. */
    bool lacks_identity;
    void (*found)(void *context,
                  const struct object_problem *problem); /* called for each problem */
    /* Called after each object of a page was read, with or without a problem. May be NULL. */
    void (*read)(void *context, const char *key);
    /* Called after each object; may be NULL. */
    void (*progress)(void *context, uint64_t object_count, uint64_t byte_count);
    /* Called while bytes are read, to slow down; may be NULL. For segments and blocks it is called
     * after each page. False: ERR_CANCELLED. */
    integrity_pace *pace;
    /* Called after each object of a page that has digests; true ends the page there. May be NULL.
     */
    bool (*ends_page)(void *context);
    void *context;
};

struct object_verify_result {
    uint64_t object_counts[INTEGRITY_KIND_COUNT]; /* read, with or without a problem */
    uint64_t byte_count;
    uint64_t block_count;    /* intact blocks of the store */
    uint64_t unmarked_count; /* as in struct store_check_result of store/store.h */
    uint64_t problem_counts[STORE_PROBLEM_COUNT];
};

/* Verifies every object of every kind and adds the counts to *result, which the caller zeroes
 * before the first call. Problems are passed to verify->found and are not errors; errors are those
 * of the object store and the database. */
enum err_code object_verify_all(const struct object_verify *verify,
                                struct object_verify_result *result, struct err *err) MUST_USE;

/*
 * Calls found for every object that no row refers to, and sets *ret_count to the number of these
 * calls. Such objects are not damaged: an operation puts its objects before the rows that name
 * them, and an interrupted operation leaves them behind. Objects that wait for their deletion
 * (object_trash) have a row. Errors are those of the object store and the database.
 */
typedef void object_verify_found_unknown(void *context, const struct object_unknown *unknown);
enum err_code object_verify_unknown(struct pg_pool *database, struct object_store *objects,
                                    object_verify_found_unknown *found, void *context,
                                    uint64_t *ret_count, struct err *err) MUST_USE;

/* The longest cursor is a tenant's number and a build id of 256 digits. */
enum { OBJECT_VERIFY_CURSOR_BYTES = 400 };

/* Verifies at most count objects of one kind, those after cursor ("" at first) in the order of
 * their rows; cursor is moved to the last one that was read. *ret_is_end: there are no more of this
 * kind. */
enum err_code object_verify_page(const struct object_verify *verify, enum integrity_kind kind,
                                 char cursor[OBJECT_VERIFY_CURSOR_BYTES], uint32_t count,
                                 bool *ret_is_end, struct object_verify_result *result,
                                 struct err *err) MUST_USE;

/* ---- copies ---- */

/* All rows at one point in time. */
struct object_snapshot {
    const struct integrity_object *objects; /* those with digests */
    uint32_t object_count;
    const struct store_catalogue *catalogue;
};

/* Reads all rows into arena. */
enum err_code object_verify_read_snapshot(struct pg_pool *database, struct arena *arena,
                                          struct object_snapshot *ret_snapshot,
                                          struct err *err) MUST_USE;
/* Compares a copy of all objects, verify->objects, with the snapshot: every object has to exist and
 * be intact. verify->database is not used. */
enum err_code object_verify_snapshot(const struct object_snapshot *snapshot,
                                     const struct object_verify *verify,
                                     struct object_verify_result *result, struct err *err) MUST_USE;

/* The number of problems in result, and the number of objects. */
uint64_t object_verify_problems(const struct object_verify_result *result);
uint64_t object_verify_objects(const struct object_verify_result *result);

#endif

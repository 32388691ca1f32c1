#include "api/ops/object_verify.h"

#include "api/ops/object_outage.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PAGE_ROWS = 500, ALL_ROWS = INT32_MAX };

const char *object_verify_problem_name(enum store_problem problem)
{
    static const char *const names[STORE_PROBLEM_COUNT] = {
        [STORE_PROBLEM_BROKEN] = "broken",
        [STORE_PROBLEM_UNREADABLE] = "unreadable",
        [STORE_PROBLEM_MISSING] = "missing",
        [STORE_PROBLEM_DIFFERS] = "differs",
    };
    return names[problem];
}

uint64_t object_verify_problems(const struct object_verify_result *result)
{
    uint64_t problems = 0;
    for (int i = 0; i < STORE_PROBLEM_COUNT; i++)
        problems += result->problem_counts[i];
    return problems;
}

uint64_t object_verify_objects(const struct object_verify_result *result)
{
    uint64_t count = 0;
    for (int i = 0; i < INTEGRITY_KIND_COUNT; i++)
        count += result->object_counts[i];
    return count;
}

void object_verify_print_problem(FILE *file, const struct object_problem *problem)
{
    fprintf(file, "%-8s %s", object_verify_problem_name(problem->problem), problem->key);
    if (problem->tenant_id)
        fprintf(file, " (tenant %" PRId64 ")", problem->tenant_id);
    fprintf(file, ": %s\n", problem->detail);
}

/* ---- rows ---- */

/*
 * For each kind: cursor, tenant, row (integrity.h), object key, bytes and digest of at most $2 rows
 * after the cursor $1. Cursors are primary keys, so that a page is one index scan; ORDER BY names
 * the table's column, since "id" alone would be the selected text.
 */
static const char *const page_queries[INTEGRITY_KIND_COUNT] = {
    [INTEGRITY_SHARE] = "SELECT id, tenant_id, id, object_key, raw_bytes, raw_sha256 FROM share"
                        " WHERE id > $1 AND state = 'live' ORDER BY id LIMIT $2",
    [INTEGRITY_PART] =
        "SELECT upload_id || '.' || part, tenant_id, upload_id, object_key, size_bytes, sha256"
        " FROM upload_part WHERE (upload_id, part) > (split_part($1, '.', 1),"
        " coalesce(nullif(split_part($1, '.', 2), ''), '-1')::bigint)"
        " ORDER BY upload_id, part LIMIT $2",
    [INTEGRITY_DEBUG_FILE] =
        "SELECT id::text, tenant_id, build_id, object_key, bytes, sha256 FROM debug_file"
        " WHERE id > coalesce(nullif($1, ''), '0')::bigint AND object_key <> ''"
        " ORDER BY debug_file.id LIMIT $2",
    [INTEGRITY_TABLE] =
        "SELECT tenant_id || '.' || build_id, tenant_id, build_id, object_key, bytes, sha256"
        " FROM symbol_table WHERE (tenant_id, build_id) >"
        " (coalesce(nullif(split_part($1, '.', 1), ''), '0')::bigint, split_part($1, '.', 2))"
        " ORDER BY tenant_id, build_id LIMIT $2",
    [INTEGRITY_TABLE_PUBLIC] =
        "SELECT build_id, 0::bigint, build_id, object_key, bytes, sha256"
        " FROM symbol_table_public WHERE build_id > $1 ORDER BY build_id LIMIT $2",
    [INTEGRITY_SEGMENT] =
        "SELECT id::text, 0::bigint, '', object_key, bytes, NULL::bytea FROM segment"
        " WHERE id > coalesce(nullif($1, ''), '0')::bigint ORDER BY segment.id LIMIT $2",
    [INTEGRITY_BLOCK] =
        "SELECT id::text, tenant_id, '', object_key, bytes, NULL::bytea FROM block"
        " WHERE id > coalesce(nullif($1, ''), '0')::bigint ORDER BY block.id LIMIT $2",
};

/* Sets *ret_objects, in arena, and moves cursor. */
static enum err_code read_page(struct pg_pool *database, enum integrity_kind kind, char *cursor,
                               uint32_t limit, struct arena *arena,
                               struct integrity_object **ret_objects, uint32_t *ret_count,
                               struct err *err)
{
    pg_auto connection = NULL;
    struct pg_result *rows;
    enum err_code code = pg_take(database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT, page_queries[kind], arena, &rows, err,
                           PG_TEXT(cursor), PG_I64(limit));
    if (code)
        return code;
    const int count = pg_row_count(rows);
    struct integrity_object *objects = arena_new(arena, struct integrity_object, (size_t)count);
    for (int row = 0; row < count; row++)
        objects[row] = (struct integrity_object){.kind = kind,
                                                 .cursor = pg_get_text(rows, row, 0),
                                                 .tenant_id = pg_get_i64(rows, row, 1),
                                                 .row = pg_get_text(rows, row, 2),
                                                 .key = pg_get_text(rows, row, 3),
                                                 .bytes = (uint64_t)pg_get_i64(rows, row, 4),
                                                 .sha256 = pg_get_bytes(rows, row, 5)};
    if (count)
        snprintf(cursor, OBJECT_VERIFY_CURSOR_BYTES, "%s", pg_get_text(rows, count - 1, 0));
    *ret_objects = objects;
    *ret_count = (uint32_t)count;
    return ERR_NONE;
}

/* ---- objects with digests ---- */

static void report_problem(const struct object_verify *verify, struct object_verify_result *result,
                           const struct integrity_object *object, enum store_problem problem,
                           const char *detail)
{
    const struct object_problem found = {.kind = object->kind,
                                         .problem = problem,
                                         .key = object->key,
                                         .tenant_id = object->tenant_id,
                                         .detail = detail};
    result->problem_counts[problem]++;
    if (verify->found)
        verify->found(verify->context, &found);
}

/* An object whose row was deleted meanwhile is not a problem; the rows of a copy do not change. */
static enum err_code report_if_named(const struct object_verify *verify,
                                     struct object_verify_result *result,
                                     const struct integrity_object *object,
                                     enum store_problem problem, const char *detail, bool is_copy,
                                     struct err *err)
{
    bool exists = true;
    const enum err_code code =
        is_copy ? ERR_NONE : integrity_row_exists(verify->database, object, &exists, err);
    if (!code && exists)
        report_problem(verify, result, object, problem, detail);
    return code;
}

static enum err_code check_store(const struct object_verify *verify, struct err *err)
{
    return verify->lacks_identity ? ERR_NONE : integrity_check_store(verify->objects, err);
}

static enum err_code find_outage(const struct object_verify *verify, const char *key,
                                 struct err *err)
{
    const enum err_code code = check_store(verify, err);
    return code ? code : object_outage_check(verify->database, verify->objects, key, err);
}

/* Reads an object. If it is missing or unreadable, it is read again after another object was read,
 * since the failure may have been the end of an outage. *ret_is_outage: no other object can be read
 * either, and *found describes that. */
static enum err_code read_object(const struct object_verify *verify,
                                 const struct integrity_object *object, bool is_copy,
                                 bool *ret_is_outage, struct err *found)
{
    enum err_code code =
        integrity_check(verify->objects, object, verify->pace, verify->context, found);
    *ret_is_outage = false;
    if (is_copy || !object_outage_is_possible(code, found))
        return code;
    code = find_outage(verify, object->key, found);
    *ret_is_outage = code != ERR_NONE;
    if (code)
        return code;
    *found = (struct err){0};
    return integrity_check(verify->objects, object, verify->pace, verify->context, found);
}

static enum err_code verify_object(const struct object_verify *verify,
                                   struct object_verify_result *result,
                                   const struct integrity_object *object, bool is_copy,
                                   struct err *err)
{
    struct err found = {0};
    bool is_outage;
    enum err_code code = read_object(verify, object, is_copy, &is_outage, &found);
    if (is_outage) {
        *err = found;
        return code;
    }
    result->object_counts[object->kind]++;
    if (!code)
        result->byte_count += object->bytes;
    else if (code == ERR_CORRUPT)
        code = report_if_named(verify, result, object, STORE_PROBLEM_BROKEN, found.message, is_copy,
                               err);
    else if (code == ERR_NOT_FOUND)
        code = report_if_named(verify, result, object, STORE_PROBLEM_MISSING, "there is no object",
                               is_copy, err);
    else if (code == ERR_IO && found.is_unreadable)
        code = report_if_named(verify, result, object, STORE_PROBLEM_UNREADABLE, found.message,
                               is_copy, err);
    else
        *err = found;
    if (!code && verify->read)
        verify->read(verify->context, object->key);
    if (!code && verify->progress)
        verify->progress(verify->context, object_verify_objects(result), result->byte_count);
    return code;
}

static enum err_code verify_objects(const struct object_verify *verify,
                                    const struct integrity_object *objects, uint32_t count,
                                    bool is_copy, struct object_verify_result *result,
                                    struct err *err)
{
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < count && !code; i++)
        code = verify_object(verify, result, &objects[i], is_copy, err);
    return code;
}

/* Ends before the last object if ends_page requests it. */
static enum err_code verify_page(const struct object_verify *verify,
                                 const struct integrity_object *objects, uint32_t count,
                                 char cursor[OBJECT_VERIFY_CURSOR_BYTES], bool *ret_is_end,
                                 struct object_verify_result *result, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        const enum err_code code = verify_object(verify, result, &objects[i], false, err);
        if (code)
            return code;
        if (i + 1 < count && verify->ends_page && verify->ends_page(verify->context)) {
            snprintf(cursor, OBJECT_VERIFY_CURSOR_BYTES, "%s", objects[i].cursor);
            *ret_is_end = false;
            return ERR_NONE;
        }
    }
    return ERR_NONE;
}

/* ---- segments and blocks ---- */

struct store_scan {
    const struct object_verify *verify;
    struct object_verify_result *result;
    uint64_t bytes_before;
};

static enum integrity_kind kind_of(const char *key)
{
    return strncmp(key, "segment/", 8) == 0 ? INTEGRITY_SEGMENT : INTEGRITY_BLOCK;
}

static void note_problem(void *context, enum store_problem problem, const char *object_key,
                         int64_t tenant_id, const char *detail)
{
    const struct store_scan *scan = context;
    const struct integrity_object object = {
        .kind = kind_of(object_key), .tenant_id = tenant_id, .key = object_key};
    report_problem(scan->verify, scan->result, &object, problem, detail);
}

static void note_progress(void *context, uint32_t done, uint32_t count, uint64_t byte_count)
{
    const struct store_scan *scan = context;
    const struct object_verify *verify = scan->verify;
    (void)count;
    if (verify->progress)
        verify->progress(verify->context, object_verify_objects(scan->result) + done,
                         scan->bytes_before + byte_count);
}

static enum err_code check_outage(void *context, const char *object_key, struct err *err)
{
    const struct object_verify *verify = ((const struct store_scan *)context)->verify;
    return find_outage(verify, object_key, err);
}

/* catalogue: the snapshot for a copy. keys: verify only these, of one kind. */
static enum err_code verify_store(const struct object_verify *verify,
                                  const struct store_catalogue *catalogue, const char *const *keys,
                                  uint32_t key_count, struct object_verify_result *result,
                                  struct err *err)
{
    struct store_scan scan = {
        .verify = verify, .result = result, .bytes_before = result->byte_count};
    struct store_check_result store = {0};
    const struct store_check check = {.database = verify->database,
                                      .objects = verify->objects,
                                      .keys = keys,
                                      .key_count = key_count,
                                      .found = note_problem,
                                      .check_outage = check_outage,
                                      .progress = note_progress,
                                      .context = &scan};
    const enum err_code code = catalogue ? store_verify_copy(&check, catalogue, &store, err)
                                         : store_verify(&check, &store, err);
    const bool goes_on = code || !verify->pace || verify->pace(verify->context, store.byte_count);
    const enum integrity_kind kind = keys && key_count ? kind_of(keys[0]) : INTEGRITY_BLOCK;
    result->object_counts[kind] += store.object_count;
    result->block_count += store.block_count;
    result->byte_count += store.byte_count;
    result->unmarked_count += store.unmarked_count;
    return goes_on ? code : err_set(err, ERR_CANCELLED, "reading the store was aborted");
}

static enum err_code verify_store_page(const struct object_verify *verify,
                                       const struct integrity_object *objects, uint32_t count,
                                       struct arena *arena, struct object_verify_result *result,
                                       struct err *err)
{
    const char **keys = arena_new(arena, const char *, count);
    for (uint32_t i = 0; i < count; i++)
        keys[i] = objects[i].key;
    const enum err_code code =
        count ? verify_store(verify, NULL, keys, count, result, err) : ERR_NONE;
    for (uint32_t i = 0; i < count && !code && verify->read; i++)
        verify->read(verify->context, keys[i]);
    return code;
}

/* ---- all ---- */

enum err_code object_verify_page(const struct object_verify *verify, enum integrity_kind kind,
                                 char cursor[OBJECT_VERIFY_CURSOR_BYTES], uint32_t count,
                                 bool *ret_is_end, struct object_verify_result *result,
                                 struct err *err)
{
    arena_auto arena = arena_create();
    struct integrity_object *objects;
    uint32_t found = 0;
    enum err_code code = check_store(verify, err);
    if (code)
        return code;
    code = read_page(verify->database, kind, cursor, count, arena, &objects, &found, err);
    if (code)
        return code;
    *ret_is_end = found < count;
    if (kind == INTEGRITY_SEGMENT || kind == INTEGRITY_BLOCK)
        return verify_store_page(verify, objects, found, arena, result, err);
    return verify_page(verify, objects, found, cursor, ret_is_end, result, err);
}

static bool has_digests(enum integrity_kind kind)
{
    return kind != INTEGRITY_SEGMENT && kind != INTEGRITY_BLOCK;
}

enum err_code object_verify_all(const struct object_verify *verify,
                                struct object_verify_result *result, struct err *err)
{
    enum err_code code = ERR_NONE;
    for (int kind = 0; kind < INTEGRITY_KIND_COUNT && !code; kind++) {
        char cursor[OBJECT_VERIFY_CURSOR_BYTES] = "";
        bool is_end = !has_digests((enum integrity_kind)kind);
        while (!code && !is_end)
            code = object_verify_page(verify, (enum integrity_kind)kind, cursor, PAGE_ROWS, &is_end,
                                      result, err);
    }
    if (code)
        return code;
    code = check_store(verify, err);
    if (code)
        return code;
    return verify_store(verify, NULL, NULL, 0, result, err);
}

/* ---- objects without a row ---- */

enum { NAMES_AT_ONCE = 1000, NAMES_MAX_BYTES = 1 << 20 };

struct unknown_scan {
    struct pg_pool *database;
    struct object_store *objects;
    object_verify_found_unknown *found;
    void *context;
    uint64_t found_count;
    struct arena *arena; /* contains the names; destroyed after each batch */
    struct object_unknown names[NAMES_AT_ONCE];
    uint32_t count;
};

/* The key that the name is or, for something else than a regular file, whose place it takes. In
 * arena; "" if no row can refer to it. */
static const char *key_of(struct arena *arena, const char *name)
{
    if (object_is_key(name))
        return name;
    const char *key = arena_strndup(arena, name, strlen(name) - (*name != 0));
    return object_is_key(key) ? key : "";
}

/* The key of a share is "share/<id>", that of a part of an upload "part/<id>.<part>.<random>"; the
 * other tables are found by the whole key. The id is compared too, because it has the index. */
static enum err_code find_rows(struct unknown_scan *scan, struct pg_result **ret_rows,
                               struct err *err)
{
    pg_auto connection = NULL;
    buf_auto keys;
    buf_init(&keys, NAMES_MAX_BYTES);
    buf_append_byte(&keys, '{');
    for (uint32_t i = 0; i < scan->count; i++)
        buf_printf(&keys, "%s\"%s\"", i ? "," : "", key_of(scan->arena, scan->names[i].name));
    buf_append_byte(&keys, '}');
    enum err_code code = pg_take(scan->database, &connection, err);
    return code
               ? code
               : pg_query_values(connection, PG_NO_TENANT,
                                 "SELECT k = 'database-id'"
                                 " OR EXISTS (SELECT FROM share WHERE id = split_part(k, '/', 2)"
                                 "  AND object_key = k)"
                                 " OR EXISTS (SELECT FROM upload_part WHERE upload_id ="
                                 "  split_part(split_part(k, '/', 2), '.', 1) AND object_key = k)"
                                 " OR EXISTS (SELECT FROM debug_file WHERE object_key = k)"
                                 " OR EXISTS (SELECT FROM symbol_table WHERE object_key = k)"
                                 " OR EXISTS (SELECT FROM symbol_table_public WHERE object_key = k)"
                                 " OR EXISTS (SELECT FROM segment WHERE object_key = k)"
                                 " OR EXISTS (SELECT FROM block WHERE object_key = k)"
                                 " OR EXISTS (SELECT FROM object_trash WHERE object_key = k)"
                                 " FROM unnest($1::text[]) WITH ORDINALITY AS u (k, n) ORDER BY n",
                                 scan->arena, ret_rows, err, PG_SPAN(buf_span(&keys)));
}

/* An object that was deleted, with its row, since it was listed is not unknown. */
static bool is_gone(const struct unknown_scan *scan, const char *name)
{
    struct err ignored;
    return object_is_key(name) &&
           object_probe(scan->objects, name, NULL, &ignored) == ERR_NOT_FOUND;
}

static enum err_code check_names(struct unknown_scan *scan, struct err *err)
{
    struct pg_result *rows;
    enum err_code code = scan->count ? find_rows(scan, &rows, err) : ERR_NONE;
    for (uint32_t i = 0; !code && i < scan->count; i++) {
        if (pg_get_bool(rows, (int)i, 0) || is_gone(scan, scan->names[i].name))
            continue;
        scan->found(scan->context, &scan->names[i]);
        scan->found_count++;
    }
    arena_destroy(scan->arena);
    scan->arena = arena_create();
    scan->count = 0;
    return code;
}

static enum err_code note_name(void *context, const char *name, uint64_t size, int64_t modified_ns,
                               struct err *err)
{
    struct unknown_scan *scan = context;
    scan->names[scan->count++] = (struct object_unknown){
        .name = arena_strdup(scan->arena, name), .bytes = size, .modified_ns = modified_ns};
    return scan->count == NAMES_AT_ONCE ? check_names(scan, err) : ERR_NONE;
}

enum err_code object_verify_unknown(struct pg_pool *database, struct object_store *objects,
                                    object_verify_found_unknown *found, void *context,
                                    uint64_t *ret_count, struct err *err)
{
    struct unknown_scan *scan = mem_new(struct unknown_scan, 1);
    *scan = (struct unknown_scan){
        .database = database, .objects = objects, .found = found, .context = context};
    scan->arena = arena_create();
    enum err_code code = object_list_all(objects, note_name, scan, err);
    if (!code)
        code = check_names(scan, err);
    *ret_count = scan->found_count;
    arena_destroy(scan->arena);
    mem_free(scan);
    return code;
}

/* ---- copies ---- */

static enum err_code read_objects(struct pg_pool *database, struct arena *arena,
                                  struct object_snapshot *snapshot, struct err *err)
{
    struct integrity_object *lists[INTEGRITY_KIND_COUNT] = {NULL};
    uint32_t counts[INTEGRITY_KIND_COUNT] = {0}, total = 0;
    for (int kind = 0; kind < INTEGRITY_KIND_COUNT; kind++) {
        char cursor[OBJECT_VERIFY_CURSOR_BYTES] = "";
        if (!has_digests((enum integrity_kind)kind))
            continue;
        const enum err_code code = read_page(database, (enum integrity_kind)kind, cursor, ALL_ROWS,
                                             arena, &lists[kind], &counts[kind], err);
        if (code)
            return code;
        total += counts[kind];
    }
    struct integrity_object *objects = arena_new(arena, struct integrity_object, total);
    snapshot->objects = objects;
    snapshot->object_count = total;
    for (int kind = 0; kind < INTEGRITY_KIND_COUNT; kind++) {
        if (counts[kind])
            memcpy(objects, lists[kind], counts[kind] * sizeof(*objects));
        objects += counts[kind];
    }
    return ERR_NONE;
}

enum err_code object_verify_read_snapshot(struct pg_pool *database, struct arena *arena,
                                          struct object_snapshot *ret_snapshot, struct err *err)
{
    const enum err_code code = read_objects(database, arena, ret_snapshot, err);
    return code ? code : store_catalogue_read(database, arena, &ret_snapshot->catalogue, err);
}

enum err_code object_verify_snapshot(const struct object_snapshot *snapshot,
                                     const struct object_verify *verify,
                                     struct object_verify_result *result, struct err *err)
{
    const enum err_code code =
        verify_objects(verify, snapshot->objects, snapshot->object_count, true, result, err);
    return code ? code : verify_store(verify, snapshot->catalogue, NULL, 0, result, err);
}

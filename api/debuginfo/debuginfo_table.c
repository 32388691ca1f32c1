#include "api/debuginfo/debuginfo_table.h"

#include "api/core/memory_gate.h"
#include "api/core/server.h"
#include "api/debuginfo/public_tables.h"
#include "api/http/json_response.h"
#include "api/identity/quota.h"
#include "lib/base/err.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"
#include "lib/symbols/symbol_pack.h"
#include "lib/symbols/symbol_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    PACK_FACTOR = 9
}; /* memory to pack a table, relative to its size: 92 MiB for libjvm.so's 11 */

static enum err_code check_id(const struct debuginfo_table *table, struct err *err)
{
    char id[2 * SYMBOL_ID_MAX_BYTES + 1];
    const struct symbol_table_facts *facts = &table->facts;
    if (facts->id_kind == SYMBOL_ID_NONE || facts->id_bytes == 0)
        return err_set(err, ERR_INVALID, "the file has no build id, so no profile refers to it");
    digest_hex(span_of(facts->id, facts->id_bytes), id);
    if (strcmp(id, table->id) != 0)
        return err_set(err, ERR_INVALID, "it belongs to another binary: its build id is %s", id);
    return ERR_NONE;
}

static enum err_code read_sound(struct debuginfo_table *table, struct span bytes, struct err *err)
{
    struct symbol_table *opened;
    enum err_code code = symbol_table_open(bytes, &opened, err);
    if (code)
        return code;
    code = symbol_table_verify(opened, err);
    table->facts = *symbol_table_facts(opened);
    table->functions = symbol_table_sizes(opened).functions;
    symbol_table_close(opened);
    return code;
}

/* The amount that each thread may use at any time needs no slot. */
static uint64_t memory_to_read(uint64_t bytes)
{
    return bytes > MEMORY_GATE_LIGHT_PEAK ? bytes : 0;
}

/* A table that unpacks is valid, so only its facts are checked. */
static enum err_code unpack_table(struct debuginfo_table *table, struct err *err)
{
    struct symbol_table *opened;
    buf_auto unpacked;
    buf_init(&unpacked, DEBUGINFO_TABLE_MAX_BYTES);
    enum err_code code = symbol_unpack(table->bytes, &unpacked, err);
    if (code)
        return code;
    code = symbol_table_open(buf_span(&unpacked), &opened, err);
    if (code)
        return code;
    table->facts = *symbol_table_facts(opened);
    table->functions = symbol_table_sizes(opened).functions;
    symbol_table_close(opened);
    return ERR_NONE;
}

static enum err_code read_packed(struct server *server, struct debuginfo_table *table,
                                 struct err *err)
{
    struct memory_gate *gate = server->memory_gate;
    const uint64_t gate_bytes = memory_to_read(symbol_unpack_bytes(table->bytes));
    enum err_code code =
        memory_gate_enter(gate, table->tenant_id, gate_bytes, "this symbol table", err);
    if (code == ERR_TOO_LARGE)
        return err_set(err, ERR_TOO_LARGE,
                       "this symbol table takes about %" PRIu64 " MiB of memory to read, and this"
                       " server has %" PRIu64 " MiB for heavy work (--max-heavy-memory)",
                       (gate_bytes >> 20) + 1, memory_gate_max_bytes(gate) >> 20);
    if (code)
        return code;
    code = unpack_table(table, err);
    memory_gate_leave(gate, table->tenant_id, gate_bytes);
    return code;
}

enum err_code debuginfo_table_read(struct server *server, struct debuginfo_table *table,
                                   struct err *err)
{
    const enum err_code code = symbol_pack_is(table->bytes) ? read_packed(server, table, err)
                                                            : read_sound(table, table->bytes, err);
    if (code == ERR_CORRUPT || code == ERR_INVALID)
        return err_set(err, ERR_INVALID, "it is not a valid symbol table");
    return code ? code : check_id(table, err);
}

static enum err_code pack_table(const struct debuginfo_table *table, struct buf *packed,
                                struct err *err)
{
    struct symbol_table *opened;
    enum err_code code = symbol_table_open(table->bytes, &opened, err);
    if (code)
        return code;
    code = symbol_pack(opened, packed, err);
    symbol_table_close(opened);
    return code;
}

/* Chooses the stored form: unpacked if packing does not pay or there is no memory for it, so that
 * neither an upload nor a job fails for that. */
static enum err_code choose_form(struct server *server, const struct debuginfo_table *table,
                                 struct buf *packed, struct span *ret_bytes, struct err *err)
{
    struct memory_gate *gate = server->memory_gate;
    const uint64_t gate_bytes = memory_to_read(PACK_FACTOR * (uint64_t)table->bytes.size);
    struct err ignored;
    *ret_bytes = table->bytes;
    if (table->is_short_lived || symbol_pack_is(table->bytes) ||
        memory_gate_enter(gate, table->tenant_id, gate_bytes, "packing this symbol table",
                          &ignored))
        return ERR_NONE;
    const enum err_code code = pack_table(table, packed, err);
    memory_gate_leave(gate, table->tenant_id, gate_bytes);
    if (!code)
        *ret_bytes = buf_span(packed);
    return code == ERR_TOO_LARGE ? ERR_NONE : code;
}

enum err_code debuginfo_table_put(struct server *server, struct debuginfo_table *table,
                                  struct err *err)
{
    char random[DIGEST_ID_BYTES];
    struct span bytes;
    buf_auto packed;
    buf_init(&packed, DEBUGINFO_TABLE_MAX_BYTES);
    const enum err_code code = choose_form(server, table, &packed, &bytes, err);
    if (code)
        return code;
    digest_random_id(random);
    snprintf(table->object_key, sizeof(table->object_key), "symbols/%s", random);
    digest_sha256(bytes, table->sha256);
    table->stored_bytes = (int64_t)bytes.size;
    return object_put(server->objects, table->object_key, bytes, err);
}

void debuginfo_table_discard(struct server *server, const char *object_key)
{
    struct err ignored;
    if (object_delete(server->objects, object_key, &ignored))
        return;
}

static enum err_code find_old(struct pg_connection *connection, const struct debuginfo_table *table,
                              struct arena *arena, struct pg_result **ret_rows, struct err *err)
{
    /* Locks the build id first: two transactions that find no table would both insert one. */
    enum err_code code = pg_queue_values(
        connection, table->tenant_id,
        "SELECT pg_advisory_xact_lock(hashtextextended('symbol table ' || $1 || ' ' || $2, 0))",
        arena, err, PG_I64(table->tenant_id), PG_TEXT(table->id));
    if (code)
        return code;
    if (table->tenant_id == DEBUGINFO_PUBLIC)
        return pg_query_values(connection, PG_NO_TENANT,
                               "SELECT quality_rank, builder_version, bytes, sha256,"
                               " object_is_damaged(object_key)"
                               " FROM symbol_table_public WHERE build_id = $1",
                               arena, ret_rows, err, PG_TEXT(table->id));
    return pg_query_values(connection, table->tenant_id,
                           "SELECT quality_rank, builder_version, bytes, sha256,"
                           " object_is_damaged(object_key)"
                           " FROM symbol_table WHERE tenant_id = $1 AND build_id = $2",
                           arena, ret_rows, err, PG_I64(table->tenant_id), PG_TEXT(table->id));
}

/* A stripped file never replaces a better one; of two equal ones the later is kept, unless an older
 * builder made it. A table whose stored object is damaged or lost is replaced by any. */
static bool is_better(const struct pg_result *old, const struct debuginfo_table *table)
{
    const int64_t rank = symbol_quality_rank(&table->facts), old_rank = pg_get_i64(old, 0, 0);
    if (pg_get_bool(old, 0, 4))
        return true;
    if (rank != old_rank)
        return rank > old_rank;
    return table->facts.builder_version >= pg_get_i64(old, 0, 1) &&
           !span_equal(pg_get_bytes(old, 0, 3), span_of(table->sha256, DIGEST_BYTES));
}

#define TABLE_COLUMNS                                                                              \
    "build_id, object_key, bytes, sha256, quality, quality_rank, builder_version, broken_units,"   \
    " functions, source, file, problem"
#define TABLE_VALUES                                                                               \
    "$1, $2, $3, $4, $5::bigint::integer, $6::bigint::integer, $7::bigint::integer,"               \
    " $8::bigint::integer, $9, $10, left($11, 255), left($12, 600)"
#define TABLE_REPLACE                                                                              \
    " DO UPDATE SET object_key = excluded.object_key, bytes = excluded.bytes,"                     \
    " sha256 = excluded.sha256, quality = excluded.quality,"                                       \
    " quality_rank = excluded.quality_rank, builder_version = excluded.builder_version,"           \
    " broken_units = excluded.broken_units, functions = excluded.functions,"                       \
    " source = excluded.source, file = excluded.file, problem = excluded.problem,"                 \
    " created_at = now()"

enum { TABLE_VALUE_COUNT = 12 };

static enum err_code write_row(struct pg_connection *connection,
                               const struct debuginfo_table *table, struct arena *arena,
                               struct err *err)
{
    const struct symbol_table_facts *facts = &table->facts;
    const struct pg_value values[TABLE_VALUE_COUNT + 1] = {
        PG_TEXT(table->id),
        PG_TEXT(table->object_key),
        PG_I64(table->stored_bytes),
        PG_BYTES(span_of(table->sha256, DIGEST_BYTES)),
        PG_I64(facts->quality & INT32_MAX),
        PG_I64(symbol_quality_rank(facts)),
        PG_I64(facts->builder_version & INT32_MAX),
        PG_I64(facts->broken_units & INT32_MAX),
        PG_I64(table->functions),
        PG_TEXT(table->source),
        PG_TEXT(table->file),
        PG_TEXT(table->problem),
        PG_I64(table->tenant_id),
    };
    if (table->tenant_id == DEBUGINFO_PUBLIC)
        return pg_queue(connection, PG_NO_TENANT,
                        "INSERT INTO symbol_table_public (" TABLE_COLUMNS ") VALUES (" TABLE_VALUES
                        ") ON CONFLICT (build_id)" TABLE_REPLACE ", last_used_at = now()",
                        values, TABLE_VALUE_COUNT, arena, err);
    return pg_queue(connection, table->tenant_id,
                    "INSERT INTO symbol_table (" TABLE_COLUMNS ", tenant_id) VALUES (" TABLE_VALUES
                    ", $13) ON CONFLICT (tenant_id, build_id)" TABLE_REPLACE,
                    values, TABLE_VALUE_COUNT + 1, arena, err);
}

/* Counts the table for its team, or for the limit of all public tables. replaced_bytes: of the
 * table that it replaces; 0: none. */
static enum err_code charge_owner(struct server *server, struct pg_connection *connection,
                                  const struct debuginfo_table *table, int64_t replaced_bytes,
                                  struct arena *arena, struct err *err)
{
    if (table->tenant_id == DEBUGINFO_PUBLIC)
        return public_tables_free_space(server, connection, arena, err);
    return quota_replace(server, connection, table->tenant_id,
                         replaced_bytes + table->charged_bytes, table->stored_bytes, arena, err);
}

enum err_code debuginfo_table_store(struct server *server, struct pg_connection *connection,
                                    const struct debuginfo_table *table, struct arena *arena,
                                    bool *ret_is_stored, struct err *err)
{
    struct pg_result *old;
    enum err_code code = find_old(connection, table, arena, &old, err);
    if (code)
        return code;
    const bool is_first = pg_row_count(old) == 0;
    *ret_is_stored = false;
    if (!is_first && !is_better(old, table))
        return ERR_NONE;
    if (table->tenant_id == DEBUGINFO_PUBLIC)
        code = public_tables_check_size(server, table->stored_bytes, err);
    if (code)
        return code;
    code = write_row(connection, table, arena, err);
    if (code)
        return code;
    code =
        charge_owner(server, connection, table, is_first ? 0 : pg_get_i64(old, 0, 2), arena, err);
    if (code)
        return code;
    if (table->tenant_id != DEBUGINFO_PUBLIC && symbol_tables_is_good(table->facts.quality))
        code = pg_queue_values(connection, table->tenant_id,
                               "DELETE FROM symbol_need WHERE tenant_id = $1 AND build_id = $2",
                               arena, err, PG_I64(table->tenant_id), PG_TEXT(table->id));
    *ret_is_stored = !code;
    return code;
}

enum err_code debuginfo_table_publish(struct server *server, struct debuginfo_table *table,
                                      debuginfo_table_keep *keep, void *context, struct err *err)
{
    bool is_stored = false;
    enum err_code code = debuginfo_table_read(server, table, err);
    if (code)
        return code;
    code = debuginfo_table_put(server, table, err);
    if (code)
        return code;
    code = keep(context, table, &is_stored, err);
    /* After ERR_DATABASE it is unknown whether a row names the object: the sweep decides. */
    if (code != ERR_DATABASE && !(is_stored && !code))
        debuginfo_table_discard(server, table->object_key);
    return code;
}

void debuginfo_table_write_quality(struct json_response *json, uint32_t quality)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } names[] = {
        {SYMBOL_HAS_DWARF, "dwarf"},     {SYMBOL_HAS_LINES, "lines"},
        {SYMBOL_HAS_INLINES, "inlines"}, {SYMBOL_HAS_GO, "go"},
        {SYMBOL_HAS_SYMTAB, "symtab"},   {SYMBOL_HAS_MINI, "mini"},
        {SYMBOL_HAS_DYNSYM, "dynsym"},   {SYMBOL_IS_PARTIAL, "partial"},
    };
    json_response_open(json, "quality", '[');
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (quality & names[i].bit)
            json_response_text(json, NULL, names[i].name);
    json_response_close(json, ']');
}

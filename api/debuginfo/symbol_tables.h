/*
 * symbol_tables: the symbol tables that a team may see: its own and the public ones, found by build
 * id, open and mapped while they are in use.
 *
 * If a team has a table of its own and there is a public one too, the better one is used, and the
 * team's own if they are equal (symbol_quality_rank). Open tables are cached within
 * SYMBOL_TABLES_MAPPED_BYTES of mappings, of which only pages that were read are resident; one
 * thread opens a table, others wait. Threads: any.
 */
#ifndef API_DEBUGINFO_SYMBOL_TABLES_H
#define API_DEBUGINFO_SYMBOL_TABLES_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"
#include "lib/symbols/symbol_table_facts.h"

#include <stdbool.h>
#include <stdint.h>

struct build_id_binary;
struct flight_entry;
struct server;
struct symbol_table;
struct symbol_tables;

enum {
    SYMBOL_TABLES_PREPARE_MAX = 4096, /* binaries looked up by one statement */
    SYMBOL_TABLES_KEY_BYTES = 160,
};
#define SYMBOL_TABLES_MAPPED_BYTES (UINT64_C(4) << 30)

struct symbol_tables *symbol_tables_create(void);
void symbol_tables_destroy(struct symbol_tables *tables); /* NULL is a no-op */

/* A table with any of these, made from all files that it needs, is good; for others a better table
 * is looked for. */
enum { SYMBOL_TABLES_GOOD = SYMBOL_HAS_LINES | SYMBOL_HAS_INLINES | SYMBOL_HAS_GO };

static inline bool symbol_tables_is_good(int64_t quality)
{
    return (quality & SYMBOL_TABLES_GOOD) && !(quality & SYMBOL_LACKS_SHARED);
}

/* A table in use; all zeros if there is none. */
struct symbol_tables_ref {
    const struct symbol_table *table; /* NULL: the team may see none */
    const char *key; /* identifies the bytes of this table, for caches; lives as long as the ref */
    bool is_public;
    bool is_refused; /* there is one, but the disk has no space for it now; table is NULL */
    struct flight_entry *entry;
};

/* Finds the table of a build id; the caller returns it with symbol_tables_unref. A missing table is
 * not an error; the caller notes it as a need (missing_symbols_note). A table that is not good is
 * noted here. Errors: ERR_DATABASE, ERR_IO, ERR_CORRUPT, ERR_BUSY (see flight_cache_ref and
 * object_open). */
enum err_code symbol_tables_ref(struct server *server, int64_t tenant_id, struct span build_id,
                                struct symbol_tables_ref *ret_ref, struct err *err) MUST_USE;
/* Whether there is a table; does not open it. A table that is not good is noted as a need. Errors:
 * ERR_DATABASE, ERR_BUSY. */
enum err_code symbol_tables_has(struct server *server, int64_t tenant_id, struct span build_id,
                                bool *ret_has, struct err *err) MUST_USE;
/* Looks up which of these binaries have tables, with one statement per SYMBOL_TABLES_PREPARE_MAX
 * binaries, so that symbol_tables_ref needs no statement for each. Errors: ERR_DATABASE, ERR_BUSY.
 */
enum err_code symbol_tables_prepare(struct server *server, int64_t tenant_id,
                                    const struct build_id_binary *binaries, uint32_t count,
                                    struct err *err) MUST_USE;
/* Whether the table of a build id, in the form of build_id_normalize, was refused because the disk
 * had no space for it, and another try would probably fail, too. */
bool symbol_tables_is_refused(struct server *server, int64_t tenant_id, const char *id);
/* Call it when the file of this table has become unreadable: the next look-up opens it again. */
void symbol_tables_forget_opened(struct server *server, const struct symbol_tables_ref *ref);
/* A zeroed ref is a no-op. */
void symbol_tables_unref(struct symbol_tables_ref *ref);

/* A number that grows whenever tables that the team may see have changed, on any server. It is read
 * from the database at most once a second, so it may be that much behind, and does not change while
 * the database is away. Never 0, which is the generation of results without names. */
uint64_t symbol_tables_generation(struct server *server, int64_t tenant_id);
/* For keys of cached names in this process: grows with the generation, and some seconds after names
 * were left out because the disk had no space for a table. Read it before names are looked up. */
uint64_t symbol_tables_version(struct server *server, int64_t tenant_id);
/* Records a generation that the caller read from the database together with other data. Returns
 * true if it is later than the one that responses of this process used so far. */
bool symbol_tables_learn_generation(struct server *server, int64_t tenant_id, uint64_t number);
/* Call it after a change by this process: the next look-up queries the database. */
void symbol_tables_forget(struct server *server, int64_t tenant_id);

#endif

/*
 * debuginfo_table: symbol tables on their way in: looked at as hostile bytes, then put in the place
 * of a worse one. For api/debuginfo_*.c.
 */
#ifndef API_DEBUGINFO_TABLE_STORE_H
#define API_DEBUGINFO_TABLE_STORE_H

#include "api/debuginfo/symbol_tables.h"
#include "lib/base/digest.h"
#include "lib/symbols/symbol_table_facts.h"

struct json_response;
struct pg_connection;

/* Of a table as it is read: ten times that of a 230 MB debug file. It is in memory while it is
 * looked at. */
#define DEBUGINFO_TABLE_MAX_BYTES (UINT64_C(512) << 20)

enum { DEBUGINFO_KEY_BYTES = 40, DEBUGINFO_PROBLEM_CHARACTERS = 600 };

/* Whose table: a team's number, or everybody's. */
#define DEBUGINFO_PUBLIC INT64_C(0)

struct debuginfo_table {
    int64_t tenant_id;   /* or DEBUGINFO_PUBLIC */
    const char *id;      /* the build id, as symbol_tables_id makes it */
    const char *source;  /* "table", "file", "upstream" */
    const char *file;    /* as who gave it called it; may be "" */
    const char *problem; /* what the builder left out; may be "" */
    struct span bytes;   /* as it is read, or packed (lib/symbols/symbol_pack.h) */
    bool is_short_lived; /* a better one follows within seconds: it rests as it is */
    /* Filled by debuginfo_table_read and debuginfo_table_put. */
    struct symbol_table_facts facts;
    uint32_t functions;
    int64_t stored_bytes;
    uint8_t sha256[DIGEST_BYTES]; /* of what is stored */
    char object_key[DEBUGINFO_KEY_BYTES];
};

/*
 * Reads all of table->bytes and fills facts; what a large one takes for that, packed, is a place in
 * the budget for heavy work, of which the caller holds none. Handles: ERR_INVALID (no sound table,
 * or one of another build id; the message is for people), ERR_UNSUPPORTED (of a newer version),
 * ERR_TOO_LARGE, ERR_BUSY.
 */
enum err_code debuginfo_table_read(struct server *server, struct debuginfo_table *table,
                                   struct err *err) MUST_USE;

/* Writes its object, which is nobody's until debuginfo_table_store: packed, where the budget has
 * room for that, now or in MEMORY_GATE_WAIT_S. The caller holds no place in it. Handles what
 * object_put does. */
enum err_code debuginfo_table_put(struct server *server, struct debuginfo_table *table,
                                  struct err *err) MUST_USE;

/*
 * In a transaction that the caller began, of the team as perfolio_server, or of everybody's as
 * perfolio_jobs: the table takes the place of one that is not better, and a team is charged for it;
 * *ret_is_stored tells. Otherwise the object is to be thrown away (debuginfo_discard), as when the
 * transaction fails. Handles what pg_query and quota_charge_tenant do.
 */
enum err_code debuginfo_table_store(struct server *server, struct pg_connection *connection,
                                    const struct debuginfo_table *table, struct arena *arena,
                                    bool *ret_is_stored, struct err *err) MUST_USE;

/* debuginfo_table_store in a transaction of its own, with what else belongs into it. */
typedef enum err_code debuginfo_table_keep(void *context, const struct debuginfo_table *table,
                                           bool *ret_is_stored, struct err *err);

/*
 * What was built: read, its object put, kept by keep, and the object thrown away where it has no
 * row. Handles what debuginfo_table_read, object_put and keep do.
 */
enum err_code debuginfo_table_publish(struct server *server, struct debuginfo_table *table,
                                      debuginfo_table_keep *keep, void *context,
                                      struct err *err) MUST_USE;

/* An object that no row names; what cannot be deleted now is swept later. */
void debuginfo_discard(struct server *server, const char *object_key);

/* "quality": ["dwarf", "lines", …] of the bits of enum symbol_quality. */
void debuginfo_write_quality(struct json_response *answer, uint32_t quality);

#endif

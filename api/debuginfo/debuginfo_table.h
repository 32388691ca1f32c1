/*
 * debuginfo_table: incoming symbol tables: checks them as untrusted bytes and stores them in place
 * of a worse one. For api/debuginfo/.
 */
#ifndef API_DEBUGINFO_DEBUGINFO_TABLE_H
#define API_DEBUGINFO_DEBUGINFO_TABLE_H

#include "api/debuginfo/symbol_tables.h"
#include "lib/base/digest.h"
#include "lib/symbols/symbol_table_facts.h"

struct arena;
struct json_response;
struct pg_connection;

/* The limit of an unpacked table: ten times that of a 230 MB debug file. It is in memory while it
 * is checked. */
#define DEBUGINFO_TABLE_MAX_BYTES (UINT64_C(512) << 20)

enum { DEBUGINFO_KEY_BYTES = 40, DEBUGINFO_PROBLEM_CHARACTERS = 600 };

/* The owner of a table: a team's number, or this for a public one. */
#define DEBUGINFO_PUBLIC INT64_C(0)

struct debuginfo_table {
    int64_t tenant_id;     /* or DEBUGINFO_PUBLIC */
    const char *id;        /* the build id, in the form of build_id_normalize */
    const char *source;    /* "table", "file", "upstream" */
    const char *file;      /* the name given by its source; may be "" */
    const char *problem;   /* what the builder left out; may be "" */
    struct span bytes;     /* unpacked, or packed (lib/symbols/symbol_pack.h) */
    bool is_short_lived;   /* a better one follows within seconds, so it is not packed */
    int64_t charged_bytes; /* the bytes for which the team was charged when it announced an upload;
                            * given back if the table is stored, because its stored bytes are
                            * charged then */
    /* Set by debuginfo_table_read and debuginfo_table_put. */
    struct symbol_table_facts facts;
    uint32_t functions;
    int64_t stored_bytes;
    uint8_t sha256[DIGEST_BYTES]; /* of the stored bytes */
    char object_key[DEBUGINFO_KEY_BYTES];
};

/*
 * Reads all of table->bytes and fills facts. For a large packed table it takes memory from the
 * memory gate, of which the caller must hold none. Errors: ERR_INVALID (not a valid table, or one
 * of another build id; the message is for people), ERR_UNSUPPORTED (of a newer version),
 * ERR_TOO_LARGE, ERR_BUSY.
 */
enum err_code debuginfo_table_read(struct server *server, struct debuginfo_table *table,
                                   struct err *err) MUST_USE;

/* Writes the object of the table; it has no row until debuginfo_table_store. The table is packed if
 * the memory gate grants the memory within MEMORY_GATE_WAIT_S. The caller must hold no memory of
 * the gate. Errors: those of object_put. */
enum err_code debuginfo_table_put(struct server *server, struct debuginfo_table *table,
                                  struct err *err) MUST_USE;

/*
 * Stores the row of the table, in a transaction of the caller: for a table of a team as
 * perfolio_server, for a public one as perfolio_jobs. The table replaces one that is not better,
 * and the team is charged for its bytes, or other public tables are deleted to free space
 * (public_tables_free_space). *ret_is_stored is false if the present table is better. If
 * the table is not stored or the transaction fails, the caller deletes the object
 * (debuginfo_table_discard). Errors: those of pg_query and quota_charge_tenant, ERR_TOO_LARGE (a
 * public table so large that no other would fit, public_tables_check_size).
 */
enum err_code debuginfo_table_store(struct server *server, struct pg_connection *connection,
                                    const struct debuginfo_table *table, struct arena *arena,
                                    bool *ret_is_stored, struct err *err) MUST_USE;

/* A callback that runs debuginfo_table_store in a transaction, together with the statements of the
 * caller that must be committed with it. */
typedef enum err_code debuginfo_table_keep(void *context, const struct debuginfo_table *table,
                                           bool *ret_is_stored, struct err *err);

/* Publishes a built table: reads it, writes its object, calls keep, and deletes the object if keep
 * has not stored the table. Errors: those of debuginfo_table_read, object_put and keep. */
enum err_code debuginfo_table_publish(struct server *server, struct debuginfo_table *table,
                                      debuginfo_table_keep *keep, void *context,
                                      struct err *err) MUST_USE;

/* Deletes an object that no row names; if that fails, it is swept later. */
void debuginfo_table_discard(struct server *server, const char *object_key);

/* Writes "quality": ["dwarf", "lines", …] for the bits of enum symbol_quality. */
void debuginfo_table_write_quality(struct json_response *json, uint32_t quality);

#endif

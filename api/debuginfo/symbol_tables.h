/*
 * symbol_tables: the symbol tables that a team may see: its own and the public ones, found by build
 * id, open and mapped while they are in use.
 *
 * A build id is text as senders give it: hexadecimal of a note's bytes, or Go's own text, which
 * becomes the hexadecimal of its bytes. Of a team's own table and the public one the better counts,
 * the own one where they are equal (symbol_quality_rank). Open tables are kept by
 * SYMBOL_TABLES_MAPPED_BYTES of mappings, of which only what was read is resident; one thread opens
 * a table, others wait. Threads: any.
 */
#ifndef API_DEBUGINFO_SYMBOL_TABLES_H
#define API_DEBUGINFO_SYMBOL_TABLES_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/symbols/symbol_table_facts.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct flight_entry;
struct pg_connection;
struct server;
struct symbol_table;
struct symbol_tables;

enum {
    SYMBOL_TABLES_ID_BYTES = 257,        /* a build id in hexadecimal, with NUL */
    SYMBOL_TABLES_FILE_CHARACTERS = 255, /* of a binary's name */
    SYMBOL_TABLES_STATUS_MAX = 1000,     /* binaries of one status */
    SYMBOL_TABLES_PREPARE_MAX = 4096,    /* binaries looked for at once */
    SYMBOL_TABLES_KEY_BYTES = 160,
};
#define SYMBOL_TABLES_MAPPED_BYTES (UINT64_C(4) << 30)

struct symbol_tables *symbol_tables_create(void);
void symbol_tables_destroy(struct symbol_tables *tables); /* NULL is a no-op */

/* The key of a build id as senders give it; false when it is none: empty, or too long. */
bool symbol_tables_id(struct span build_id, char ret_id[SYMBOL_TABLES_ID_BYTES]);

/* Tables with any of these, and all files that they are made of, need no better one: others are
 * looked for although there is a table. */
enum { SYMBOL_TABLES_GOOD = SYMBOL_HAS_LINES | SYMBOL_HAS_INLINES | SYMBOL_HAS_GO };

static inline bool symbol_tables_is_good(int64_t quality)
{
    return (quality & SYMBOL_TABLES_GOOD) && !(quality & SYMBOL_LACKS_SHARED);
}

/* ---- tables ---- */

struct symbol_tables_binary {
    struct span build_id; /* as the sender gave it; empty: it has none */
    struct span file;
};

/* A table in use, zeros where there is none. */
struct symbol_tables_ref {
    const struct symbol_table *table; /* NULL: there is none that the team may see */
    const char *key; /* of these very bytes, for what is kept of them; lives as long as the ref */
    bool is_public;
    struct flight_entry *entry;
};

/*
 * The table of a build id, which the caller gives back. None is no error; one that is not good is
 * noted as a need (symbol_tables_need), so that a better one is looked for. Handles: ERR_DATABASE,
 * ERR_IO, ERR_CORRUPT, ERR_BUSY (what flight_cache_ref and object_open handle).
 */
enum err_code symbol_tables_ref(struct server *server, int64_t tenant_id, struct span build_id,
                                struct symbol_tables_ref *ret_ref, struct err *err) MUST_USE;
/* Finds out in one question to the database which of these binaries have tables: symbol_tables_ref
 * need not ask for each then. Of SYMBOL_TABLES_PREPARE_MAX at most. Handles: ERR_DATABASE,
 * ERR_BUSY. */
enum err_code symbol_tables_prepare(struct server *server, int64_t tenant_id,
                                    const struct symbol_tables_binary *binaries, uint32_t count,
                                    struct err *err) MUST_USE;
/* A ref of zeros is a no-op. */
void symbol_tables_unref(struct symbol_tables_ref *ref);

/*
 * Grows whenever tables that the team may see have changed, on whichever server: asked of the
 * database once a second at most, so that it may be behind for that long, and stays what it was
 * while the database is away. Never 0, which is the generation of those who know no names.
 */
uint64_t symbol_tables_generation(struct server *server, int64_t tenant_id);
/* What the database said in passing. True when it is later than what answers were made of so far.
 */
bool symbol_tables_learn_generation(struct server *server, int64_t tenant_id, uint64_t number);
/* What this process changed itself: the next question asks the database. */
void symbol_tables_forget(struct server *server, int64_t tenant_id);

/* ---- what is missing ---- */

/*
 * Notes that somebody wants names of these binaries and there is no table. Costs a look into
 * memory; what was not noted in the last minutes is written soon by the background work. What does
 * not fit is left out: whoever asks again notes it again.
 */
void symbol_tables_need(struct server *server, int64_t tenant_id,
                        const struct symbol_tables_binary *binaries, uint32_t count);

enum symbol_tables_state {
    SYMBOL_TABLES_READY,   /* there is a table, and no better one is being made */
    SYMBOL_TABLES_PENDING, /* it is being fetched or built, waits for that, or came just now from
                            * another server, so that an answer may have been made without it */
    SYMBOL_TABLES_MISSING
};

struct symbol_tables_status {
    enum symbol_tables_state state;
    const char *build_id;  /* as in symbol_tables_id; "" where it has none */
    const char *file;      /* as asked */
    const char *reason;    /* of what is missing, for people; "" otherwise */
    int64_t next_retry_ms; /* since 1970; 0: nobody will try by itself */
};

/*
 * The state of each of the binaries, of which there are SYMBOL_TABLES_STATUS_MAX at most (what is
 * above is left out); ret_states has count entries and its texts live in arena. Handles:
 * ERR_DATABASE, ERR_BUSY.
 */
enum err_code symbol_tables_status(struct server *server, int64_t tenant_id,
                                   const struct symbol_tables_binary *binaries, uint32_t count,
                                   struct arena *arena,
                                   const struct symbol_tables_status **ret_states,
                                   struct err *err) MUST_USE;
/*
 * Appends {"complete": …, "pending": […], "missing": [{"build_id", "file", "reason",
 * "next_retry"}]} of them, the value of "symbolization" in answers. unlisted binaries more of which
 * nothing is known are told as "unlisted", and it is not complete then.
 */
void symbol_tables_write_status(const struct symbol_tables_status *states, uint32_t count,
                                uint32_t unlisted, struct buf *json);

/* Writes what was noted. Called by background work, often. */
enum err_code symbol_tables_write_needs(struct server *server, struct err *err) MUST_USE;

#endif

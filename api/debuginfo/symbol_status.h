/*
 * symbol_status: the state of the names of binaries, for responses: which have a symbol table,
 * which will get one, and why the others have none. Threads: any.
 */
#ifndef API_DEBUGINFO_SYMBOL_STATUS_H
#define API_DEBUGINFO_SYMBOL_STATUS_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdint.h>

struct arena;
struct build_id_binary;
struct server;

enum { SYMBOL_STATUS_MAX = 1000 }; /* binaries in one status */

enum symbol_status_state {
    SYMBOL_STATUS_READY,   /* there is a table, and no better one is being made */
    SYMBOL_STATUS_PENDING, /* a table is being fetched or built or is about to be, or there is one
                              that the response may lack: this process has just learned of it, or
                              the disk has no space to unpack it */
    SYMBOL_STATUS_MISSING
};

struct symbol_status {
    enum symbol_status_state state;
    const char *build_id;  /* in the form of build_id_normalize; "" if it has none */
    const char *file;      /* as in the request */
    const char *reason;    /* why it is missing, for people; "" otherwise */
    int64_t next_retry_ms; /* since 1970; 0: no automatic retry */
};

/* Finds the state of each of the binaries; ret_states has count entries, and its texts live in
 * arena. Only the first SYMBOL_STATUS_MAX with a build id are looked up, and further ones would be
 * reported as SYMBOL_STATUS_MISSING, so callers pass at most that many. Errors: ERR_DATABASE,
 * ERR_BUSY. */
enum err_code symbol_status_get(struct server *server, int64_t tenant_id,
                                const struct build_id_binary *binaries, uint32_t count,
                                struct arena *arena, const struct symbol_status **ret_states,
                                struct err *err) MUST_USE;
/* Appends the states as JSON, the value of "symbolization" in responses: {"complete": …,
 * "pending": […], "missing": [{"build_id", "file", "reason", "next_retry"}]}. If unlisted > 0, that
 * many further binaries are reported as "unlisted", and complete is false. */
void symbol_status_write(const struct symbol_status *states, uint32_t count, uint32_t unlisted,
                         struct buf *json);

#endif

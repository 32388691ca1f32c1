/*
 * symbol_client: the requests about symbol tables: what the server has for a build id, and uploads
 * of a table or a debug file, in parts if it is large.
 *
 * The requests are those of `perfolio debuginfo` (api/openapi.yaml). The token needs the scope
 * debuginfo. Nothing is retried here. Threads: one.
 */
#ifndef AGENT_UPLOAD_SYMBOL_CLIENT_H
#define AGENT_UPLOAD_SYMBOL_CLIENT_H

#include "agent/upload/server_config.h"
#include "lib/base/err_code.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct symbol_client;

enum symbol_client_state { SYMBOL_CLIENT_MISSING, SYMBOL_CLIENT_PENDING, SYMBOL_CLIENT_READY };

struct symbol_client_status {
    enum symbol_client_state state;
    bool has_own_table; /* the team has its own table; the next two describe it */
    uint32_t quality_rank;
    uint32_t builder_version;
};

/* A file to upload: the first `bytes` bytes of fd. */
struct symbol_client_file {
    const char *build_id;
    const char *kind; /* "table" or "debuginfo" */
    const char *name; /* its name on the server: the path as the process sees it */
    int fd;
    uint64_t bytes;
};

/* is_ending cancels a request when it becomes true. It and the texts of access are borrowed.
 * Errors: ERR_INVALID (the server's address), ERR_NOT_FOUND, ERR_IO (ca_file). */
enum err_code symbol_client_create(const struct server_config *access, const atomic_bool *is_ending,
                                   struct symbol_client **ret_service, struct err *err) MUST_USE;
void symbol_client_destroy(struct symbol_client *service); /* NULL is a no-op */

/*
 * Errors of both: ERR_NETWORK (the certificate, too), ERR_TIMEOUT, ERR_BUSY (retry
 * later, after err->retry_after_s if not 0), ERR_FORBIDDEN, ERR_UNAUTHENTICATED (the token),
 * ERR_UNSUPPORTED (the server has no symbol tables), ERR_INVALID, ERR_TOO_LARGE (it refuses
 * this file), ERR_CANCELLED.
 */
enum err_code symbol_client_query(struct symbol_client *service, const char *build_id,
                                  struct symbol_client_status *ret_status,
                                  struct err *err) MUST_USE;
enum err_code symbol_client_send(struct symbol_client *service,
                                 const struct symbol_client_file *file, struct err *err) MUST_USE;

#endif

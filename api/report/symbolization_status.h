/*
 * symbolization_status: the binaries of one or several profiles that still lack names, in the form
 * of responses: the value of "symbolization" (api/debuginfo/symbol_tables.h). A binary that two
 * profiles lack is listed once. Threads: an object belongs to one thread.
 */
#ifndef API_REPORT_SYMBOLIZATION_STATUS_H
#define API_REPORT_SYMBOLIZATION_STATUS_H

#include "api/http/request.h"

struct profile;
struct symbol_status;
struct symbolize_binary;

/* Zeroed at first; lives in the request's arena. */
struct symbolization_status {
    struct symbol_status *states;
    uint32_t count;
    uint32_t unlisted_count; /* binaries that are not in states: they lack names, or did so when the
                                profile was uploaded. A lower bound */
};

/* Adds the states of these binaries of a tenant. Errors: ERR_DATABASE, ERR_BUSY. */
enum err_code symbolization_status_add(struct request *request, int64_t tenant_id,
                                       const struct symbolize_binary *binaries, uint32_t count,
                                       struct symbolization_status *status,
                                       struct err *err) MUST_USE;
/* As symbolization_status_add for the binaries of a profile with addresses without names. */
enum err_code symbolization_status_add_profile(struct request *request, int64_t tenant_id,
                                               const struct profile *profile,
                                               struct symbolization_status *status,
                                               struct err *err) MUST_USE;

/* For a profile from which names were left out because the disk has no space for a symbol table
 * now: the status is not complete, even if there is space meanwhile. */
void symbolization_status_note_incomplete(struct symbolization_status *status);

/* Writes {"pending","missing","complete"}, and "unlisted" if some binaries are not listed, as JSON
 * in the request's arena. NULL: the text would be too long. */
const char *symbolization_status_write(struct request *request,
                                       const struct symbolization_status *status);

/* Handles GET /api/v1/symbolization?build_id=…: responds with the states of a team's binaries and
 * the generation of its symbol tables, for a page that waits for names. */
enum err_code symbolization_status_handle(struct request *request, struct response *response,
                                          struct err *err) MUST_USE;

#endif

/*
 * share_symbolization: finds the binaries of shares that lack names, and the generation of the
 * symbol tables that name them.
 *
 * Computed from the summary (api/share/share_summary.h), so that nothing is decoded. Threads: any.
 */
#ifndef API_SHARE_SHARE_SYMBOLIZATION_H
#define API_SHARE_SHARE_SYMBOLIZATION_H

#include "api/http/request.h"

struct flight_entry;
struct share;

/* *ret_generation is the sum of the generations of the symbol tables of these shares, which changes
 * when their names may have changed; 0 if no symbol table can matter. *ret_json is
 * {"complete","pending","missing"} of all shares together, in the request's arena; NULL: it would
 * be too long. lacks_names: some were left out of the profiles (profile_cache_is_incomplete), so
 * "complete" is false. Errors: ERR_DATABASE, ERR_BUSY. */
enum err_code share_symbolization_describe(struct request *request, const struct share *shares,
                                           size_t count, bool lacks_names, uint64_t *ret_generation,
                                           const char **ret_json, struct err *err) MUST_USE;

/* As profile_cache_ref, for a request that needs the decoded profile and makes no report: takes a
 * concurrency slot and memory of the gate first, as a report does. Errors: ERR_BUSY, ERR_GONE,
 * ERR_TOO_LARGE. */
enum err_code share_symbolization_ref_profile(struct request *request, const struct share *share,
                                              struct flight_entry **ret_entry,
                                              struct err *err) MUST_USE;

/* GET /api/v1/shares/{id}/symbolization: the state and the generation, for a page that waits. */
enum err_code share_symbolization_handle(struct request *request, struct response *response,
                                         struct err *err) MUST_USE;

#endif

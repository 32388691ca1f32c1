/*
 * symbol_resolver: finds the names of addresses in symbol tables (api/debuginfo/symbol_tables.h).
 * The store calls it while it computes the result of a query, and api/share when it has decoded the
 * profile of a share.
 *
 * Stored data never contains these names, so that a table that arrives later names old data. The
 * display forms of names are cached for recently used tables. The result for an address is not
 * cached: finding it takes less time than caching it. Binaries without a table are noted
 * (missing_symbols_note). Threads: any.
 */
#ifndef API_REPORT_SYMBOL_RESOLVER_H
#define API_REPORT_SYMBOL_RESOLVER_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"
#include "lib/symbols/symbol_name_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct frame_resolver;
struct symbol_resolver;
struct profile;
struct server;
struct symbol_status;
struct symbolize_binary;

/* Short names are the default, as in pprof: full names of C++ and Rust are longer than a frame is
 * wide, and to a user who looks for where time goes, all instances of a template are one function.
 */
static const enum symbol_name_format_mode symbol_resolver_mode_default = SYMBOL_NAME_FORMAT_SIMPLE;

/* max_bytes bounds the cached names; 0: 64 MiB. server is not used before the first request, so its
 * other parts may be created later. */
struct symbol_resolver *symbol_resolver_create(struct server *server, size_t max_bytes);
void symbol_resolver_destroy(struct symbol_resolver *symbol_resolver); /* NULL is a no-op */

/* The resolver for the store; lives as long as symbol_resolver. Two modes never have the same
 * generation, so cached results of one mode are not used for another. */
const struct frame_resolver *symbol_resolver_resolver(const struct symbol_resolver *symbol_resolver,
                                                      enum symbol_name_format_mode mode);

/* Adds names to a tenant's profile: *ret_named has its new parts in arena and borrows the rest from
 * profile. Names with lines that came with the profile stay; names without lines are replaced.
 * *ret_is_incomplete: names were left out because the disk has no space for a table now.
 * Errors: ERR_DATABASE, ERR_BUSY, ERR_TOO_LARGE (more than max_bytes in arena and for a query). */
enum err_code symbol_resolver_profile(struct symbol_resolver *symbol_resolver, int64_t tenant_id,
                                      enum symbol_name_format_mode mode,
                                      const struct profile *profile, uint64_t max_bytes,
                                      struct arena *arena, struct profile *ret_named,
                                      bool *ret_is_incomplete, struct err *err) MUST_USE;

/* Notes which of a profile's binaries need a table, so that the tables are looked for before
 * anybody views the profile. A binary that was noted in the last ten minutes costs one look-up in
 * memory. */
void symbol_resolver_note(struct symbol_resolver *symbol_resolver, int64_t tenant_id,
                          const struct profile *profile);

/* Finds whether these binaries have names. *ret_states is in arena and has at most
 * SYMBOL_STATUS_MAX entries. Errors: ERR_DATABASE, ERR_BUSY. */
enum err_code symbol_resolver_find_states(struct server *server, int64_t tenant_id,
                                          const struct symbolize_binary *binaries, uint32_t count,
                                          struct arena *arena,
                                          const struct symbol_status **ret_states,
                                          uint32_t *ret_count, struct err *err) MUST_USE;

#endif

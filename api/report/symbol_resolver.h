/*
 * naming: names of addresses from symbol tables (api/debuginfo/symbol_tables.h), for whoever shows
 * profiles: the store, which asks while it answers a question, and shares, when their profile is
 * read.
 *
 * Nothing that is stored has these names, so that a table that comes later names what is old. What
 * is kept are names as they are shown, of tables asked lately, so that each is expanded and cut
 * once; an address itself is found in less time than it takes to remember it. Binaries without a
 * table are noted (symbol_tables_need). Threads: any.
 */
#ifndef API_REPORT_SYMBOL_RESOLVER_H
#define API_REPORT_SYMBOL_RESOLVER_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/symbols/symbol_name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct frame_resolver;
struct symbol_resolver;
struct profile;
struct server;
struct symbol_tables_status;
struct symbolize_binary;

/* As pprof shows them: full names of C++ and Rust are longer than a frame is wide, and copies of a
 * template for each type are one function to who looks for what takes time. */
static const enum symbol_name_mode symbol_resolver_mode_default = SYMBOL_NAME_SIMPLE;

/* server is not used before the first question. max_bytes of names; 0: 64 MiB. */
struct symbol_resolver *symbol_resolver_create(struct server *server, size_t max_bytes);
void symbol_resolver_destroy(struct symbol_resolver *symbol_resolver); /* NULL is a no-op */

/* For the store; lives as long as naming. Generations of the modes are never equal. */
const struct frame_resolver *symbol_resolver_resolver(const struct symbol_resolver *symbol_resolver,
                                                      enum symbol_name_mode mode);

/*
 * A tenant's profile with names, whose new parts live in arena; the rest is borrowed from profile.
 * What came with the profile stays, but names alone make place for lines. Handles: ERR_DATABASE,
 * ERR_BUSY.
 */
enum err_code symbol_resolver_profile(struct symbol_resolver *symbol_resolver, int64_t tenant_id,
                                      enum symbol_name_mode mode, const struct profile *profile,
                                      struct arena *arena, struct profile *ret_named,
                                      struct err *err) MUST_USE;

/* Notes which of a profile's binaries need a table, so that it is looked for before anybody looks
 * at the profile. Of what was noted in the last minutes costs a look into memory. */
void symbol_resolver_note(struct symbol_resolver *symbol_resolver, int64_t tenant_id,
                          const struct profile *tables);

/* What became of names for these binaries, in arena; of SYMBOL_TABLES_STATUS_MAX at most.
 * Handles: ERR_DATABASE, ERR_BUSY. */
enum err_code symbol_resolver_find_states(struct server *server, int64_t tenant_id,
                                          const struct symbolize_binary *binaries, uint32_t count,
                                          struct arena *arena,
                                          const struct symbol_tables_status **ret_states,
                                          uint32_t *ret_count, struct err *err) MUST_USE;

#endif

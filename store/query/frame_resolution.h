/*
 * frame_resolution: looks up names for a profile's addresses with a struct frame_resolver.
 *
 * It looks up the locations without a function name that are in a binary with a build id or a file
 * name: one lookup per binary, addresses ascending and distinct. A location whose address is
 * unknown keeps its binary and address; reports show these, and a later query looks it up again.
 * Nothing is cached here. Cost: a sort of these addresses and, where names were found, a copy of
 * the tables. An address may have hundreds of frames, so the caller can limit their memory. Private
 * to store/; store/types.h describes the resolver.
 */
#ifndef STORE_QUERY_FRAME_RESOLUTION_H
#define STORE_QUERY_FRAME_RESOLUTION_H

#include "lib/base/err_code.h"

#include <stddef.h>
#include <stdint.h>

struct arena;
struct profile;
struct frame_resolver;
struct store_symbolization;

/* Where a query's memory is checked; see check_memory in lib/profile/symbolize.h. */
struct names_memory {
    void *context;
    enum err_code (*check)(void *context, size_t bytes, struct err *err);
};

/* Sets *ret_named to tables with names. Its new parts are in arena, and its samples are those of
 * tables; locations and mappings keep their numbers. Adds to the counts in names, also if resolver
 * is NULL. memory NULL: the names have no limit. Errors: what the resolver and memory->check
 * return. */
enum err_code frame_resolution_resolve(const struct frame_resolver *resolver, int64_t tenant_id,
                                       const struct names_memory *memory,
                                       const struct profile *tables, struct arena *arena,
                                       struct profile *ret_named, struct store_symbolization *names,
                                       struct err *err) MUST_USE;

#endif

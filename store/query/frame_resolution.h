/*
 * frame_names: names of a profile's addresses, asked of whoever knows them (struct frame_resolver).
 *
 * Asked are the locations without the name of any function that lie in a binary with a build id or
 * a file name, one question per binary, addresses ascending and distinct. What is not known stays
 * as it is: binary and address, which a report shows and a later question asks again. Nothing is
 * kept here. Cost: a sort of these addresses, and where some got names a copy of the tables.
 * Private to the room; store/store.h describes the resolver.
 */
#ifndef STORE_QUERY_FRAME_RESOLUTION_H
#define STORE_QUERY_FRAME_RESOLUTION_H

#include "lib/base/err.h"

#include <stdint.h>

struct arena;
struct profile;
struct frame_resolver;
struct store_symbolization;

/*
 * *ret_named is tables with names, whose new parts live in arena and whose samples are those of
 * tables; locations and mappings keep their numbers. names is added to, also without a resolver.
 * Handles: what the resolver gives.
 */
enum err_code frame_resolution_resolve(const struct frame_resolver *resolver, int64_t tenant_id,
                                       const struct profile *tables, struct arena *arena,
                                       struct profile *ret_named, struct store_symbolization *names,
                                       struct err *err) MUST_USE;

#endif

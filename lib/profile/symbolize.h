/*
 * symbolize: adds function names to the addresses of a profile, using a resolver.
 *
 * The resolver is queried for locations without a function name that are in a binary with a build
 * id or a file name: one query per 2,048 addresses of a mapping, which are ascending and distinct.
 * Unknown addresses stay as they are; reports show them as binary and address, and a later call
 * queries them again. Names that came with the profile are kept. On request, names without file and
 * line are replaced by results that have lines.
 *
 * Addresses are used unchanged: pprof requires addresses inside of calls, not return addresses, so
 * the addresses of callers need no correction.
 *
 * Cost: sorting the addresses and, if any were resolved, a copy of the tables. A name may take much
 * more memory than its address, because an address has a frame for each inlined call; check_memory
 * can end the call. Threads: any.
 */
#ifndef LIB_PROFILE_SYMBOLIZE_H
#define LIB_PROFILE_SYMBOLIZE_H

#include "lib/profile/profile.h"

/* A call at an address. */
struct symbolize_frame {
    struct span function;    /* for display; not empty */
    struct span system_name; /* linkage name; empty: the same */
    struct span file;        /* may be empty */
    int64_t line;            /* line of the call; 0: unknown */
    int64_t start_line;      /* line where the function begins */
};

/* The frames of an address: inlined calls leaf first, the containing function last. */
struct symbolize_frames {
    const struct symbolize_frame *frames;
    uint32_t count; /* 0: unknown, or not yet known */
};

/* A query for addresses of one mapping. Either build_id or file may be empty, but not both. */
struct symbolize_query {
    struct span build_id;
    struct span file;
    const struct profile_mapping *mapping;
    const uint64_t *addresses; /* address - mapping->start + mapping->offset */
    uint32_t address_count;
};

/* A binary that has addresses without names. Texts are borrowed from the profile. */
struct symbolize_binary {
    struct span build_id; /* may be empty */
    struct span file;
    uint32_t address_count; /* number of locations */
};

/* Mappings whose addresses are queried; those of further mappings stay without names. A merge of a
 * whole fleet has some thousands, an invented profile may have millions. */
enum { SYMBOLIZE_MAX_MAPPINGS = 16384 };

struct symbolize_resolver {
    void *context;
    /* Called with all binaries before the first query, if there are several, so that their
     * symbols can be fetched at once. May be NULL. Errors: any, like resolve. */
    enum err_code (*prepare)(void *context, const struct symbolize_binary *binaries, uint32_t count,
                             struct err *err);
    /* results[i] belongs to addresses[i] and is zero at first; what it points to is in arena. An
     * unknown address is not an error. An error ends the whole call. */
    enum err_code (*resolve)(void *context, const struct symbolize_query *query,
                             struct arena *arena, struct symbolize_frames *results,
                             struct err *err);
    /* Called after each query with the bytes in the arena of the result and of the query. May be
     * NULL. An error ends the whole call. */
    enum err_code (*check_memory)(void *context, size_t bytes, struct err *err);
};

/* Counts of queried addresses; calls add to them. */
struct symbolize_counts {
    uint32_t address_count;
    uint32_t unknown_count;
};

enum symbolize_scope {
    SYMBOLIZE_UNNAMED,       /* locations without a name */
    SYMBOLIZE_WITHOUT_LINES, /* also locations that have only a name */
};

/*
 * Makes *ret_named, a copy of profile with names. Its new parts are in arena; its samples and
 * unchanged tables are those of profile. Locations and mappings keep their indexes. A NULL resolver
 * resolves nothing. Locations with new lines are marked (is_named_later); their previous lines stay
 * in the tables (sent_locations). Errors: those of the resolver.
 */
enum err_code symbolize_profile(const struct symbolize_resolver *resolver,
                                enum symbolize_scope scope, const struct profile *profile,
                                struct arena *arena, struct profile *ret_named,
                                struct symbolize_counts *counts, struct err *err) MUST_USE;

/* Whether symbolize_profile would query any address. */
bool symbolize_wants(const struct profile *profile, enum symbolize_scope scope);

/* Lists the binaries that would be queried, in the order of mappings, each once. In arena. */
uint32_t symbolize_find_binaries(const struct profile *profile, struct arena *arena,
                                 const struct symbolize_binary **ret_binaries);

#endif

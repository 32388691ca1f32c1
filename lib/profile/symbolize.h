/*
 * symbolize: adds function names to the addresses of a profile, using a resolver.
 *
 * The resolver is queried for locations without a function name that are in a binary with a build
 * id or a file name. One query contains up to 2,048 addresses of one mapping, ascending and
 * distinct. Unknown addresses stay as they are; reports show them as binary and address, and a
 * later call queries them again. Names that came with the profile are kept, except with
 * SYMBOLIZE_WITHOUT_LINES: then names without file and line are replaced by results with lines.
 *
 * Addresses are only converted to offsets in the file: pprof requires addresses inside of calls,
 * not return addresses, so the addresses of callers need no correction by 1.
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
    const uint64_t *addresses; /* offsets in the file: address - mapping->start + mapping->offset */
    uint32_t address_count;
};

/* A binary that has addresses without names. Texts are borrowed from the profile; one of them may
 * be empty, but not both. */
struct symbolize_binary {
    struct span build_id;
    struct span file;
    uint32_t address_count; /* number of locations */
};

/* The maximum number of mappings whose addresses are queried; addresses of further mappings stay
 * without names. A merge of a whole fleet has some thousands of mappings, a hostile profile may
 * have millions. */
enum { SYMBOLIZE_MAX_MAPPINGS = 16384 };

struct symbolize_resolver {
    void *context;
    /* Called before the first query, if several mappings have addresses to query, so that their
     * symbols can be fetched at once. binaries has one entry per such mapping; a binary with
     * several mappings occurs several times. May be NULL. An error ends the whole call. */
    enum err_code (*prepare)(void *context, const struct symbolize_binary *binaries, uint32_t count,
                             struct err *err);
    /* Sets results[i] for query->addresses[i]; it is zero (unknown) before. Its frames and texts
     * are allocated in arena, which is freed after the query; symbolize copies them. An unknown
     * address is not an error. An error ends the whole call. */
    enum err_code (*resolve)(void *context, const struct symbolize_query *query,
                             struct arena *arena, struct symbolize_frames *results,
                             struct err *err);
    /* Called after each query with the memory of the whole result so far and of the query, so that
     * a caller with a budget can end the call with an error. May be NULL. */
    enum err_code (*check_memory)(void *context, size_t bytes, struct err *err);
};

/* Calls of symbolize_profile add to these. */
struct symbolize_counts {
    /* distinct addresses that were queried, plus the locations beyond SYMBOLIZE_MAX_MAPPINGS */
    uint32_t address_count;
    uint32_t unknown_count; /* those without a result */
};

enum symbolize_scope {
    SYMBOLIZE_UNNAMED,       /* locations without a name */
    SYMBOLIZE_WITHOUT_LINES, /* also named ones without file and line, in binaries with a build id
                              */
};

/*
 * Makes *ret_named, a copy of profile with names. Its new parts are in arena; its samples and
 * unchanged tables are those of profile, which must live as long. Locations and mappings keep their
 * indexes. With a NULL resolver all addresses are unknown. Locations with new lines are marked
 * (is_named_later); their previous lines stay in the tables (sent_locations). Errors: those of the
 * resolver.
 */
enum err_code symbolize_profile(const struct symbolize_resolver *resolver,
                                enum symbolize_scope scope, const struct profile *profile,
                                struct arena *arena, struct profile *ret_named,
                                struct symbolize_counts *counts, struct err *err) MUST_USE;

/* Whether symbolize_profile would query any address. */
bool symbolize_wants(const struct profile *profile, enum symbolize_scope scope);

/* Lists the binaries with locations that SYMBOLIZE_UNNAMED selects, each once, in the order of
 * mappings, in arena. Returns their number. SYMBOLIZE_MAX_MAPPINGS does not apply. */
uint32_t symbolize_find_binaries(const struct profile *profile, struct arena *arena,
                                 const struct symbolize_binary **ret_binaries);

#endif

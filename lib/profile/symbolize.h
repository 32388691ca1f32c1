/*
 * symbolize: names for a profile's addresses, asked of whoever knows them.
 *
 * Asked are the locations without the name of any function that lie in a binary with a build id or
 * a file name, one question per mapping, addresses ascending and distinct. What is not known stays
 * as it is: binary and address, which a report shows and a later question asks again. Names that
 * came with the profile stay; on demand, those that are names alone, without file and line, make
 * place for answers that have lines.
 *
 * An address is taken as it is: profiles have, as pprof wants it, addresses within calls and not
 * those behind them, so that a caller's needs no correction.
 *
 * Cost: a sort of the addresses, and where some got names a copy of the tables. Threads: any.
 */
#ifndef LIB_PROFILE_SYMBOLIZE_H
#define LIB_PROFILE_SYMBOLIZE_H

#include "lib/profile/profile.h"

/* A call at an address. */
struct symbolize_frame {
    struct span function;    /* as people read it; not empty */
    struct span system_name; /* as linkers do; empty: the same */
    struct span file;        /* may be empty */
    int64_t line;            /* of the call; 0: unknown */
    int64_t start_line;      /* of the function */
};

/* What an address is: inlined calls leaf first, the function that they are in last. */
struct symbolize_frames {
    const struct symbolize_frame *frames;
    uint32_t count; /* 0: not known, or not yet */
};

/* Addresses of one mapping. Either of build_id and file may be empty, not both. */
struct symbolize_question {
    struct span build_id;
    struct span file;
    const struct profile_mapping *mapping;
    const uint64_t *addresses; /* address - mapping->start + mapping->offset */
    uint32_t address_count;
};

/* A binary some of whose addresses have no name; texts are the profile's. */
struct symbolize_binary {
    struct span build_id; /* may be empty */
    struct span file;
    uint32_t address_count; /* locations */
};

struct symbolize_resolver {
    void *context;
    /* Told of all binaries before the first of them is asked about, where there are several, so
     * that what is known of them is fetched at once. May be NULL. Handles: any, as resolve. */
    enum err_code (*prepare)(void *context, const struct symbolize_binary *binaries, uint32_t count,
                             struct err *err);
    /* answers[i] is of addresses[i], zeros to begin with; what it points to lives in arena. Not to
     * know is no error. Handles: any; it is that of the whole. */
    enum err_code (*resolve)(void *context, const struct symbolize_question *question,
                             struct arena *arena, struct symbolize_frames *answers,
                             struct err *err);
};

/* What became of the addresses that were asked; added to. */
struct symbolize_counts {
    uint32_t address_count;
    uint32_t unknown_count;
};

enum symbolize_scope {
    SYMBOLIZE_UNNAMED,       /* what has no name */
    SYMBOLIZE_WITHOUT_LINES, /* and what has no more than a name */
};

/*
 * *ret_named is profile with names: its new parts live in arena, its samples and what did not
 * change are those of profile; locations and mappings keep their numbers. resolver NULL: nobody
 * knows anything. Locations that got other lines are marked (is_named_later); those that they came
 * with stay in the tables (sent_locations). Handles: what the resolver gives.
 */
enum err_code symbolize_profile(const struct symbolize_resolver *resolver,
                                enum symbolize_scope scope, const struct profile *profile,
                                struct arena *arena, struct profile *ret_named,
                                struct symbolize_counts *counts, struct err *err) MUST_USE;

/* Would anything be asked? */
bool symbolize_wants(const struct profile *profile, enum symbolize_scope scope);

/* The binaries whose addresses would be asked, in the order of mappings, each once. In arena. */
uint32_t symbolize_find_binaries(const struct profile *profile, struct arena *arena,
                                 const struct symbolize_binary **ret_binaries);

#endif

/*
 * unwind_space: what the walker reads: rules, chunks and shards, filled from here while it walks.
 *
 * The memory is that of BPF maps that the loader made and mapped, or plain memory in tests. What
 * is added is written whole before its place is told. What is removed is kept for UNWIND_GRACE_NS,
 * since a walk may be using it, and free after the next unwind_maps_reclaim(): so are the rules
 * that no other table has (unwind_rules.h), and shards that have nothing in them are given up.
 * Bytes of shards are shared fairly by those whose tables and mappings they hold (fair_quota.h);
 * whatever has owner 0 is not asked. One thread; the walker needs no lock.
 */
#ifndef AGENT_UNWIND_UNWIND_MAPS_H
#define AGENT_UNWIND_UNWIND_MAPS_H

#include "agent/kernel/unwind_memory.h"
#include "agent/unwind/unwind_table.h"

enum { UNWIND_GRACE_NS = 1000000000 };

struct unwind_maps;

/* Memory stays the caller's and has to outlive the space. */
struct unwind_maps *unwind_maps_create(const struct unwind_memory *memory);
void unwind_maps_destroy(struct unwind_maps *space);

/* From now on no shard is made where there are as many already. */
void unwind_maps_limit_shards(struct unwind_maps *space, uint32_t shard_limit);

/* Where a table is. */
struct unwind_table_ref {
    uint64_t start; /* ELF address of its begin: a mapping's bias is load bias + start */
    uint32_t first_chunk;
    uint16_t chunk_count;
};

/*
 * A place for a table that is to come, of that begin and so many chunks (unwind_table_plan): its
 * code is walked by frame pointers until it is filled, and whoever was told the place before has
 * the table then. Its rows will be the owner's. Handles: ERR_LIMIT (no room; counted as refused).
 */
enum err_code unwind_maps_reserve(struct unwind_maps *space, uint64_t owner, uint64_t start,
                                  uint32_t chunk_count, struct unwind_table_ref *ret_ref,
                                  struct err *err) MUST_USE;
/*
 * Copies it in, so that the caller may destroy it then. The place stays as it was when it fails.
 * Rows whose rules there was no room for stop with UNWIND_STOP_RULES_FULL; then, and only then, the
 * place may be filled once more, and runs that name it have to be put anew, since walks remember.
 * Handles: ERR_LIMIT (no room for rows, or not for this owner's; counted as refused), ERR_INVALID
 * (it is not as it was planned).
 */
enum err_code unwind_maps_fill(struct unwind_maps *space, const struct unwind_table_ref *ref,
                               const struct unwind_table *table, int64_t now_ns,
                               struct err *err) MUST_USE;

/* Of the rules of a table that was filled. */
enum unwind_lack {
    UNWIND_LACKS_NOTHING,
    UNWIND_LACKS_NO_MORE,  /* there is room by now for those that were lacking */
    UNWIND_LACKS_NOW,      /* there may be room one day */
    UNWIND_LACKS_FOR_GOOD, /* it has more than a table may bring */
};
enum unwind_lack unwind_maps_lack(const struct unwind_maps *space,
                                  const struct unwind_table_ref *ref);

/* Both at once, of no owner. Handles: ERR_LIMIT. */
enum err_code unwind_maps_add_table(struct unwind_maps *space, const struct unwind_table *table,
                                    struct unwind_table_ref *ret_ref, struct err *err) MUST_USE;
/* No run that is still in use may name it. */
void unwind_maps_remove_table(struct unwind_maps *space, const struct unwind_table_ref *ref,
                              int64_t now_ns);

/* Is so much taken that it is asked whose a run is? */
bool unwind_maps_is_counted(const struct unwind_maps *space);
/*
 * Copies the executable mappings of an address space in: starts ascending, no overlap. dropped: how
 * many there are in a run of the same owner that goes for it: they are not counted against him.
 * Handles: ERR_LIMIT (no room, or not for this owner), ERR_TOO_LARGE (more than UNWIND_RUN_MAX).
 */
enum err_code unwind_maps_put_run(struct unwind_maps *space, uint64_t owner, uint32_t dropped,
                                  const uint64_t *starts, const struct unwind_mapping *mappings,
                                  uint32_t count, struct unwind_run *ret_run,
                                  struct err *err) MUST_USE;
/* owner: as it was put. */
void unwind_maps_drop_run(struct unwind_maps *space, uint64_t owner, const struct unwind_run *run,
                          int64_t now_ns);

/* Frees what was removed long enough ago. */
void unwind_maps_reclaim(struct unwind_maps *space, int64_t now_ns);

struct unwind_maps_stats {
    uint32_t shard_count;
    uint32_t chunk_count;
    uint32_t rule_count;
    uint32_t refused_count; /* tables and runs without room */
    uint64_t shard_bytes;   /* of all shards */
    uint64_t used_bytes;    /* of them, with what waits to be freed */
    uint64_t waiting_bytes;
};

void unwind_maps_stats_get(const struct unwind_maps *space, struct unwind_maps_stats *ret_stats);

#endif

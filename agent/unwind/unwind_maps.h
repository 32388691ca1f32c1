/*
 * unwind_maps: allocates and writes rules, chunks and shards (bpf/unwind_format.h) while the
 * unwinder reads them.
 *
 * The memory (agent/kernel/unwind_memory.h) belongs to BPF maps that the loader created and mapped,
 * or it is plain memory in tests and in user_unwinder. The unwinder takes no lock:
 *   - New data is written completely before anything refers to it.
 *   - Removed data is kept for UNWIND_GRACE_NS, because an unwinder may be reading it, and is freed
 *     by the next unwind_maps_reclaim(), with the rules that no other table uses (unwind_rules.h).
 *     Empty shards are destroyed then.
 *
 * Quotas (fair_quota.h) limit the bytes of shards that the tables and mapping lists of one owner
 * take. Owner 0 has no quota. Threads: one.
 */
#ifndef AGENT_UNWIND_UNWIND_MAPS_H
#define AGENT_UNWIND_UNWIND_MAPS_H

#include "agent/kernel/unwind_memory.h"
#include "agent/unwind/unwind_table.h"

enum { UNWIND_GRACE_NS = 1000000000 };

struct unwind_maps;

/* The structure `memory` is copied; the memory it points to belongs to the caller and has to
 * outlive the maps. */
struct unwind_maps *unwind_maps_create(const struct unwind_memory *memory);
void unwind_maps_destroy(struct unwind_maps *maps); /* NULL is a no-op */

/* No further shard is created while there are shard_limit or more. */
void unwind_maps_limit_shards(struct unwind_maps *maps, uint32_t shard_limit);

/* The chunks that were reserved for a table. */
struct unwind_table_ref {
    uint64_t start; /* ELF address of its first byte: the bias of a mapping is load bias + start */
    uint32_t first_chunk;
    uint16_t chunk_count;
};

/*
 * Reserves the chunks of a table with that start and number of chunks (unwind_table_plan). Until
 * they are filled, the code of the table is unwound by frame pointers; mapping lists that refer to
 * them use the table from then on. The rows will count against the owner. Errors: ERR_LIMIT (no
 * space; counted as refused).
 */
enum err_code unwind_maps_reserve(struct unwind_maps *maps, uint64_t owner, uint64_t start,
                                  uint32_t chunk_count, struct unwind_table_ref *ret_ref,
                                  struct err *err) MUST_USE;
/*
 * Copies a table to its reserved chunks; `table` stays with the caller. On failure the chunks are
 * unchanged. Rows whose rules had no space end a stack with UNWIND_STOP_RULES_FULL. Only if there
 * are such rows, the chunks may be filled once more. Mapping lists that refer to the chunks have to
 * be put again afterwards, because the unwinder remembers rules by mapping list. Errors: ERR_LIMIT
 * (no space for the rows, or above the owner's quota; counted as refused), ERR_INVALID (the table
 * differs from the plan).
 */
enum err_code unwind_maps_fill(struct unwind_maps *maps, const struct unwind_table_ref *ref,
                               const struct unwind_table *table, int64_t now_ns,
                               struct err *err) MUST_USE;

/* Whether a filled table has all its rules. */
enum unwind_rules_state {
    UNWIND_RULES_COMPLETE,
    UNWIND_RULES_FIT_NOW,  /* rules are missing, and there is space for them now */
    UNWIND_RULES_NO_SPACE, /* rules are missing, and there is no space for them yet */
    UNWIND_RULES_TOO_MANY, /* rules are missing: more than one table may have */
};
enum unwind_rules_state unwind_maps_rules_state(const struct unwind_maps *maps,
                                                const struct unwind_table_ref *ref);

/* Reserves and fills, for owner 0. Errors: ERR_LIMIT. */
enum err_code unwind_maps_add_table(struct unwind_maps *maps, const struct unwind_table *table,
                                    struct unwind_table_ref *ret_ref, struct err *err) MUST_USE;
/* No mapping list in use may refer to the table. */
void unwind_maps_remove_table(struct unwind_maps *maps, const struct unwind_table_ref *ref,
                              int64_t now_ns);

/* Whether so much is used that quotas apply: unwind_maps_put_mappings then needs the owner. */
bool unwind_maps_is_counted(const struct unwind_maps *maps);
/*
 * Copies the executable mappings of a process: starts ascending, no overlap. dropped: the number of
 * mappings in the owner's list that the new list replaces; these do not count against the quota.
 * Errors: ERR_LIMIT (no space, or above the owner's quota), ERR_TOO_LARGE (more than
 * UNWIND_MAPPINGS_MAX).
 */
enum err_code unwind_maps_put_mappings(struct unwind_maps *maps, uint64_t owner, uint32_t dropped,
                                       const uint64_t *starts,
                                       const struct unwind_mapping *mappings, uint32_t count,
                                       struct unwind_mapping_list *ret_list,
                                       struct err *err) MUST_USE;
/* Removes a mapping list; its memory is kept for UNWIND_GRACE_NS. owner: as in
 * unwind_maps_put_mappings. */
void unwind_maps_drop_mappings(struct unwind_maps *maps, uint64_t owner,
                               const struct unwind_mapping_list *list, int64_t now_ns);

/* Frees data that was removed more than UNWIND_GRACE_NS ago. */
void unwind_maps_reclaim(struct unwind_maps *maps, int64_t now_ns);

struct unwind_maps_stats {
    uint32_t shard_count;
    uint32_t chunk_count;
    uint32_t rule_count;
    uint32_t refused_count; /* tables and mapping lists without space */
    uint64_t shard_bytes;   /* size of all shards */
    uint64_t used_bytes;    /* bytes in use, including removed ones that are not free yet */
    uint64_t waiting_bytes; /* removed bytes that are not free yet */
};

void unwind_maps_stats_get(const struct unwind_maps *maps, struct unwind_maps_stats *ret_stats);

#endif

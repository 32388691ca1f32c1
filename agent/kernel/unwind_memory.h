/*
 * unwind_memory: access to the memory of the unwind tables that the unwinder reads
 * (bpf/unwind_format.h), for the side that writes it (agent/unwind/unwind_maps.h) and for the side
 * that reads it in this process (agent/unwind/user_unwinder.h).
 *
 * The memory belongs to BPF maps (agent/kernel/kernel_program.h), or it is plain memory of this
 * process. Both structures are borrowed views: the owner of the memory outlives their users.
 */
#ifndef AGENT_KERNEL_UNWIND_MEMORY_H
#define AGENT_KERNEL_UNWIND_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unwind_chunk;
struct unwind_rule;

struct unwind_memory {
    struct unwind_rule *rules;   /* [UNWIND_RULE_COUNT + 1], zero */
    struct unwind_chunk *chunks; /* [UNWIND_CHUNK_COUNT], zero */
    /* Creates shard `index` of UNWIND_SHARD_BYTES, which the unwinder can read from then on. The
     * caller passes the lowest number without a shard. False: there is no memory for the shard. */
    bool (*shard_create)(void *context, uint32_t index);
    /* Frees a shard that contains nothing any more. NULL: all shards are kept. */
    void (*shard_destroy)(void *context, uint32_t index);
    /* Writes bytes into a shard; false when its memory cannot be mapped. The writer never reads the
     * bytes back. */
    bool (*shard_write)(void *context, uint32_t index, uint32_t offset, const void *bytes,
                        size_t size);
    void *context;
    uint32_t shard_limit; /* most shards at a time; at most UNWIND_SHARD_COUNT */
};

struct unwind_memory_reader {
    const struct unwind_rule *rules;
    const struct unwind_chunk *chunks;
    const uint8_t *(*shard)(void *context, uint32_t index); /* NULL: there is no such shard */
    void *context;
};

#endif

/*
 * unwind_memory: access to the memory of the unwind tables that the unwinder reads
 * (bpf/unwind_format.h), for the side that writes it (agent/unwind/unwind_maps.h) and for the side
 * that reads it in this process (agent/unwind/user_unwinder.h).
 *
 * The memory belongs to BPF maps (agent/kernel/kernel_program.h), or it is plain memory of this
 * process (user_unwinder). Both structures are borrowed views: the owner of the memory outlives
 * their users. UNWIND_* are constants of bpf/unwind_format.h; a new shard contains zeros.
 *
 * Threads: one. The functions are called on the thread that calls unwind_maps or user_unwinder;
 * only BPF programs read at the same time.
 */
#ifndef AGENT_KERNEL_UNWIND_MEMORY_H
#define AGENT_KERNEL_UNWIND_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unwind_chunk;
struct unwind_rule;

struct unwind_memory {
    struct unwind_rule *rules;   /* UNWIND_RULE_COUNT + 1 of them; all bytes are 0 at the start */
    struct unwind_chunk *chunks; /* UNWIND_CHUNK_COUNT of them; all bytes are 0 at the start */
    /* Creates the shard with this index, UNWIND_SHARD_BYTES long; the unwinder can read it from
     * then on. The caller passes the lowest index without a shard. False: there is no memory. */
    bool (*shard_create)(void *context, uint32_t index);
    /* Frees an empty shard. NULL: all shards are kept. */
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
    /* The first byte of a shard; valid until the shard is destroyed or, with the memory of BPF
     * maps, until kernel_program_unmap_shards. NULL: the shard does not exist or cannot be mapped.
     */
    const uint8_t *(*shard)(void *context, uint32_t index);
    void *context; /* passed to shard */
};

#endif

#include "agent/unwind/user_unwinder.h"

#include "agent/unwind/unwind_maps.h"
#include "agent/unwind/unwind_names.h"
#include "bpf/shared.h"
#include "lib/base/mem.h"

#include <assert.h>
#include <string.h>

struct unwind_source {
    struct unwind_memory_reader tables;
    struct span stack;
    uint64_t stack_start;
};

static const __u8 *unwind_source_shard(struct unwind_source *source, __u32 index)
{
    return source->tables.shard(source->tables.context, index);
}

static const struct unwind_rule *unwind_source_rule(struct unwind_source *source, __u32 index)
{
    return &source->tables.rules[index % UNWIND_RULE_COUNT];
}

static const struct unwind_chunk *unwind_source_chunk(struct unwind_source *source, __u32 index)
{
    return &source->tables.chunks[index % UNWIND_CHUNK_COUNT];
}

static struct unwind_memo *unwind_source_memo(struct unwind_source *source, __u32 index)
{
    (void)source, (void)index;
    return NULL; /* few stacks are walked here */
}

static int unwind_source_read(struct unwind_source *source, void *to, __u32 size, __u64 address)
{
    const uint64_t into = address - source->stack_start;
    if (into > source->stack.size || size > source->stack.size - into)
        return -1;
    memcpy(to, source->stack.data + into, size);
    return 0;
}

#include "bpf/unwind_core.h"

#ifdef __aarch64__
enum { FRAME_POINTER = 29 };
#define SIGNATURE_MASK (~((UINT64_C(1) << 48) - 1)) /* addresses of programs have 48 bits */
#else
enum { FRAME_POINTER = 6 }; /* rbp */
#define SIGNATURE_MASK UINT64_C(0)
#endif

struct user_unwinder {
    struct unwind_source source;
    /* Its own tables; NULL where they are another's. */
    struct unwind_rule *rules;
    struct unwind_chunk *chunks;
    uint8_t *shards[UNWIND_SHARD_COUNT];
    struct unwind_state state;
    uint64_t addresses[SAMPLE_USER_FRAMES_MAX];
};

static const uint8_t *own_shard(void *context, uint32_t index)
{
    const struct user_unwinder *walk = context;
    return index < UNWIND_SHARD_COUNT ? walk->shards[index] : NULL;
}

struct user_unwinder *user_unwinder_create(const struct unwind_memory_reader *tables)
{
    struct user_unwinder *walk = mem_new(struct user_unwinder, 1);
    if (tables) {
        walk->source.tables = *tables;
        return walk;
    }
    walk->rules = mem_new(struct unwind_rule, UNWIND_RULE_COUNT + 1);
    walk->chunks = mem_new(struct unwind_chunk, UNWIND_CHUNK_COUNT);
    walk->source.tables = (struct unwind_memory_reader){
        .rules = walk->rules, .chunks = walk->chunks, .shard = own_shard, .context = walk};
    return walk;
}

void user_unwinder_destroy(struct user_unwinder *walk)
{
    if (!walk)
        return;
    for (uint32_t i = 0; i < UNWIND_SHARD_COUNT; i++)
        mem_free(walk->shards[i]);
    mem_free(walk->rules);
    mem_free(walk->chunks);
    mem_free(walk);
}

static bool create_shard(void *context, uint32_t index)
{
    struct user_unwinder *walk = context;
    walk->shards[index] = mem_alloc(UNWIND_SHARD_BYTES, 1);
    return true;
}

static void destroy_shard(void *context, uint32_t index)
{
    struct user_unwinder *walk = context;
    mem_free(walk->shards[index]);
    walk->shards[index] = NULL;
}

static bool write_shard(void *context, uint32_t index, uint32_t offset, const void *bytes,
                        size_t size)
{
    struct user_unwinder *walk = context;
    memcpy(walk->shards[index] + offset, bytes, size);
    return true;
}

void user_unwinder_memory(struct user_unwinder *walk, struct unwind_memory *ret_memory)
{
    *ret_memory = (struct unwind_memory){.rules = walk->rules,
                                         .chunks = walk->chunks,
                                         .shard_create = create_shard,
                                         .shard_destroy = destroy_shard,
                                         .shard_write = write_shard,
                                         .context = walk,
                                         .shard_limit = UNWIND_SHARD_COUNT};
}

static enum unwind_stop go(struct user_unwinder *walk, uint32_t *ret_count)
{
    struct unwind_state *state = &walk->state;
    enum unwind_stop stop = UNWIND_GO_ON;
    uint32_t count = 0;
    while (!stop && count < SAMPLE_USER_FRAMES_MAX) {
        walk->addresses[count++] = unwind_address(state);
        stop = (enum unwind_stop)unwind_step(&walk->source, state);
        if (!stop && state->was_signal)
            walk->addresses[count - 1]++;
    }
    if (!stop)
        stop = UNWIND_STOP_FRAME_LIMIT;
    stop = unwind_end(state, stop, &count);
    *ret_count = count;
    return stop;
}

void user_unwinder_event(struct user_unwinder *walk, const struct unwind_run *run,
                         const struct stack_copy *copy, struct sample_event *event)
{
    uint32_t count;
    static_assert((int)STACK_REGISTERS_MAX >= (int)UNWIND_LEAF_REGISTERS, "all that are read");
    walk->source.stack = copy->bytes;
    walk->source.stack_start = copy->start;
    walk->state = (struct unwind_state){.pc = copy->pc,
                                        .sp = copy->registers[STACK_REGISTER_SP],
                                        .fp = copy->registers[FRAME_POINTER],
                                        .pac_mask = SIGNATURE_MASK};
    memcpy(walk->state.leaf, copy->registers, sizeof(walk->state.leaf));
    unwind_begin(&walk->state, run, 0);
    const enum unwind_stop stop = go(walk, &count);
    if (!unwind_stop_is_complete(stop) && count < event->user_count)
        return;
    event->stop = stop;
    event->user_count = count;
    memcpy(event->addresses, walk->addresses, count * sizeof(*event->addresses));
}

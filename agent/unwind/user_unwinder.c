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
    return NULL; /* few stacks are unwound here */
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
#define SIGNATURE_MASK (~((UINT64_C(1) << 48) - 1)) /* user addresses have 48 bits */
#else
enum { FRAME_POINTER = 6 }; /* rbp */
#define SIGNATURE_MASK UINT64_C(0)
#endif

struct user_unwinder {
    struct unwind_source source;
    /* Its own tables; NULL if source.tables belong to another module. */
    struct unwind_rule *rules;
    struct unwind_chunk *chunks;
    uint8_t *shards[UNWIND_SHARD_COUNT];
    struct unwind_state state;
    uint64_t addresses[SAMPLE_USER_FRAMES_MAX];
};

static const uint8_t *own_shard(void *context, uint32_t index)
{
    const struct user_unwinder *unwinder = context;
    return index < UNWIND_SHARD_COUNT ? unwinder->shards[index] : NULL;
}

struct user_unwinder *user_unwinder_create(const struct unwind_memory_reader *tables)
{
    struct user_unwinder *unwinder = mem_new(struct user_unwinder, 1);
    if (tables) {
        unwinder->source.tables = *tables;
        return unwinder;
    }
    unwinder->rules = mem_new(struct unwind_rule, UNWIND_RULE_COUNT + 1);
    unwinder->chunks = mem_new(struct unwind_chunk, UNWIND_CHUNK_COUNT);
    unwinder->source.tables = (struct unwind_memory_reader){.rules = unwinder->rules,
                                                            .chunks = unwinder->chunks,
                                                            .shard = own_shard,
                                                            .context = unwinder};
    return unwinder;
}

void user_unwinder_destroy(struct user_unwinder *unwinder)
{
    if (!unwinder)
        return;
    for (uint32_t i = 0; i < UNWIND_SHARD_COUNT; i++)
        mem_free(unwinder->shards[i]);
    mem_free(unwinder->rules);
    mem_free(unwinder->chunks);
    mem_free(unwinder);
}

static bool create_shard(void *context, uint32_t index)
{
    struct user_unwinder *unwinder = context;
    unwinder->shards[index] = mem_alloc(UNWIND_SHARD_BYTES, 1);
    return true;
}

static void destroy_shard(void *context, uint32_t index)
{
    struct user_unwinder *unwinder = context;
    mem_free(unwinder->shards[index]);
    unwinder->shards[index] = NULL;
}

static bool write_shard(void *context, uint32_t index, uint32_t offset, const void *bytes,
                        size_t size)
{
    struct user_unwinder *unwinder = context;
    memcpy(unwinder->shards[index] + offset, bytes, size);
    return true;
}

void user_unwinder_memory(struct user_unwinder *unwinder, struct unwind_memory *ret_memory)
{
    *ret_memory = (struct unwind_memory){.rules = unwinder->rules,
                                         .chunks = unwinder->chunks,
                                         .shard_create = create_shard,
                                         .shard_destroy = destroy_shard,
                                         .shard_write = write_shard,
                                         .context = unwinder,
                                         .shard_limit = UNWIND_SHARD_COUNT};
}

static enum unwind_stop unwind_stack(struct user_unwinder *unwinder, uint32_t *ret_count)
{
    struct unwind_state *state = &unwinder->state;
    enum unwind_stop stop = UNWIND_CONTINUE;
    uint32_t count = 0;
    while (!stop && count < SAMPLE_USER_FRAMES_MAX) {
        unwinder->addresses[count++] = unwind_address(state);
        stop = (enum unwind_stop)unwind_step(&unwinder->source, state);
        if (!stop && state->was_signal)
            unwinder->addresses[count - 1]++;
    }
    if (!stop)
        stop = UNWIND_STOP_FRAME_LIMIT;
    stop = unwind_end(state, stop, &count);
    *ret_count = count;
    return stop;
}

void user_unwinder_event(struct user_unwinder *unwinder, const struct unwind_mapping_list *list,
                         const struct stack_copy *copy, struct sample_event *event)
{
    uint32_t count;
    static_assert((int)STACK_REGISTERS_MAX >= (int)UNWIND_LEAF_REGISTERS,
                  "a copy has all registers that are read");
    unwinder->source.stack = copy->bytes;
    unwinder->source.stack_start = copy->start;
    unwinder->state = (struct unwind_state){.pc = copy->pc,
                                            .sp = copy->registers[STACK_REGISTER_SP],
                                            .fp = copy->registers[FRAME_POINTER],
                                            .pac_mask = SIGNATURE_MASK};
    memcpy(unwinder->state.leaf, copy->registers, sizeof(unwinder->state.leaf));
    unwind_begin(&unwinder->state, list, 0);
    const enum unwind_stop stop = unwind_stack(unwinder, &count);
    if (!unwind_stop_is_complete(stop) && count < event->user_count)
        return;
    event->stop = stop;
    event->user_count = count;
    memcpy(event->addresses, unwinder->addresses, count * sizeof(*event->addresses));
}

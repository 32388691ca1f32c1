#include "store/query/stack_filter.h"

#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/flight_cache.h"
#include "lib/base/mem.h"
#include "lib/profile/report/filter.h"
#include "store/block/block_read.h"
#include "store/query/frame_resolution.h"
#include "store/types.h"

#include <inttypes.h>

enum { RULES_MAX_BYTES = 1 << 24 };

struct stack_filters {
    struct flight_cache *cache;
};

/* The kept stacks of one block, and how many names were known. */
struct kept {
    struct arena *arena;
    const bool *keeps;
    struct store_symbolization names;
};

struct filter_job {
    const struct stack_filter_query *query;
    const struct block *block;
};

/* Which focus terms of the filter match a frame between the root and a node, and whether an ignore
 * term does. */
struct node_state {
    uint32_t focus;
    bool is_ignored;
};

enum err_code stack_filter_apply(const struct filter *filter, const struct frame_resolver *resolver,
                                 int64_t tenant_id, const struct names_memory *memory,
                                 const struct dictionary *dictionary, struct arena *arena,
                                 struct store_symbolization *names, const bool **ret_keeps,
                                 struct err *err)
{
    arena_auto scratch = arena_create();
    const struct stacks *stacks = &dictionary->stacks;
    struct profile named;
    enum err_code code = frame_resolution_resolve(resolver, tenant_id, memory, dictionary->tables,
                                                  scratch, &named, names, err);
    if (code)
        return code;
    uint32_t *first_line = arena_new_raw(scratch, uint32_t, named.location_count);
    for (uint32_t i = 0; i < named.location_count; i++)
        first_line[i] = named.locations[i].first_line;
    struct filter_result result;
    code = filter_apply(filter, &named, first_line, NULL, scratch, &result, err);
    if (code)
        return code;
    const uint32_t wanted = (uint32_t)((UINT64_C(1) << result.focus_count) - 1);
    bool *keeps = arena_new(arena, bool, stacks->stack_count);
    /* States of the nodes on the path to the current node. */
    struct node_state *way =
        arena_new(scratch, struct node_state, stacks_deepest(stacks) + (size_t)1);
    for (uint32_t chain = 0, stack = 1; chain < stacks->chain_count; chain++) {
        const struct stack_chain *nodes = &stacks->chains[chain];
        const uint32_t end = stacks_chain_end(stacks, chain);
        uint32_t depth = nodes->depth;
        for (uint32_t node = nodes->first; node < end; node++, depth++) {
            if (node == STACKS_ROOT)
                continue;
            const uint32_t frame = stacks->frames[node];
            struct node_state state = way[depth - 1];
            state.focus |= result.focus_matches[frame];
            state.is_ignored |= (result.verdicts[frame] & FILTER_LOCATION_IGNORED) != 0;
            way[depth] = state;
            if (stack < stacks->stack_count && stacks->ends[stack].node == node)
                keeps[stack++] = state.focus == wanted && !state.is_ignored;
        }
    }
    *ret_keeps = keeps;
    return ERR_NONE;
}

static void destroy_kept(void *value)
{
    struct kept *kept = value;
    arena_destroy(kept->arena);
    mem_free(kept);
}

struct stack_filters *stack_filters_create(size_t max_bytes)
{
    struct stack_filters *filters = mem_new(struct stack_filters, 1);
    filters->cache = flight_cache_create(max_bytes, destroy_kept);
    return filters;
}

void stack_filters_destroy(struct stack_filters *filters)
{
    if (!filters)
        return;
    flight_cache_destroy(filters->cache);
    mem_free(filters);
}

size_t stack_filters_bytes(struct stack_filters *filters)
{
    return flight_cache_bytes(filters->cache);
}

const char *stack_filter_key(struct arena *arena, const struct filter *filter)
{
    uint8_t hash[DIGEST_BYTES];
    char hex[DIGEST_HEX_BYTES];
    buf_auto rules;
    buf_init(&rules, RULES_MAX_BYTES);
    filter_append_rules(filter, &rules);
    if (buf_failed(&rules)) /* longer than any request: not cacheable */
        digest_random(hash, sizeof(hash));
    else
        digest_sha256(buf_span(&rules), hash);
    digest_hex(span_of(hash, DIGEST_BYTES), hex);
    return arena_strdup(arena, hex);
}

static enum err_code make_kept_stacks(void *context, void **ret_value, size_t *ret_bytes,
                                      struct err *err)
{
    const struct filter_job *job = context;
    const struct stack_filter_query *query = job->query;
    struct kept *kept = mem_new(struct kept, 1);
    kept->arena = arena_create();
    enum err_code code = stack_filter_apply(query->filter, query->resolver, query->tenant_id,
                                            query->memory, block_dictionary(job->block),
                                            kept->arena, &kept->names, &kept->keeps, err);
    if (code) {
        destroy_kept(kept);
        return code;
    }
    *ret_value = kept;
    *ret_bytes = sizeof(*kept) + arena_bytes(kept->arena);
    return ERR_NONE;
}

enum err_code stack_filters_ref(struct stack_filters *filters,
                                const struct stack_filter_query *query, const struct block *block,
                                struct store_symbolization *names, struct flight_entry **ret_entry,
                                const bool **ret_keeps, struct err *err)
{
    struct filter_job job = {.query = query, .block = block};
    struct flight_entry *entry;
    buf_auto key;
    buf_init(&key, RULES_MAX_BYTES);
    buf_printf(&key, "%" PRId64 " %" PRIu64 " %s %s", query->tenant_id, names->generation,
               query->rules, block_name(block));
    buf_append_byte(&key, 0);
    enum err_code code =
        flight_cache_ref_within(filters->cache, (const char *)key.data, query->wait_limit,
                                make_kept_stacks, &job, &entry, err);
    if (code)
        return code;
    const struct kept *kept = flight_cache_get(entry);
    names->address_count += kept->names.address_count;
    names->unknown_count += kept->names.unknown_count;
    names->is_incomplete |= kept->names.is_incomplete;
    *ret_keeps = kept->keeps;
    *ret_entry = entry;
    return ERR_NONE;
}

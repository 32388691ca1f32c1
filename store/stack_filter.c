#include "store/stack_filter.h"

#include "lib/base/mem.h"
#include "lib/profile/filter.h"
#include "store/dictionary.h"
#include "store/frame_names.h"

/* What is known of the frames from the root to a node. */
struct node_state {
    uint32_t focus;
    bool is_ignored;
};

enum err_code stack_filter_apply(const struct filter *filter, const struct frame_resolver *resolver,
                                 int64_t tenant_id, const struct dictionary *dictionary,
                                 struct arena *arena, struct store_names *names,
                                 const bool **ret_keeps, struct err *err)
{
    arena_auto scratch = arena_create();
    const struct stacks *stacks = &dictionary->stacks;
    struct profile named;
    enum err_code code =
        frame_names_resolve(resolver, tenant_id, dictionary->tables, scratch, &named, names, err);
    if (code)
        return code;
    uint32_t *first_line = arena_new_raw(scratch, uint32_t, named.location_count);
    for (uint32_t i = 0; i < named.location_count; i++)
        first_line[i] = named.locations[i].first_line;
    struct filter_result result;
    code = filter_apply(filter, &named, first_line, scratch, &result, err);
    if (code)
        return code;
    const uint32_t wanted = (uint32_t)((UINT64_C(1) << result.focus_count) - 1);
    struct node_state *states = arena_new(scratch, struct node_state, stacks->node_count);
    for (uint32_t i = 1; i < stacks->node_count; i++) {
        const uint32_t frame = stacks->frames[i];
        states[i] = states[stacks->parents[i]];
        states[i].focus |= result.focus_matches[frame];
        states[i].is_ignored |= (result.verdicts[frame] & FILTER_LOCATION_IGNORED) != 0;
    }
    bool *keeps = arena_new(arena, bool, stacks->stack_count);
    for (uint32_t i = 0; i < stacks->stack_count; i++) {
        const struct node_state *state = &states[stacks->nodes[i]];
        keeps[i] = stacks->nodes[i] != STACKS_ROOT && state->focus == wanted && !state->is_ignored;
    }
    *ret_keeps = keeps;
    return ERR_NONE;
}

#include "lib/profile/report/flame_zoom.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/profile/report/path_hash.h"
#include "lib/profile/report/raw_path.h"

static enum err_code find_path(const struct flame *flame, uint64_t hash, enum path_hash_form form,
                               uint32_t *ret_node, struct err *err)
{
    arena_auto scratch = arena_create();
    struct path_hash *frames = arena_new_raw(scratch, struct path_hash, flame->frame_count);
    struct path_hash *paths = arena_new(scratch, struct path_hash, flame->node_count);
    uint32_t found = 0;
    const enum err_code code =
        path_hash_frames(flame->view, flame->frames, flame->frame_count, form, frames, err);
    if (code)
        return code;
    for (uint32_t i = 1; i < flame->node_count && !found; i++) {
        const uint32_t frame = flame->node_frame[i];
        paths[i] = path_hash_step(paths[flame->node_parent[i]], frames[frame],
                                  &flame->frames[frame], form);
        if (path_hash_u64(paths[i]) == hash)
            found = i;
    }
    *ret_node = found;
    return ERR_NONE;
}

enum err_code flame_find_path(const struct flame *flame, uint64_t hash, uint32_t *ret_node,
                              struct err *err)
{
    enum err_code code = ERR_NONE;
    uint64_t now;
    *ret_node = 0;
    for (int form = 0; form < PATH_HASH_FORM_COUNT && !code && !*ret_node; form++)
        code = find_path(flame, hash, (enum path_hash_form)form, ret_node, err);
    if (code || *ret_node)
        return code;
    code = raw_path_find(flame->view, hash, &now, err);
    if (code)
        return code == ERR_NOT_FOUND ? ERR_NONE : code;
    return find_path(flame, now, PATH_HASH_OF_FRAMES, ret_node, err);
}

struct zoom {
    struct arena *arena;
    const struct flame *from;
    struct flame *to;
    uint32_t first; /* the node to zoom to */
    uint32_t end;   /* after the last node below it */
    uint32_t depth; /* of that node; also its index in the new graph */
};

static void measure(struct zoom *zoom)
{
    const uint32_t *parent = zoom->from->node_parent;
    for (uint32_t at = zoom->first; at; at = parent[at])
        zoom->depth++;
    for (zoom->end = zoom->first + 1;
         zoom->end < zoom->from->node_count && parent[zoom->end] >= zoom->first;)
        zoom->end++;
}

/* Copies the subtree, moved to the front, after the path from the root. */
static void copy_nodes(struct zoom *zoom)
{
    const struct flame *from = zoom->from;
    uint32_t count = zoom->depth + zoom->end - zoom->first, shift = zoom->first - zoom->depth;
    uint32_t *frame = arena_new_raw(zoom->arena, uint32_t, count);
    uint32_t *parent = arena_new_raw(zoom->arena, uint32_t, count);
    for (uint32_t i = zoom->depth + 1; i < count; i++) {
        frame[i] = from->node_frame[i + shift];
        parent[i] = from->node_parent[i + shift] - shift;
    }
    for (uint32_t i = zoom->depth + 1, at = zoom->first; i-- > 0; at = from->node_parent[at]) {
        frame[i] = from->node_frame[at];
        parent[i] = i ? i - 1 : 0;
    }
    zoom->to->node_count = count;
    zoom->to->node_frame = frame;
    zoom->to->node_parent = parent;
}

/* Copies the values of one side. Values of nodes on the path are copied, too, or become 0. */
static const int64_t *copy_values(const struct zoom *zoom, const int64_t *values, bool keeps_path)
{
    if (!values)
        return NULL;
    uint32_t count = zoom->to->node_count;
    int64_t *copy = arena_new(zoom->arena, int64_t, count);
    memcpy(copy + zoom->depth, values + zoom->first,
           (size_t)(zoom->end - zoom->first) * sizeof(*copy));
    uint32_t at = zoom->from->node_parent[zoom->first];
    for (uint32_t i = zoom->depth; keeps_path && i-- > 0; at = zoom->from->node_parent[at])
        copy[i] = values[at];
    return copy;
}

static void copy_cuts(struct zoom *zoom)
{
    const struct flame *from = zoom->from;
    uint32_t *node = arena_new(zoom->arena, uint32_t, from->cut_count);
    uint32_t *hidden = arena_new(zoom->arena, uint32_t, from->cut_count);
    zoom->to->cut_count = 0;
    zoom->to->cut_hidden_count = 0;
    for (uint32_t i = 0; i < from->cut_count; i++) {
        if (from->cut_node[i] < zoom->first || from->cut_node[i] >= zoom->end)
            continue;
        node[zoom->to->cut_count] = from->cut_node[i] - zoom->first + zoom->depth;
        hidden[zoom->to->cut_count++] = from->cut_hidden[i];
        zoom->to->cut_hidden_count += from->cut_hidden[i];
    }
    zoom->to->cut_node = node;
    zoom->to->cut_hidden = hidden;
}

const struct flame *flame_zoom(struct arena *arena, const struct flame *flame, uint32_t node)
{
    if (node == 0 || node >= flame->node_count)
        return flame;
    struct flame *zoomed = arena_new(arena, struct flame, 1);
    *zoomed = *flame;
    struct zoom zoom = {.arena = arena, .from = flame, .to = zoomed, .first = node};
    measure(&zoom);
    copy_nodes(&zoom);
    zoomed->node_self = copy_values(&zoom, flame->node_self, false);
    zoomed->node_cum = copy_values(&zoom, flame->node_cum, true);
    zoomed->unscaled_self = copy_values(&zoom, flame->unscaled_self, false);
    zoomed->base_self = copy_values(&zoom, flame->base_self, false);
    zoomed->base_cum = copy_values(&zoom, flame->base_cum, true);
    copy_cuts(&zoom);
    return zoomed;
}

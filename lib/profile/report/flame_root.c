#include "lib/profile/report/flame_root.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/report/path_hash.h"
#include "lib/profile/report/raw_path.h"

struct search {
    struct path_hash *hashes; /* of frames */
    struct path_hash *path;   /* of the last stack's nodes; path[0] is the root's */
    const uint32_t *frames;   /* of the last stack */
    uint64_t count;
    uint64_t hash;
    const struct frame *all; /* of the view */
    enum path_hash_form form;
};

/* Searches one stack. Hashes of the prefix that it shares with the last stack are reused. */
static bool find_in_stack(struct search *search, const uint32_t *frames, uint64_t count,
                          uint64_t *ret_depth)
{
    uint64_t depth = 0;
    while (depth < count && depth < search->count && frames[depth] == search->frames[depth])
        depth++;
    search->frames = frames;
    search->count = count;
    for (; depth < count; depth++) {
        search->path[depth + 1] = path_hash_step(search->path[depth], search->hashes[frames[depth]],
                                                 &search->all[frames[depth]], search->form);
        if (path_hash_u64(search->path[depth + 1]) != search->hash)
            continue;
        *ret_depth = depth + 1;
        return true;
    }
    return false;
}

static enum err_code find_node(struct search *search, const struct view *view,
                               const uint32_t *order, struct flame_root *ret_root, struct err *err)
{
    for (uint32_t i = 0; i < view->stack_count; i++) {
        if (i % VIEW_CHECK_STEPS == 0 && view_check_cpu(view, err))
            return err->code;
        uint64_t start = view->stack_start[order[i]], end = view->stack_start[order[i] + 1];
        const uint32_t *frames = view->entries + start;
        if (!find_in_stack(search, frames, end - start, &ret_root->depth))
            continue;
        ret_root->frames = frames;
        return ERR_NONE;
    }
    return err_set(err, ERR_NOT_FOUND, "no node of the tree has that path");
}

static enum err_code find_path(const struct view *view, const uint32_t *order, uint64_t max_depth,
                               uint64_t hash, struct flame_root *ret_root, struct err *err)
{
    arena_auto scratch = arena_create();
    enum err_code code = ERR_NOT_FOUND;
    struct path_hash *hashes = arena_new_raw(scratch, struct path_hash, view->frame_count);
    struct path_hash *path = arena_new(scratch, struct path_hash, (size_t)max_depth + 1);
    for (int form = 0; form < PATH_HASH_FORM_COUNT && code == ERR_NOT_FOUND; form++) {
        struct search search = {.hash = hash,
                                .hashes = hashes,
                                .path = path,
                                .all = view->frames,
                                .form = (enum path_hash_form)form};
        code = path_hash_frames(view, view->frames, view->frame_count, search.form, hashes, err);
        if (code)
            return code;
        code = find_node(&search, view, order, ret_root, err);
    }
    return code;
}

enum err_code flame_root_find(const struct view *view, const uint32_t *order, uint64_t max_depth,
                              uint64_t hash, struct flame_root *ret_root, struct err *err)
{
    uint64_t now;
    enum err_code code = find_path(view, order, max_depth, hash, ret_root, err);
    if (code != ERR_NOT_FOUND)
        return code;
    code = raw_path_find(view, hash, &now, err);
    return code ? code : find_path(view, order, max_depth, now, ret_root, err);
}

uint64_t flame_root_path(const struct view *view, const struct flame_root *root)
{
    struct path_hash path = {0};
    for (uint64_t i = 0; i < root->depth; i++)
        path = path_hash_child(path, path_hash_frame(&view->frames[root->frames[i]], view->group,
                                                     PATH_HASH_OF_FRAMES));
    return path_hash_u64(path);
}

/* The whole path of an upload: detect the format, decode, draw, export, encode, decode again. */
#include "tests/fuzz/fuzz.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"
#include "lib/profile/formats/format.h"
#include "lib/profile/picture/picture.h"
#include "lib/profile/pprof/pprof.h"
#include "lib/profile/report/export_folded.h"
#include "lib/profile/report/export_json.h"
#include "lib/profile/report/flame.h"
#include "lib/profile/report/flame_binary.h"
#include "lib/profile/report/path_hash.h"
#include "lib/profile/report/top.h"
#include "lib/profile/report/view.h"

enum { OUTPUT_MAX = 64 << 20 };

static bool can_be_added(const struct profile *profile, uint32_t value_type)
{
    __int128 magnitude = 0;
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        __int128 value = profile->values[(size_t)i * profile->value_type_count + value_type];
        magnitude += value < 0 ? -value : value;
    }
    return magnitude < INT64_MAX;
}

/* Returns NULL if the values overflow. */
static const struct view *view_of(struct arena *arena, const struct profile *profile)
{
    const struct view *view = NULL;
    struct err err;
    uint32_t value_type;
    const struct view_options options = {.sample_type = SPAN_LITERAL("")};
    fuzz_check(profile_find_value_type(profile, options.sample_type, &value_type, &err) ==
               ERR_NONE);
    enum err_code code = view_create(arena, profile, &options, &view, &err);
    fuzz_check(code == (can_be_added(profile, value_type) ? ERR_NONE : ERR_TOO_LARGE));
    return view;
}

/* Own values add up to the root; children follow their parents. */
static void check_flame(const struct flame *flame)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < flame->node_count; i++) {
        fuzz_check(flame->node_frame[i] < flame->frame_count);
        fuzz_check(i == 0 || flame->node_parent[i] < i);
        sum += flame->node_self[i];
    }
    fuzz_check(sum == flame->node_cum[0]);
}

static void export_all(const struct view *view, const struct flame *flame)
{
    struct err err;
    buf_auto output;
    buf_init(&output, OUTPUT_MAX);
    fuzz_check(export_folded(view, &output, &err) == ERR_NONE);
    buf_clear(&output);
    fuzz_check(export_json(flame, 0, (struct span){0}, &output, &err) == ERR_NONE);
    fuzz_check(span_is_utf8(buf_span(&output)));
    buf_clear(&output);
    fuzz_check(picture_svg(flame, NULL, &output, &err) == ERR_NONE);
    fuzz_check(span_is_utf8(buf_span(&output)));
    buf_clear(&output);
    fuzz_check(flame_binary_write(flame, NULL, &output, &err) == ERR_NONE);
    fuzz_check(output.size % 4 == 0 || output.size > 64);
}

static void check_same_top(const struct top *a, const struct top *b)
{
    fuzz_check(a->row_count == b->row_count);
    for (uint32_t i = 0; i < a->row_count; i++) {
        fuzz_check(a->rows[i].flat[VIEW_SIDE_B] == b->rows[i].flat[VIEW_SIDE_B]);
        fuzz_check(a->rows[i].cum[VIEW_SIDE_B] == b->rows[i].cum[VIEW_SIDE_B]);
        fuzz_check(span_equal(a->view->frames[a->rows[i].frame].name,
                              b->view->frames[b->rows[i].frame].name));
    }
}

static void check_encoded_again(const struct profile *profile, const struct top *top)
{
    struct profile *again;
    struct err err;
    arena_auto arena = arena_create();
    buf_auto encoded;
    buf_init(&encoded, OUTPUT_MAX);
    fuzz_check(pprof_encode(profile, &encoded, &err) == ERR_NONE);
    fuzz_check(pprof_decode(buf_span(&encoded), NULL, &again, &err) == ERR_NONE);
    check_same_top(top, top_create(arena, view_of(arena, again)));
    profile_destroy(again);
}

/* The tree below the last node of the cut tree exists, and its values add up. */
static void check_below(struct arena *arena, const struct view *view, const struct flame *flame)
{
    struct err err;
    const struct flame *below;
    struct path_hash path = {0}, *names = arena_new(arena, struct path_hash, flame->node_count);
    uint32_t depth = 0;
    for (uint32_t at = flame->node_count - 1; at; at = flame->node_parent[at]) {
        const struct frame *frame = &flame->frames[flame->node_frame[at]];
        depth = frame->flags & FRAME_OTHER ? 0 : depth; /* the last frame of its path */
        if (!(frame->flags & FRAME_OTHER))
            names[depth++] = path_hash_frame(frame, view->group, PATH_HASH_OF_FRAMES);
    }
    if (depth == 0)
        return;
    while (depth)
        path = path_hash_child(path, names[--depth]);
    fuzz_check(flame_create_below(arena, view, FLAME_NODES_MIN, path_hash_u64(path), &below,
                                  &err) == ERR_NONE);
    check_flame(below);
}

static void look(struct arena *arena, const struct profile *profile, const struct view *view)
{
    struct err err;
    const struct flame *flame;
    fuzz_check(flame_create(arena, view, FLAME_NODES_MIN, &flame, &err) == ERR_NONE);
    check_flame(flame);
    check_below(arena, view, flame);
    export_all(view, flame);
    check_encoded_again(profile, top_create(arena, view));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct profile *profile;
    struct err err;
    enum format format = FORMAT_COUNT;
    enum err_code code = format_decode(span_of(data, size), &fuzz_limits, &format, &profile, &err);
    if (code) {
        fuzz_check(fuzz_is_refusal(code, &err));
        return 0;
    }
    fuzz_check(format < FORMAT_COUNT);
    fuzz_check_profile(profile);
    arena_auto arena = arena_create();
    const struct view *view = view_of(arena, profile);
    if (view)
        look(arena, profile, view);
    profile_destroy(profile);
    return 0;
}

#include "lib/profile/picture/picture_colours.h"

#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/span_utf8.h"
#include "lib/profile/picture/frame_package.h"
#include "lib/profile/picture/picture_layout.h"
#include "lib/profile/report/flame.h"

#include <math.h>
#include <stdlib.h>

/* Only this many of the heaviest frames assign hues to their packages in order of weight. */
enum { RANKED_FRAMES = 3000 };

/* FNV-1a over UTF-16 units with a final mix, as in the page. It must never change, because the hash
 * determines colours. */
static uint32_t hash_unit(uint32_t hash, uint32_t unit)
{
    return (hash ^ unit) * 0x01000193u;
}

static uint32_t hash_text(struct span text)
{
    uint32_t hash = 0x811c9dc5u;
    while (text.size) {
        const uint32_t code_point = span_take_code_point(&text);
        if (code_point >= 0x10000) {
            hash = hash_unit(hash, 0xd7c0 + (code_point >> 10));
            hash = hash_unit(hash, 0xdc00 | (code_point & 0x3ff));
        } else {
            hash = hash_unit(hash, code_point);
        }
    }
    hash = (hash ^ hash >> 15) * 0x2c1b3c6du;
    return hash ^ hash >> 13;
}

/* The package or binary that determines the frame's hue; empty if it has none. */
static struct span part_of(const struct frame *frame, enum picture_colouring colouring)
{
    if (frame->flags & FRAME_KERNEL)
        return SPAN_LITERAL("kernel");
    return colouring == PICTURE_BY_BINARY ? frame_base_name(frame->mapping) : frame_package(frame);
}

struct ranked {
    double weight;
    uint32_t frame;
};

static int compare_weights(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->frame < y->frame ? -1 : x->frame > y->frame;
}

/* Sorts the frames by weight, in which nodes near the root count more. Returns how many of them
 * assign hues. */
static uint32_t rank_frames(const struct flame *flame, struct ranked *ranked)
{
    double *width = mem_new(double, flame->node_count);
    uint32_t *depth = mem_new(uint32_t, flame->node_count);
    for (uint32_t i = 0; i < flame->frame_count; i++)
        ranked[i] = (struct ranked){.frame = i};
    picture_weigh(flame, width);
    for (uint32_t i = 1; i < flame->node_count; i++) {
        depth[i] = depth[flame->node_parent[i]] + 1;
        ranked[flame->node_frame[i]].weight +=
            width[i] / (depth[i] + 1) + fabs((double)flame->node_self[i]);
    }
    mem_free(width);
    mem_free(depth);
    qsort(ranked, flame->frame_count, sizeof(*ranked), compare_weights);
    uint32_t count = 0;
    while (count < flame->frame_count && count < RANKED_FRAMES && ranked[count].weight > 0)
        count++;
    return count;
}

/* Assigns different hues to the packages or binaries of the heaviest frames, as long as there are
 * free ones. */
static void take_hues(const struct flame *flame, enum picture_colouring colouring,
                      struct map_bytes *hues)
{
    struct ranked *ranked = mem_new(struct ranked, flame->frame_count);
    const uint32_t count = rank_frames(flame, ranked);
    uint32_t taken = 0, taken_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct span part = part_of(&flame->frames[ranked[i].frame], colouring);
        if (map_bytes_find(hues, part) != MAP_ABSENT)
            continue;
        uint32_t hue = hash_text(part) % PICTURE_HUES;
        while (taken >> hue & 1 && taken_count < PICTURE_HUES)
            hue = (hue + 3) % PICTURE_HUES; /* 3 and 16 are coprime, so all hues are tried */
        taken_count += !(taken >> hue & 1);
        taken |= 1u << hue;
        map_bytes_add(hues, part, hue);
    }
    mem_free(ranked);
}

/* Many frames may share one long text, such as the lines of one function, so the hash is cached by
 * the text's address and size. */
static uint32_t shade_of(struct map_u64 *shades, struct span name)
{
    const uint64_t key = (uint64_t)(uintptr_t)name.data ^ (uint64_t)name.size << 48;
    const uint32_t known = map_u64_find(shades, key);
    return known != MAP_ABSENT ? known : map_u64_add(shades, key, hash_text(name) % PICTURE_SHADES);
}

static void fill_by_part(const struct flame *flame, enum picture_colouring colouring,
                         uint8_t *fills)
{
    struct map_bytes hues;
    struct map_u64 shades = {0};
    map_bytes_init(&hues, 64);
    map_bytes_add(&hues, SPAN_LITERAL(""), PICTURE_NEUTRAL_HUE);
    map_bytes_add(&hues, SPAN_LITERAL("kernel"), PICTURE_NEUTRAL_HUE);
    take_hues(flame, colouring, &hues);
    for (uint32_t i = 0; i < flame->frame_count; i++) {
        const struct frame *frame = &flame->frames[i];
        const struct span part = part_of(frame, colouring);
        const uint32_t known = map_bytes_find(&hues, part);
        const uint32_t hue = known == MAP_ABSENT
                                 ? map_bytes_add(&hues, part, hash_text(part) % PICTURE_HUES)
                                 : known;
        fills[i] = (uint8_t)(hue * PICTURE_SHADES + shade_of(&shades, frame->name));
    }
    map_u64_fini(&shades);
    map_bytes_fini(&hues);
}

/* The smallest share of each step, as in web/src/model/colours/colour.ts. */
static const double shares[PICTURE_HEAT_STEPS] = {0, 0, 0.001, 0.003, 0.01, 0.03, 0.1};

static uint8_t step_of(double share)
{
    uint8_t step = 1;
    if (share <= 0)
        return 0;
    while (step + 1 < PICTURE_HEAT_STEPS && share >= shares[step + 1])
        step++;
    return step;
}

static void fill_by_value(const struct flame *flame, uint8_t *fills)
{
    double *own = mem_new(double, flame->frame_count); /* indexed by the first frame of a name */
    struct map_bytes first;
    map_bytes_init(&first, flame->frame_count);
    for (uint32_t i = 1; i < flame->node_count; i++) {
        const uint32_t frame = flame->node_frame[i];
        if (flame->node_self[i] != 0)
            own[map_bytes_add(&first, flame->frames[frame].name, frame)] +=
                (double)flame->node_self[i];
    }
    const double total = (double)flame->view->magnitude[VIEW_SIDE_B];
    for (uint32_t i = 0; i < flame->frame_count; i++) {
        const uint32_t known = map_bytes_find(&first, flame->frames[i].name);
        fills[i] = (uint8_t)(PICTURE_HEAT_COLOUR +
                             (known == MAP_ABSENT || total <= 0 ? 0 : step_of(own[known] / total)));
    }
    map_bytes_fini(&first);
    mem_free(own);
}

const uint8_t *picture_fills(struct arena *arena, const struct flame *flame,
                             enum picture_colouring colouring)
{
    uint8_t *fills = arena_new(arena, uint8_t, flame->frame_count);
    if (colouring == PICTURE_BY_VALUE)
        fill_by_value(flame, fills);
    else
        fill_by_part(flame, colouring, fills);
    return fills;
}

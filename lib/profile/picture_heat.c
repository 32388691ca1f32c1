#include "lib/profile/picture_heat.h"

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/profile/flame.h"
#include "lib/profile/picture_layout.h"

/* From which share on a step is; those of web/src/model/colour.ts. */
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

const uint8_t *picture_heat_steps(struct arena *arena, const struct flame *flame)
{
    uint8_t *steps = arena_new(arena, uint8_t, flame->frame_count);
    double *own = mem_new(double, flame->frame_count); /* by the first frame of a name */
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
        steps[i] = known == MAP_ABSENT || total <= 0 ? 0 : step_of(own[known] / total);
    }
    map_bytes_fini(&first);
    mem_free(own);
    return steps;
}

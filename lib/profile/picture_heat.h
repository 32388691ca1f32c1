/*
 * picture_heat: how much of everything each function holds itself, in steps, for pictures that are
 * coloured by it; as the page has it (web/src/model/frame_colours.ts). Threads: any.
 */
#ifndef LIB_PROFILE_PICTURE_HEAT_H
#define LIB_PROFILE_PICTURE_HEAT_H

#include <stdint.h>

struct arena;
struct flame;

/*
 * Per frame of the graph, 0 (nothing) to PICTURE_HEAT_STEPS - 1: of all frames of its name, as a
 * share of all samples, also of those that a filter left out. In arena.
 */
const uint8_t *picture_heat_steps(struct arena *arena, const struct flame *flame);

#endif

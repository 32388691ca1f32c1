/*
 * frame_table: which frame each line of a profile is, under one grouping; what it means is told in
 * view.h. Several profiles may share a table, so that equal frames of two sides are one.
 * Strings are borrowed from the profiles and the arena. Threads: belongs to one thread.
 */
#ifndef LIB_PROFILE_REPORT_FRAME_TABLE_H
#define LIB_PROFILE_REPORT_FRAME_TABLE_H

#include "lib/profile/report/view.h"

struct filter_result;
struct frame_table;

/* Location i is frames[start[i] .. start[i + 1]), the root-most first. */
struct frame_lists {
    const uint32_t *start;
    const uint32_t *frames;
};

/* Lives in arena, frame 0 is the root. */
struct frame_table *frame_table_create(struct arena *arena, enum view_group group);

/* Lists in arena; first_line as prune.h gives it, filter may be NULL. */
void frame_table_add(struct frame_table *table, const struct profile *profile,
                     const uint32_t *first_line, const struct filter_result *filter,
                     struct frame_lists *ret_lists);

/* The frame of a label's value; text is copied. */
uint32_t frame_table_label(struct frame_table *table, struct span text);

const struct frame *frame_table_frames(const struct frame_table *table, uint32_t *ret_count);

/* As shared_places of struct view. */
const struct span *frame_table_shared_places(const struct frame_table *table, uint32_t *ret_count);

#endif

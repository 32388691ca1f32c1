/*
 * frame_table: maps the lines of a profile to frames under one grouping; view.h defines the
 * groupings. Several profiles may share a table, so that equal frames of two sides are one frame.
 * Strings are borrowed from the profiles and the arena. Threads: a table belongs to one thread.
 */
#ifndef LIB_PROFILE_REPORT_FRAME_TABLE_H
#define LIB_PROFILE_REPORT_FRAME_TABLE_H

#include "lib/profile/report/view.h"

struct filter_result;
struct frame_table;

/* Location i has frames[start[i] .. start[i + 1]), root side first. */
struct frame_lists {
    const uint32_t *start;
    const uint32_t *frames;
};

/* Creates a table in arena; frame 0 is the root. */
struct frame_table *frame_table_create(struct arena *arena, enum view_group group);

/* Adds a profile. The lists are in the table's arena; first_line is that of prune.h. Lines that
 * filter removes are not listed; NULL: all are. */
void frame_table_add(struct frame_table *table, const struct profile *profile,
                     const uint32_t *first_line, const struct filter_result *filter,
                     struct frame_lists *ret_lists);

/* Finds or adds the frame of a label value, whose text is copied. */
uint32_t frame_table_label(struct frame_table *table, struct span text);

/* All frames so far, borrowed: valid until the next frame is added. */
const struct frame *frame_table_frames(const struct frame_table *table, uint32_t *ret_count);

/* The shared_origins of struct view. */
const struct span *frame_table_shared_origins(const struct frame_table *table, uint32_t *ret_count);

#endif

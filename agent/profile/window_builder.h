/*
 * window_builder: the profile builder of one window, with a quota for each owner.
 *
 * A process chooses much of the content of a window: names, paths and labels, and, by the code that
 * it runs, functions, locations and mappings. window_builder_set_owner() sets the owner
 * (process_owner) of the additions that follow. With is_charged, an addition that exceeds the quota
 * (window_quota.h) is replaced by the entry WINDOW_NAME_LEFT_OUT, of which a window has one.
 *
 * Texts are checked before they are added, because one text may be as long as the quota. Table
 * entries are small and are counted afterwards, by window_builder_charge(): the owner of a sample
 * may exceed its quota by the entries of that sample.
 *
 * Texts and names of the kernel, of the vDSO and of the agent itself are added to `profile`
 * directly or by window_builder_named_location(), and count against no quota. Threads: one.
 */
#ifndef AGENT_PROFILE_WINDOW_BUILDER_H
#define AGENT_PROFILE_WINDOW_BUILDER_H

#include "agent/profile/window_quota.h"
#include "lib/base/buf.h"
#include "lib/profile/profile_builder.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interpreter_name;

enum { WINDOW_NAME_MAX_BYTES = 512 }; /* names that processes chose are cut to this size */

/* Called when a name or an entry of an owner is left out for the first time in a window. */
typedef void window_left_out(void *context, uint32_t process_id);

struct window_builder {
    struct profile_builder *profile;
    bool is_charged;
    window_left_out *on_left_out; /* may be NULL */
    void *context;

    /* The rest is the module's own; owner_has_space may be read. */
    struct window_quota quota;
    uint64_t owner;
    uint32_t process_id;
    bool owner_has_space; /* otherwise nothing new is added for the owner */
    struct profile_builder_counts before;
};

/* Begins a window: creates the profile. is_charged, on_left_out and context are set by the caller
 * and kept. */
void window_builder_begin(struct window_builder *builder, const struct profile_limits *limits);
/* Ends the window: frees what profile_builder_take has left. */
void window_builder_end(struct window_builder *builder);

/* Sets the owner of all that is added from now on, and the process that is reported if something is
 * left out. */
void window_builder_set_owner(struct window_builder *builder, uint64_t owner, uint32_t process_id);
/* Charges the owner for the table entries added since window_builder_set_owner. */
void window_builder_charge(struct window_builder *builder);
/* Charges the owner for bytes of text. False: the quota does not allow them; nothing is charged. */
bool window_builder_take(struct window_builder *builder, size_t bytes);

/* Adds a text; PROFILE_NONE: it is new, and the quota does not allow it. */
uint32_t window_builder_text(struct window_builder *builder, struct span text);
/* The same, with WINDOW_NAME_LEFT_OUT in place of PROFILE_NONE. */
uint32_t window_builder_text_or_left_out(struct window_builder *builder, struct span text);
/* The line of a function that the process named. */
struct profile_line window_builder_line(struct window_builder *builder,
                                        const struct interpreter_name *name);
/* Adds a location; line may be NULL. */
uint32_t window_builder_location(struct window_builder *builder,
                                 const struct profile_location *location,
                                 const struct profile_line *line);
/* The location of the function WINDOW_NAME_LEFT_OUT. */
uint32_t window_builder_left_out_location(struct window_builder *builder);
/* The location of a function that the process did not name; mapping: PROFILE_NONE for none. */
uint32_t window_builder_named_location(struct window_builder *builder, uint32_t mapping,
                                       struct span name, struct span file);

#endif

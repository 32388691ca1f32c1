/*
 * batch_strings: adds the names and values of labels and types to the strings of a profile. Private
 * to batch_from_profile.c.
 *
 * All texts are requested first (batch_strings_want). batch_strings_finish finds those that the
 * profile has and adds the others; then batch_strings_number returns the number of each. Only
 * strings of a size that occurs among the texts are hashed. All zeros is the initial state.
 */
#ifndef LIB_PROFILE_BATCH_BATCH_STRINGS_H
#define LIB_PROFILE_BATCH_BATCH_STRINGS_H

#include "lib/base/map.h"
#include "lib/base/span.h"

struct profile;

struct batch_strings {
    struct map_bytes texts; /* the numbers of the texts, in the order of their requests */
    struct span *bytes;     /* by number of the text */
    uint32_t capacity;
    uint32_t *numbers; /* by number of the text: its string; set by batch_strings_finish */
};

/* The bytes of text are needed until batch_strings_fini. An empty text is string 0. */
void batch_strings_want(struct batch_strings *strings, struct span text);
/* Returns the strings of the profile followed by the new ones, in the arena of the profile; the
 * strings of the profile keep their numbers. Call it once, after all batch_strings_want. */
const struct span *batch_strings_finish(struct batch_strings *strings,
                                        const struct profile *profile, uint32_t *ret_count);
/* The number of a string; 0 if the text was not requested. */
uint32_t batch_strings_number(const struct batch_strings *strings, struct span text);
void batch_strings_fini(struct batch_strings *strings);

#endif

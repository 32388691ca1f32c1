/*
 * raw_name: the name of an address whose function is unknown: "libc.so.6+0x2a10", which is the last
 * part of its binary's path and the offset in that file, or "0x7f32a0" if the binary is unknown.
 *
 * The name does not change when symbols arrive later, so that expressions in old links still match.
 * Threads: any.
 */
#ifndef LIB_PROFILE_RAW_NAME_H
#define LIB_PROFILE_RAW_NAME_H

#include "lib/profile/profile.h"

/* Only the last RAW_NAME_PATH_BYTES of a binary's path are used, which bounds the cost. */
enum { RAW_NAME_PATH_BYTES = 256, RAW_NAME_BYTES = RAW_NAME_PATH_BYTES + 32 };

/* Returns the last part of a path, without slashes at its end, as a part of path. */
struct span raw_name_base(struct span path);

/* The offset in the file of an address of the mapping, independent of the load address. */
static inline uint64_t raw_name_offset(const struct profile_mapping *mapping, uint64_t address)
{
    return address - mapping->start + mapping->offset;
}

/* Writes the name to text, which the result borrows, without a final NUL. The result is empty if
 * the location's address is 0. */
struct span raw_name_write(const struct profile *profile, const struct profile_location *location,
                           char text[RAW_NAME_BYTES]);

#endif

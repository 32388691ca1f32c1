/*
 * raw_name: what an address is called as long as nobody knows its function: "libc.so.6+0x2a10", the
 * last part of its binary's path and the offset in that file, or "0x7f32a0" where nobody knows the
 * binary. Names that come later do not change it, so that expressions of old links still find what
 * they found. Threads: any.
 */
#ifndef LIB_PROFILE_RAW_NAME_H
#define LIB_PROFILE_RAW_NAME_H

#include "lib/profile/profile.h"

/* Of a binary's path the last RAW_NAME_PATH_BYTES count, so that a long one costs no more. */
enum { RAW_NAME_PATH_BYTES = 256, RAW_NAME_BYTES = RAW_NAME_PATH_BYTES + 32 };

/* The last part of a path, without slashes at its end. */
struct span raw_name_base(struct span path);

/* Where an address of the mapping lies in its file, whatever address that was loaded at. */
static inline uint64_t raw_name_offset(const struct profile_mapping *mapping, uint64_t address)
{
    return address - mapping->start + mapping->offset;
}

/* Written to text, which the result borrows; empty where there is no address. */
struct span raw_name_write(const struct profile *profile, const struct profile_location *location,
                           char text[RAW_NAME_BYTES]);

#endif

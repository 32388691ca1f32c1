#include "lib/profile/raw_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct span raw_name_base(struct span path)
{
    if (path.size == 0)
        return path;
    size_t end = path.size;
    while (end > 1 && path.data[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path.data[start - 1] != '/')
        start--;
    return span_of(path.data + start, end - start);
}

static struct span last_bytes(struct span path)
{
    if (path.size <= RAW_NAME_PATH_BYTES)
        return path; /* also an empty one, whose data may be NULL */
    size_t skipped = path.size - RAW_NAME_PATH_BYTES;
    while (skipped < path.size && (path.data[skipped] & 0xc0) == 0x80)
        skipped++; /* do not cut a character */
    return span_of(path.data + skipped, path.size - skipped);
}

static struct span binary_of(const struct profile *profile, const struct profile_location *location)
{
    if (location->mapping == PROFILE_NONE)
        return span_of(NULL, 0);
    const uint32_t path = profile->mappings[location->mapping].filename;
    return raw_name_base(last_bytes(profile_string(profile, path)));
}

struct span raw_name_write(const struct profile *profile, const struct profile_location *location,
                           char text[RAW_NAME_BYTES])
{
    if (!location->address)
        return span_of(NULL, 0);
    const struct span base = binary_of(profile, location);
    if (base.size == 0)
        return span_of(text,
                       (size_t)snprintf(text, RAW_NAME_BYTES, "0x%" PRIx64, location->address));
    /* Copied byte by byte, because a name may contain a NUL, where printf would stop. */
    memcpy(text, base.data, base.size);
    const int digits =
        snprintf(text + base.size, RAW_NAME_BYTES - base.size, "+0x%" PRIx64,
                 raw_name_offset(&profile->mappings[location->mapping], location->address));
    return span_of(text, base.size + (size_t)digits);
}

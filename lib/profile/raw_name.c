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
    size_t skipped = path.size > RAW_NAME_PATH_BYTES ? path.size - RAW_NAME_PATH_BYTES : 0;
    while (skipped && skipped < path.size && (path.data[skipped] & 0xc0) == 0x80)
        skipped++; /* no character is cut */
    return span_of(path.data + skipped, path.size - skipped);
}

struct span raw_name_write(const struct profile *profile, const struct profile_location *location,
                           char text[RAW_NAME_BYTES])
{
    if (location->mapping == PROFILE_NONE || !location->address)
        return span_of(NULL, 0);
    const struct profile_mapping *mapping = &profile->mappings[location->mapping];
    const struct span path = profile_string(profile, mapping->filename),
                      base = raw_name_base(last_bytes(path));
    if (base.size == 0)
        return base;
    /* Byte by byte: a name may hold what printf would end at. */
    memcpy(text, base.data, base.size);
    const int digits = snprintf(text + base.size, RAW_NAME_BYTES - base.size, "+0x%" PRIx64,
                                raw_name_offset(mapping, location->address));
    return span_of(text, base.size + (size_t)digits);
}

#include "api/core/memory_info.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static uint64_t read_number(const char *path)
{
    uint64_t number = UINT64_MAX; /* "max", or no such file: no limit */
    FILE *file = fopen(path, "re");
    if (!file)
        return number;
    uint64_t read;
    if (fscanf(file, "%" SCNu64, &read) == 1)
        number = read;
    fclose(file);
    return number;
}

/* The least limit of a group, such as "/system.slice/perfoliod.service", and of each group above
 * it, in a hierarchy that is mounted at root. */
static uint64_t group_limit(const char *root, char *group, const char *file)
{
    char path[PATH_MAX + 128];
    snprintf(path, sizeof(path), "%s/%s", root, file);
    uint64_t least = read_number(path);
    group[strcspn(group, "\n")] = '\0';
    for (char *end; (end = strrchr(group, '/')) != NULL; *end = '\0') {
        snprintf(path, sizeof(path), "%s%s/%s", root, group, file);
        const uint64_t limit = read_number(path);
        if (limit < least)
            least = limit;
    }
    return least;
}

/* A line "0::GROUP" is of version 2; a line "4:memory:GROUP" is of version 1, whose number for no
 * limit is larger than any memory. */
static uint64_t least_group_limit(void)
{
    char line[PATH_MAX];
    uint64_t least = UINT64_MAX;
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return least;
    while (fgets(line, sizeof(line), file)) {
        uint64_t limit = UINT64_MAX;
        char *memory = strstr(line, ":memory:");
        if (strncmp(line, "0::", 3) == 0)
            limit = group_limit("/sys/fs/cgroup", line + 3, "memory.max");
        else if (memory)
            limit = group_limit("/sys/fs/cgroup/memory", memory + 8, "memory.limit_in_bytes");
        if (limit < least)
            least = limit;
    }
    fclose(file);
    return least;
}

uint64_t memory_info_total_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t physical = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0;
    uint64_t limit = least_group_limit();
    return limit < physical ? limit : physical;
}

uint64_t memory_info_part_bytes(uint64_t divisor, uint64_t low, uint64_t high)
{
    uint64_t bytes = memory_info_total_bytes() / divisor;
    return bytes < low ? low : bytes > high ? high : bytes;
}

uint64_t memory_info_limit_of(enum memory_limit limit, uint64_t total_bytes)
{
    static const uint64_t mib = 1 << 20;
    static const struct {
        uint64_t percent, low_mib, high_mib;
    } parts[MEMORY_LIMIT_COUNT] = {
        [MEMORY_HEAVY] = {40, 128, 4096},    [MEMORY_QUERIES] = {15, 64, 4096},
        [MEMORY_MERGES] = {5, 32, 512},      [MEMORY_PROFILE_CACHE] = {5, 16, 256},
        [MEMORY_BLOCK_CACHE] = {4, 16, 256}, [MEMORY_BUFFERS] = {4, 32, 192},
        [MEMORY_QUEUES] = {2, 48, 128},
    };
    const uint64_t half = total_bytes / 2;
    const uint64_t divided = total_bytes - (half < 384 * mib ? half : 384 * mib);
    const uint64_t bytes = divided * parts[limit].percent / 100;
    if (bytes < parts[limit].low_mib * mib)
        return parts[limit].low_mib * mib;
    return bytes > parts[limit].high_mib * mib ? parts[limit].high_mib * mib : bytes;
}

uint64_t memory_info_limit_bytes(enum memory_limit limit)
{
    return memory_info_limit_of(limit, memory_info_total_bytes());
}

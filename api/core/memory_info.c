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

/* The group is listed as "0::/system.slice/perfoliod.service"; each group above it limits too. */
static uint64_t group_limit(void)
{
    char line[PATH_MAX], path[PATH_MAX + 64];
    uint64_t least = read_number("/sys/fs/cgroup/memory.max");
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return least;
    if (!fgets(line, sizeof(line), file))
        line[0] = '\0';
    fclose(file);
    if (strncmp(line, "0::/", 4) != 0)
        return least;
    char *group = line + 3;
    group[strcspn(group, "\n")] = '\0';
    for (char *end; (end = strrchr(group, '/')) != NULL; *end = '\0') {
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", group);
        uint64_t limit = read_number(path);
        if (limit < least)
            least = limit;
    }
    return least;
}

uint64_t memory_info_total_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t physical = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0;
    uint64_t limit = group_limit();
    return limit < physical ? limit : physical;
}

uint64_t memory_info_share_bytes(uint64_t divisor, uint64_t low, uint64_t high)
{
    uint64_t bytes = memory_info_total_bytes() / divisor;
    return bytes < low ? low : bytes > high ? high : bytes;
}

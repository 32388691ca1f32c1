#include "api/query/query_parts.h"

#include "api/core/settings.h"
#include "api/query/export_space.h"
#include "api/query/report_cache.h"
#include "lib/base/mem.h"

struct query_parts *query_parts_create(const struct settings *settings, struct disk *disk)
{
    struct query_parts *parts = mem_new(struct query_parts, 1);
    parts->report_cache = report_cache_create((size_t)settings->query_cache_bytes / 2);
    parts->exports = export_space_create(disk);
    return parts;
}

void query_parts_destroy(struct query_parts *parts)
{
    if (!parts)
        return;
    report_cache_destroy(parts->report_cache);
    export_space_destroy(parts->exports);
    mem_free(parts);
}

#include "api/core/disk_part.h"

#include "api/core/disk.h"
#include "api/core/object_store_setup.h"
#include "api/core/server.h"
#include "api/core/settings.h"

#define GIB (UINT64_C(1) << 30)

static uint64_t limit(const struct server *server, uint64_t setting, uint64_t usual_bytes,
                      uint64_t part)
{
    const uint64_t most = disk_total_bytes(server->disk) / part;
    if (setting)
        return setting;
    return object_store_setup_are_in_s3(server->settings) || most > usual_bytes ? usual_bytes
                                                                                : most;
}

uint64_t disk_part_tenant_bytes(const struct server *server)
{
    return limit(server, server->settings->tenant_max_bytes, 100 * GIB, 4);
}

uint64_t disk_part_anonymous_bytes(const struct server *server)
{
    return limit(server, server->settings->anonymous_max_bytes, 20 * GIB, 16);
}

uint64_t disk_part_table_bytes(const struct server *server)
{
    return limit(server, server->settings->debuginfod_cache_bytes, 10 * GIB, 16);
}

uint64_t disk_part_row_bytes(const struct server *server)
{
    enum { PART = 8 };
    return object_store_setup_are_in_s3(server->settings) ? disk_total_bytes(server->disk) / PART
                                                          : UINT64_MAX;
}

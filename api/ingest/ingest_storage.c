#include "api/ingest/ingest_storage.h"

#include "api/core/disk.h"
#include "api/core/object_store_setup.h"
#include "api/core/server.h"
#include "api/identity/tenant_limits.h"
#include "lib/base/err.h"

#include <inttypes.h>
#include <stdio.h>

enum { DISK_PART = 2 };

/* The limit 0 is half of the file system. A bucket has no size. */
static uint64_t most_stored(const struct server *server, const struct tenant_limits *limits,
                            char ret_text[TENANT_LIMITS_TEXT_BYTES])
{
    const int64_t most = limits->values[TENANT_LIMIT_STORED_PROFILE_BYTES];
    tenant_limits_describe(limits, TENANT_LIMIT_STORED_PROFILE_BYTES, ret_text);
    if (most)
        return (uint64_t)most;
    snprintf(
        ret_text, TENANT_LIMITS_TEXT_BYTES,
        "stored_profile_bytes is half of the disk, by the setting tenant-stored-profile-bytes");
    return object_store_setup_are_in_s3(server->settings)
               ? UINT64_MAX
               : disk_total_bytes(server->disk) / DISK_PART;
}

/* Blocks that a merge replaced stay on the disk for some minutes, because queries may still read
 * them. A team that sends much could fill the disk with replaced blocks while it stores little. */
static enum err_code check_replaced(const struct server *server, const struct tenant_limits *limits,
                                    uint64_t most, struct err *err)
{
    enum { RETRY_S = 30 };
    const uint64_t disk_part = disk_total_bytes(server->disk) / DISK_PART;
    const uint64_t bytes =
        (uint64_t)limits->stored_profile_bytes + (uint64_t)limits->replaced_profile_bytes;
    if (object_store_setup_are_in_s3(server->settings) ||
        bytes < (most > disk_part ? most : disk_part))
        return ERR_NONE;
    err_set(
        err, ERR_RATE_LIMITED,
        "the profiles of this team and those that merges replaced, which are deleted after some "
        "minutes, take %" PRIu64 " bytes, half of the disk: send more slowly",
        bytes);
    err->retry_after_s = RETRY_S;
    return ERR_RATE_LIMITED;
}

/* A merge of segments writes a block for each day. A team that sends profiles of many days at once
 * would fill the catalogue and the disk with small blocks faster than they are merged. */
static enum err_code check_blocks(const struct tenant_limits *limits, struct err *err)
{
    enum { RETRY_S = 30, MAX_BLOCKS = 20000 };
    if (limits->block_count <= MAX_BLOCKS)
        return ERR_NONE;
    err_set(err, ERR_RATE_LIMITED,
            "the profiles of this team are in %" PRId64
            " blocks, more than %d, which have to be merged first: send profiles in the order of "
            "their time, of few days at once, or delete old ones",
            limits->block_count, MAX_BLOCKS);
    err->retry_after_s = RETRY_S;
    return ERR_RATE_LIMITED;
}

/* The stored size is read every TENANT_LIMITS_S seconds, so a tenant may exceed the limit by what
 * it sends in that time. */
static enum err_code check_stored(const struct server *server, const struct tenant_limits *limits,
                                  struct err *err)
{
    enum { RETRY_S = 300 };
    char limit[TENANT_LIMITS_TEXT_BYTES];
    const uint64_t most = most_stored(server, limits, limit);
    if ((uint64_t)limits->stored_profile_bytes < most)
        return check_replaced(server, limits, most, err);
    err_set(
        err, ERR_QUOTA,
        "the stored profiles of this team take %" PRId64
        " bytes: %s; keep them for a shorter time (perfolio admin retention set), delete some, or "
        "ask the operator for more",
        limits->stored_profile_bytes, limit);
    err->retry_after_s = RETRY_S;
    return ERR_QUOTA;
}

enum err_code ingest_storage_check(const struct server *server, const struct tenant_limits *limits,
                                   struct err *err)
{
    const enum err_code code = check_stored(server, limits, err);
    return code ? code : check_blocks(limits, err);
}

/*
 * disk_part: the limits of stored objects that follow the size of the disk unless a setting gives
 * them. Without such a limit, one team or the anonymous clients could fill a disk that is smaller
 * than the usual quota, and the server would refuse to store anything. Threads: any.
 */
#ifndef API_CORE_DISK_PART_H
#define API_CORE_DISK_PART_H

#include <stdint.h>

struct server;

/* All bytes that a team stores, besides continuous profiles: tenant-max-bytes, or if that is 0 100
 * GiB, but at most a quarter of the disk. In a bucket, 0 is 100 GiB. */
uint64_t disk_part_tenant_bytes(const struct server *server);
/* The same for all anonymous clients: anonymous-max-bytes, 20 GiB, a sixteenth. */
uint64_t disk_part_anonymous_bytes(const struct server *server);
/* The same for public symbol tables: debuginfod-cache-bytes, 10 GiB, a sixteenth. */
uint64_t disk_part_table_bytes(const struct server *server);
/* With a bucket, the texts and summaries of one team's shares, which are in the database on the
 * disk: an eighth of it. UINT64_MAX without a bucket: they count with the objects. */
uint64_t disk_part_row_bytes(const struct server *server);

#endif

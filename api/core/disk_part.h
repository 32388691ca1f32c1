/*
 * disk_part: the limits of stored objects that follow the size of the disk unless a setting gives
 * them. Without such a limit, one team or the anonymous clients could fill a disk that is smaller
 * than the usual quota, and the server would refuse to store anything. Threads: any.
 */
#ifndef API_CORE_DISK_PART_H
#define API_CORE_DISK_PART_H

#include <stdint.h>

struct server;

/* The limit of all bytes that a team stores, without continuous profiles: the setting
 * tenant-max-bytes. If the setting is 0: 100 GiB, but without a bucket at most a quarter of the
 * disk. */
uint64_t disk_part_tenant_bytes(const struct server *server);
/* The same for all anonymous clients together: the setting anonymous-max-bytes; if it is 0: 20 GiB,
 * at most a sixteenth of the disk. */
uint64_t disk_part_anonymous_bytes(const struct server *server);
/* The same for all public symbol tables: the setting debuginfod-cache-bytes; if it is 0: 10 GiB, at
 * most a sixteenth of the disk. */
uint64_t disk_part_table_bytes(const struct server *server);
/* With a bucket, the limit of the texts and summaries of one team's shares, which are in the
 * database on the disk: an eighth of the disk. UINT64_MAX without a bucket, because they then count
 * with the objects. */
uint64_t disk_part_row_bytes(const struct server *server);

#endif

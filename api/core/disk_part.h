/*
 * disk_part: the limits of stored objects that follow the size of the disk unless a setting gives
 * them. A disk is smaller than what a team or anonymous clients may usually store, so without such
 * a limit one of them could fill it, and nobody could store anything. Threads: any.
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

/*
 * backup_source: a data folder whose database is made reachable, whether it is served or not, for
 * what an operator does beside the server: backups, restores, looking at the store.
 */
#ifndef API_OPS_BACKUP_SOURCE_H
#define API_OPS_BACKUP_SOURCE_H

#include "api/ops/data_folder.h"
#include "api/ops/postgres.h"
#include "lib/base/err.h"

#include <stdbool.h>

struct arena;
struct object_store;
struct settings;

struct backup_source {
    struct settings *settings;
    struct data_folder folder;
    struct postgres postgres;
    bool has_cluster;
    bool is_started; /* by us: the server does not run */
    char conninfo[POSTGRES_CONNINFO_BYTES];
    struct arena *arena;          /* of what follows */
    const char *tools_conninfo;   /* for PostgreSQL's programs: without a password */
    struct object_store *objects; /* the bucket; NULL: they are in the folder */
};

/* The data folder must be there. After a failure, too, backup_source_close is due. */
enum err_code backup_source_open(struct settings *settings, struct backup_source *source,
                                 struct err *err) MUST_USE;
void backup_source_close(struct backup_source *source);

/* Parts of it, for a folder that is just being made. */
enum err_code backup_source_open_bucket(struct backup_source *source, struct err *err) MUST_USE;
enum err_code backup_source_open_database(struct backup_source *source, bool is_served,
                                          struct err *err) MUST_USE;

#endif

/*
 * backup_source: access to a data folder and its database, whether it is served or not, for
 * operators' tasks beside the server: backups, restores, inspecting the store.
 */
#ifndef API_OPS_BACKUP_SOURCE_H
#define API_OPS_BACKUP_SOURCE_H

#include "api/ops/data_folder.h"
#include "api/ops/postgres.h"
#include "lib/base/err_code.h"

#include <stdbool.h>

struct arena;
struct object_store;
struct settings;

struct backup_source {
    struct settings *settings;
    struct data_folder folder;
    struct postgres postgres;
    bool has_cluster;
    bool is_started; /* by us, because the server does not run */
    char conninfo[POSTGRES_CONNINFO_BYTES];
    struct arena *arena;          /* for the members below */
    const char *tools_conninfo;   /* for PostgreSQL's programs: without a password */
    struct object_store *objects; /* the bucket; NULL: they are in the folder */
};

/* Opens the data folder of settings, which must exist, and its database, which is started if no
 * server runs. Call backup_source_close also after a failure. */
enum err_code backup_source_open(struct settings *settings, struct backup_source *source,
                                 struct err *err) MUST_USE;
void backup_source_close(struct backup_source *source);

/* Two steps of backup_source_open, for a restore, whose data folder is being created. is_served:
 * whether a server runs on the data folder. */
enum err_code backup_source_open_bucket(struct backup_source *source, struct err *err) MUST_USE;
enum err_code backup_source_open_database(struct backup_source *source, bool is_served,
                                          struct err *err) MUST_USE;

#endif

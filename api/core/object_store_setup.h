/*
 * objects: where this server's objects are, by its settings: D/objects, or a bucket.
 *
 * Keys of a bucket are no settings: they come from --s3-credentials-file or AWS_ACCESS_KEY_ID,
 * AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, so that they stand on no command line. The process
 * that a person starts reads the file, which may be for root alone; its children find them in their
 * environment, except PostgreSQL, which gets a clean one.
 */
#ifndef API_CORE_OBJECT_STORE_SETUP_H
#define API_CORE_OBJECT_STORE_SETUP_H

#include "lib/base/err.h"

#include <stdbool.h>

struct os_user;
struct object_store;
struct settings;

/* The object of a bucket that holds the id of its database (api/ops/storage_identity.h). */
#define OBJECT_STORE_SETUP_IDENTITY_KEY "database-id"

/* How long a flush of the store waits for company: a put to a bucket takes far longer than to a
 * disk, and is paid for. */
enum { OBJECT_STORE_SETUP_S3_FLUSH_MS = 250 };

bool object_store_setup_are_in_s3(const struct settings *settings);

/*
 * Once per start, in the process that a person started and before its children: checks the settings
 * that belong together, makes their paths absolute and puts the keys into the environment. Nothing
 * is sent. Handles: ERR_INVALID (the message names the setting), ERR_IO.
 */
enum err_code object_store_setup_prepare(struct settings *settings, struct err *err) MUST_USE;

/* Opens them; a bucket is tried out, and what is wrong with it said (lib/io/object_s3.h). */
enum err_code object_store_setup_open(const struct settings *settings,
                                      struct object_store **ret_objects, struct err *err) MUST_USE;

/* The same for reading alone, beside a server that may run as another user: a folder has to exist,
 * nothing is created in it, and objects are read with the permissions of server. Handles:
 * ERR_NOT_FOUND (there is no folder). */
enum err_code object_store_setup_open_to_read(const struct settings *settings,
                                              const struct os_user *server,
                                              struct object_store **ret_objects,
                                              struct err *err) MUST_USE;

#endif

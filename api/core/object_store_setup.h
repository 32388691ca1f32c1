/*
 * object_store_setup: opens the object store that the settings describe: the folder D/objects, or a
 * bucket.
 *
 * The keys of a bucket are no settings: they come from --s3-credentials-file or AWS_ACCESS_KEY_ID,
 * AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, so that no command line contains them. The process
 * that a person starts reads the file, which may be readable by root only; its children get the
 * keys in their environment, except PostgreSQL, which gets a clean one.
 */
#ifndef API_CORE_OBJECT_STORE_SETUP_H
#define API_CORE_OBJECT_STORE_SETUP_H

#include "lib/base/err_code.h"

#include <stdbool.h>

struct os_user;
struct object_store;
struct settings;

/* The object of a bucket that contains the id of its database (api/ops/storage_identity.h). */
#define OBJECT_STORE_SETUP_IDENTITY_KEY "database-id"

/* How long a flush of the store waits for further requests if objects are in a bucket: a put to a
 * bucket takes far longer than a write to a disk, and costs money. */
enum { OBJECT_STORE_SETUP_S3_FLUSH_MS = 250 };

bool object_store_setup_are_in_s3(const struct settings *settings);

/* Called once per start, in the process that a person started and before its children: checks
 * settings that depend on each other, makes their paths absolute and puts the keys into the
 * environment. Sends nothing. Errors: ERR_INVALID (the message names the setting), ERR_IO. */
enum err_code object_store_setup_prepare(struct settings *settings, struct err *err) MUST_USE;

/* Opens the store. A bucket is tested, and the error states what is wrong with it
 * (lib/io/object_s3.h). */
enum err_code object_store_setup_open(const struct settings *settings,
                                      struct object_store **ret_objects, struct err *err) MUST_USE;

/* Opens the store only for reading, beside a server that may run as another user: a folder has to
 * exist, nothing is created in it, and objects are read with the permissions of server. Errors:
 * ERR_NOT_FOUND (the folder does not exist). */
enum err_code object_store_setup_open_to_read(const struct settings *settings,
                                              const struct os_user *server,
                                              struct object_store **ret_objects,
                                              struct err *err) MUST_USE;

#endif

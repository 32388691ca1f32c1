#include "api/core/object_store_setup.h"

#include "api/core/os_user.h"
#include "api/core/settings.h"
#include "api/core/settings_value.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/input/config.h"
#include "lib/io/object.h"
#include "lib/io/object_s3.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Clients wait some ten seconds for a response and then send again. The server responds before
 * that, so that no worker is held for nothing: a request to the bucket that stalls ends after 5 s,
 * and one that fails is repeated for 5 s.
 */
enum { CONNECT_TIMEOUT_MS = 3000, READ_TIMEOUT_S = 5, RETRY_S = 5 };

/* The size of 10,000 parts of 8 MiB: no object is larger. */
#define OPEN_MAX_BYTES (UINT64_C(10000) * 8 << 20)

bool object_store_setup_are_in_s3(const struct settings *settings)
{
    return *settings->s3_bucket;
}

/* A setting without effect is a mistake: profiles would go to the disk of this host. */
static enum err_code refuse_without_bucket(const struct settings *settings, struct err *err)
{
    const struct {
        const char *name, *value;
    } others[] = {{"s3-endpoint", settings->s3_endpoint},
                  {"s3-prefix", settings->s3_prefix},
                  {"s3-ca-file", settings->s3_ca_file},
                  {"s3-credentials-file", settings->s3_credentials_file}};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (*others[i].value)
            return err_set(err, ERR_INVALID,
                           "%s is set, but not s3-bucket: set it, too, to keep profiles there",
                           others[i].name);
    return ERR_NONE;
}

static enum err_code make_absolute(char **path, struct err *err)
{
    char absolute[PATH_MAX];
    if (!**path)
        return ERR_NONE;
    if (!realpath(*path, absolute))
        return err_set_errno(err, ERR_INVALID, "cannot find the file %s", *path);
    settings_value_set_text(path, absolute);
    return ERR_NONE;
}

static enum err_code read_credentials(const char *path, struct err *err)
{
    static const char *const names[][2] = {{"aws_access_key_id", "AWS_ACCESS_KEY_ID"},
                                           {"aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"},
                                           {"aws_session_token", "AWS_SESSION_TOKEN"}};
    config_auto config = NULL;
    if (access(path, R_OK) != 0)
        return err_set_errno(err, ERR_INVALID, "cannot read s3-credentials-file %s", path);
    enum err_code code = config_load(path, &config, err);
    if (code)
        return err_add(err, "s3-credentials-file");
    for (int i = 0; i < 3; i++) {
        const char *value = config_get(config, "default", names[i][0]);
        if (!value && i < 2)
            return err_set(err, ERR_INVALID,
                           "s3-credentials-file %s has no %s in its section [default]", path,
                           names[i][0]);
        if (value ? setenv(names[i][1], value, 1) : unsetenv(names[i][1]))
            return err_set_errno(err, ERR_IO, "cannot use the keys in s3-credentials-file");
    }
    if (!config_is_private(config))
        log_event(LOG_WARN, "other users of this host may read s3-credentials-file", "path=%s",
                  path);
    return ERR_NONE;
}

enum err_code object_store_setup_prepare(struct settings *settings, struct err *err)
{
    if (!object_store_setup_are_in_s3(settings))
        return refuse_without_bucket(settings, err);
    enum err_code code = make_absolute(&settings->s3_ca_file, err);
    if (code)
        return code;
    if (*settings->s3_credentials_file)
        code = read_credentials(settings->s3_credentials_file, err);
    if (code)
        return code;
    if (!getenv("AWS_ACCESS_KEY_ID") || !getenv("AWS_SECRET_ACCESS_KEY"))
        code = err_set(err, ERR_INVALID,
                       "the bucket %s needs keys: name a file that contains them with "
                       "--s3-credentials-file, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
                       "in the environment",
                       settings->s3_bucket);
    return code;
}

static enum err_code open_bucket(const struct settings *settings, struct object_store **ret_objects,
                                 struct err *err)
{
    char endpoint[300], copies[PATH_MAX];
    snprintf(endpoint, sizeof(endpoint), "https://s3.%s.amazonaws.com", settings->s3_region);
    snprintf(copies, sizeof(copies), "%s/copies", settings->data_dir);
    const struct object_s3_options options = {
        .endpoint = *settings->s3_endpoint ? settings->s3_endpoint : endpoint,
        .bucket = settings->s3_bucket,
        .prefix = settings->s3_prefix,
        .region = settings->s3_region,
        .ca_file = *settings->s3_ca_file ? settings->s3_ca_file : NULL,
        .is_path_style = settings->s3_path_style,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .read_timeout_s = READ_TIMEOUT_S,
        .retry_s = RETRY_S,
        .open_max_bytes = OPEN_MAX_BYTES,
        .temporary_folder = copies,
    };
    return object_s3_open(&options, ret_objects, err);
}

enum err_code object_store_setup_open(const struct settings *settings,
                                      struct object_store **ret_objects, struct err *err)
{
    char path[PATH_MAX];
    if (object_store_setup_are_in_s3(settings))
        return open_bucket(settings, ret_objects, err);
    snprintf(path, sizeof(path), "%s/objects", settings->data_dir);
    return object_folder_open(path, ret_objects, err);
}

enum err_code object_store_setup_open_to_read(const struct settings *settings,
                                              const struct os_user *server,
                                              struct object_store **ret_objects, struct err *err)
{
    char path[PATH_MAX];
    if (object_store_setup_are_in_s3(settings))
        return open_bucket(settings, ret_objects, err);
    snprintf(path, sizeof(path), "%s/objects", settings->data_dir);
    const enum err_code code = object_folder_open_to_read(path, ret_objects, err);
    if (code)
        return code;
    object_folder_read_as(*ret_objects, server->uid, server->gid);
    return ERR_NONE;
}

#include "lib/io/s3_settings.h"

#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_CONNECT_TIMEOUT_MS = 5000,
    DEFAULT_READ_TIMEOUT_S = 20,
    HOST_MAX_BYTES = 255,
    BUCKET_MIN_BYTES = 3,
    BUCKET_MAX_BYTES = 63,
    PREFIX_MAX_BYTES = 512, /* with a key far below S3's 1,024 */
    KEY_MAX_BYTES = 256,
    TOKEN_MAX_BYTES = 8 << 10,
};

static const char letters_and_digits[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/* Whether the text consists of min to max letters, digits and characters of others. */
static bool consists_of(const char *text, const char *others, size_t min, size_t max)
{
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i++)
        if (!strchr(letters_and_digits, text[i]) && !strchr(others, text[i]))
            return false;
    return size >= min && size <= max;
}

/* Whether the text can be sent in a header field without escaping. */
static bool is_printable(const char *text, size_t max)
{
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return size > 0 && size <= max;
}

/* "host:443" behind https is signed as "host", which is what libcurl sends. */
static void cut_default_port(char *host, const char *scheme)
{
    char *port = strrchr(host, ':');
    const char *usual = strcmp(scheme, "https") == 0 ? ":443" : ":80";
    if (port && strcmp(port, usual) == 0)
        *port = '\0';
}

static enum err_code set_host(struct s3_settings *settings, const char *endpoint, struct err *err)
{
    const char *rest = endpoint ? strstr(endpoint, "://") : NULL;
    bool is_https = rest && strncmp(endpoint, "https://", 8) == 0;
    bool is_http = rest && strncmp(endpoint, "http://", 7) == 0;
    settings->scheme = is_https ? "https" : "http";
    char host[HOST_MAX_BYTES + 2] = "";
    if (rest)
        snprintf(host, sizeof(host), "%s", rest + 3);
    size_t size = strlen(host);
    if (size && host[size - 1] == '/')
        host[--size] = '\0';
    for (size_t i = 0; i < size; i++)
        host[i] = (char)tolower((unsigned char)host[i]);
    if ((!is_https && !is_http) || !consists_of(host, ".-:[]", 1, HOST_MAX_BYTES))
        return err_set(
            err, ERR_INVALID,
            "the S3 endpoint has to be https://host or http://host:port, without a path");
    cut_default_port(host, settings->scheme);
    char whole[HOST_MAX_BYTES + BUCKET_MAX_BYTES + 2];
    snprintf(whole, sizeof(whole), "%s%s%s", settings->is_path_style ? "" : settings->bucket,
             settings->is_path_style ? "" : ".", host);
    settings->host = mem_strdup(whole);
    return ERR_NONE;
}

/* Parts of a key's bytes, none of which starts with a dot; ends with "/" if there are any. */
static enum err_code set_prefix(struct s3_settings *settings, const char *prefix, struct err *err)
{
    size_t size = prefix ? strlen(prefix) : 0;
    bool is_good =
        size == 0 || (consists_of(prefix, "._-/", 1, PREFIX_MAX_BYTES) && !strstr(prefix, "//") &&
                      !strstr(prefix, "/.") && prefix[0] != '/' && prefix[0] != '.');
    if (!is_good)
        return err_set(
            err, ERR_INVALID,
            "the prefix of the S3 store has to be names of A-Za-z0-9._- joined by \"/\"");
    char whole[PREFIX_MAX_BYTES + 2];
    bool is_open = size && prefix[size - 1] != '/';
    snprintf(whole, sizeof(whole), "%s%s", size ? prefix : "", is_open ? "/" : "");
    settings->prefix = mem_strdup(whole);
    return ERR_NONE;
}

static const char *or_environment(const char *option, const char *name)
{
    const char *value = option ? option : getenv(name);
    return value && value[0] ? value : NULL;
}

static enum err_code set_credentials(struct s3_settings *settings,
                                     const struct object_s3_options *options, struct err *err)
{
    const char *access_key = or_environment(options->access_key, "AWS_ACCESS_KEY_ID");
    const char *secret_key = or_environment(options->secret_key, "AWS_SECRET_ACCESS_KEY");
    /* A token of the environment belongs to the keys there. */
    const char *token = options->access_key
                            ? options->session_token
                            : or_environment(options->session_token, "AWS_SESSION_TOKEN");
    if (!access_key || !secret_key)
        return err_set(err, ERR_INVALID,
                       "the S3 store needs an access key and a secret key, by its options or as "
                       "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
    if (!is_printable(access_key, KEY_MAX_BYTES) || !is_printable(secret_key, KEY_MAX_BYTES) ||
        (token && token[0] && !is_printable(token, TOKEN_MAX_BYTES)))
        return err_set(err, ERR_INVALID,
                       "an S3 key or the session token is too long or holds spaces or controls");
    settings->access_key = mem_strdup(access_key);
    settings->secret_key = mem_strdup(secret_key);
    settings->session_token = token && token[0] ? mem_strdup(token) : NULL;
    return ERR_NONE;
}

enum err_code s3_settings_init(struct s3_settings *settings,
                               const struct object_s3_options *options, struct err *err)
{
    const char *region = options->region && options->region[0] ? options->region : "us-east-1";
    *settings = (struct s3_settings){
        .is_path_style = options->is_path_style,
        .connect_timeout_ms = options->connect_timeout_ms > 0 ? options->connect_timeout_ms
                                                              : DEFAULT_CONNECT_TIMEOUT_MS,
        .read_timeout_s =
            options->read_timeout_s > 0 ? options->read_timeout_s : DEFAULT_READ_TIMEOUT_S,
    };
    if (!options->bucket ||
        !consists_of(options->bucket, "._-", BUCKET_MIN_BYTES, BUCKET_MAX_BYTES) ||
        options->bucket[0] == '.' || strstr(options->bucket, ".."))
        return err_set(
            err, ERR_INVALID,
            "the S3 bucket has to be a name of 3 to 63 letters, digits, \".\" and \"-\"");
    if (!consists_of(region, "-_", 1, KEY_MAX_BYTES))
        return err_set(err, ERR_INVALID, "the S3 region has to be a name such as us-east-1");
    settings->bucket = mem_strdup(options->bucket);
    settings->region = mem_strdup(region);
    settings->ca_file = options->ca_file ? mem_strdup(options->ca_file) : NULL;
    enum err_code code = set_host(settings, options->endpoint, err);
    if (code)
        return code;
    code = set_prefix(settings, options->prefix, err);
    if (code)
        return code;
    return set_credentials(settings, options, err);
}

static void forget(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    mem_free(secret);
}

void s3_settings_fini(struct s3_settings *settings)
{
    mem_free(settings->host);
    mem_free(settings->bucket);
    mem_free(settings->prefix);
    mem_free(settings->region);
    mem_free(settings->access_key);
    mem_free(settings->ca_file);
    forget(settings->secret_key);
    forget(settings->session_token);
    *settings = (struct s3_settings){0};
}

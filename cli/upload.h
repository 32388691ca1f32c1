/*
 * upload: uploads an input and creates a share.
 *
 * An input of at most UPLOAD_PART_BYTES is sent in one POST with an Idempotency-Key. If the
 * connection breaks before the response, the request is repeated: the server creates one share and
 * returns it both times. A larger input is sent in parts, each of which may be repeated. Unfinished
 * uploads are stored (upload_state.h), so that a later push of the same bytes to the same server
 * resumes the upload. Parts that the server has lost or finds damaged when it joins them are sent
 * again.
 */
#ifndef CLI_UPLOAD_H
#define CLI_UPLOAD_H

#include "lib/base/err_code.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct client;
struct input;
struct terminal;

/* The largest input that is sent in one request. The server's parts have the same size, but the
 * client uses the size that the server returns. */
#define UPLOAD_PART_BYTES UINT64_C(4194304)

/* The settings of a new share. A NULL member: the server's default. Texts are borrowed. */
struct upload_settings {
    const char *title;
    const char *description;
    const char *expires;
    const char *visibility;
    const char *password;
    const char *filename;
    const char *const *labels; /* "key=value" */
    size_t label_count;
};

/*
 * Uploads input and creates a share. The caller owns *ret_share, the response of the server
 * including delete_token; its id is a valid id of a share, and its url is an ASCII web address.
 * Errors: those of client_send, ERR_IO.
 */
enum err_code upload_share(struct client *client, struct terminal *terminal,
                           const struct input *input, const struct upload_settings *settings,
                           json_t **ret_share, struct err *err) MUST_USE;

/*
 * Sends input to path, which begins with /api/v1/debuginfo/, in parts if it is large; file is its
 * name on the server. The caller owns *ret_response. Errors: as upload_share.
 */
enum err_code upload_debuginfo(struct client *client, struct terminal *terminal,
                               const struct input *input, const char *path, const char *file,
                               json_t **ret_response, struct err *err) MUST_USE;

/* Appends the settings that are set, "?title=…&label=…", or nothing. */
void upload_append_query(struct buf *text, const struct upload_settings *settings);

#endif

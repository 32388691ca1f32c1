/*
 * upload: an input becomes a share.
 *
 * Up to UPLOAD_PART_BYTES in one POST, with an Idempotency-Key, so that it may be repeated when its
 * outcome is not known (the connection broke after it was sent): the server makes one share and
 * answers again. Larger inputs go in parts, each of which may be repeated; which upload belongs to
 * which bytes is kept in $XDG_STATE_HOME/perfolio/uploads, so that the same bytes pushed again to
 * the same server go on where an earlier push broke off. Parts that the server finds damaged or
 * lost when it joins them are sent again.
 */
#ifndef CLI_UPLOAD_H
#define CLI_UPLOAD_H

#include "lib/base/err.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct client;
struct input;
struct terminal;

#define UPLOAD_PART_BYTES UINT64_C(4194304)

/* NULL: the server's default. */
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
 * The caller owns *ret_share: what the server answered, with delete_token and all, id a
 * share's and url a web address of plain ASCII.
 * Handles what client_send does, and ERR_IO.
 */
enum err_code upload_share(struct client *client, struct terminal *terminal,
                           const struct input *input, const struct upload_settings *settings,
                           json_t **ret_share, struct err *err) MUST_USE;

/*
 * Sends input to path, which begins with /api/v1/debuginfo/, in parts where it is large; file is
 * what the server shall call it. The caller owns *ret_answer. Handles: as upload_share.
 */
enum err_code upload_debuginfo(struct client *client, struct terminal *terminal,
                               const struct input *input, const char *path, const char *file,
                               json_t **ret_answer, struct err *err) MUST_USE;

/* "?title=…&label=…" of what is set, or nothing; appended. */
void upload_append_query(struct buf *text, const struct upload_settings *settings);

#endif

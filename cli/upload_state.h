/*
 * upload_state: stores unfinished uploads, so that they can be resumed.
 *
 * One file per upload, $XDG_STATE_HOME/perfolio/uploads/<hash>.ini. The hash is over the server and
 * the bytes, so that the upload is found for the same bytes under any name.
 */
#ifndef CLI_UPLOAD_STATE_H
#define CLI_UPLOAD_STATE_H

#include "lib/base/err_code.h"

#include <stdint.h>

struct arena;
struct input;

struct upload_state {
    const char *path;  /* of the file */
    const char *id;    /* NULL: no unfinished upload */
    const char *token; /* "": the server issued none */
};

/* Finds the stored state of an upload of input. base is the URL of the server, with a suffix for
 * uploads other than shares; it is only hashed. Reads all of input once. Texts are in arena. If
 * nothing is stored, ret_state->id is NULL. Errors: ERR_IO, ERR_INVALID (no home folder). */
enum err_code upload_state_find(const char *base, const struct input *input, struct arena *arena,
                                struct upload_state *ret_state, struct err *err) MUST_USE;
/* Writes the state to state->path. Errors: ERR_IO, ERR_INVALID. */
enum err_code upload_state_save(const struct upload_state *state, struct err *err) MUST_USE;
/* Deletes the file at state->path, if it exists. */
void upload_state_forget(const struct upload_state *state);

#endif

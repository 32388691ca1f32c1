/*
 * stored_share: shares that were created from this machine, with their delete tokens, so that
 * `perfolio delete LINK` works later and without an account. One file per share, mode 0600, so that
 * concurrent pushes do not conflict: $XDG_STATE_HOME/perfolio/shares/<id>.ini with
 * [share] url, delete_token, filename, title, created_at, expires_at.
 */
#ifndef CLI_STORED_SHARE_H
#define CLI_STORED_SHARE_H

#include "lib/base/err_code.h"

#include <jansson.h>
#include <stddef.h>

struct arena;

struct stored_share {
    const char *id;
    const char *url;
    const char *delete_token; /* "" if unknown, as are the members below */
    const char *filename;
    const char *title;
    const char *created_at; /* RFC 3339 */
    const char *expires_at; /* "" for never */
};

/* Stores a share that was just created; share is the response of the server. title may be NULL.
 * Errors: ERR_IO, ERR_INVALID (no home folder, or share has no valid id). */
enum err_code stored_share_add(const json_t *share, const char *filename, const char *title,
                               struct err *err) MUST_USE;
/* Reads the file of a share; texts are in arena. Errors: ERR_NOT_FOUND, ERR_IO, ERR_INVALID. */
enum err_code stored_share_find(const char *id, struct arena *arena, struct stored_share *ret_share,
                                struct err *err) MUST_USE;
/* Deletes the file of a share, if there is one. */
void stored_share_remove(const char *id);
/* Lists the stored shares, newest first; files that cannot be read are left out. *ret_shares is in
 * arena, and NULL if none is stored. Errors: ERR_INVALID (no home folder). */
enum err_code stored_share_list(struct arena *arena, struct stored_share **ret_shares,
                                size_t *ret_count, struct err *err) MUST_USE;

#endif

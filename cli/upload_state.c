#include "cli/upload_state.h"

#include "cli/input.h"
#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/input/config.h"

#include <errno.h>
#include <unistd.h>

enum { READ_BYTES = 256 << 10, NAME_BYTES = 16 /* of the hash, enough to distinguish uploads */ };

static enum err_code hash_input(const char *base, const struct input *input,
                                uint8_t hash[DIGEST_BYTES], struct err *err)
{
    arena_auto arena = arena_create();
    uint8_t *piece = arena_alloc_raw(arena, READ_BYTES, 1);
    struct digest_stream *stream = digest_stream_create();
    ssize_t taken = 1;
    digest_stream_append(stream, span_of(base, strlen(base) + 1));
    for (uint64_t at = 0; at < input->bytes; at += (uint64_t)taken) {
        taken = pread(input->fd, piece, READ_BYTES, (off_t)at);
        if (taken <= 0)
            break;
        digest_stream_append(stream, span_of(piece, (size_t)taken));
    }
    digest_stream_finish(stream, hash);
    digest_stream_destroy(stream);
    if (taken == 0) /* the file was truncated */
        errno = ENODATA;
    return taken > 0 ? ERR_NONE : err_set_errno(err, ERR_IO, "reading %s", input->name);
}

enum err_code upload_state_find(const char *base, const struct input *input, struct arena *arena,
                                struct upload_state *ret_state, struct err *err)
{
    uint8_t hash[DIGEST_BYTES];
    char name[2 * NAME_BYTES + 1];
    struct upload_state state = {0};
    config_auto config = NULL;
    enum err_code code = hash_input(base, input, hash, err);
    if (code)
        return code;
    digest_hex(span_of(hash, NAME_BYTES), name);
    code = config_path(CONFIG_FOLDER_STATE, arena_printf(arena, "uploads/%s.ini", name), arena,
                       &state.path, err);
    if (code)
        return code;
    code = config_load(state.path, &config, err);
    if (code)
        return code;
    const char *id = config_get(config, "upload", "id");
    const char *token = config_get(config, "upload", "token");
    state.id = id ? arena_strdup(arena, id) : NULL;
    state.token = arena_strdup(arena, token ? token : "");
    *ret_state = state;
    return ERR_NONE;
}

enum err_code upload_state_save(const struct upload_state *state, struct err *err)
{
    config_auto config = NULL;
    enum err_code code = config_load(state->path, &config, err);
    if (code)
        return code;
    config_set(config, "upload", "id", state->id);
    config_set(config, "upload", "token", state->token[0] ? state->token : NULL);
    return config_save(config, err);
}

void upload_state_forget(const struct upload_state *state)
{
    unlink(state->path);
}

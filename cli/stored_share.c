#include "cli/stored_share.h"

#include "cli/client.h"
#include "cli/link.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/input/config.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

static enum err_code path_of(const char *id, struct arena *arena, const char **ret_path,
                             struct err *err)
{
    struct link link;
    if (!link_parse(id, arena, &link) || link.is_diff || link.base)
        return err_set(err, ERR_INVALID, "the server returned an invalid id");
    return config_path(CONFIG_FOLDER_STATE, arena_printf(arena, "shares/%s.ini", id), arena,
                       ret_path, err);
}

/* Stores at most MAX_STORED_TEXT bytes of a text, with blanks in place of characters that the file
 * format cannot represent. */
static void set_text(struct config *config, const char *key, const char *text, struct arena *arena)
{
    enum { MAX_STORED_TEXT = 100 };
    char *copy = arena_strndup(arena, text, strnlen(text, MAX_STORED_TEXT));
    for (char *at = copy; *at; at++) {
        if ((unsigned char)*at < ' ' || *at == ';')
            *at = ' ';
    }
    struct span trimmed = span_trim(span_text(copy));
    if (trimmed.size)
        config_set(config, "share", key, arena_strndup(arena, trimmed.data, trimmed.size));
}

enum err_code stored_share_add(const json_t *share, const char *filename, const char *title,
                               struct err *err)
{
    arena_auto arena = arena_create();
    config_auto config = NULL;
    char now[CLOCK_TEXT_BYTES];
    const char *path;
    enum err_code code = path_of(client_text(share, "id", ""), arena, &path, err);
    if (code)
        return code;
    code = config_load(path, &config, err);
    if (code)
        return code;
    config_set(config, "share", "url", client_text(share, "url", ""));
    config_set(config, "share", "delete_token", client_text(share, "delete_token", NULL));
    config_set(config, "share", "expires_at", client_text(share, "expires_at", NULL));
    config_set(config, "share", "created_at", clock_format(clock_wall_ns(), now));
    set_text(config, "filename", filename, arena);
    set_text(config, "title", title ? title : "", arena);
    return config_save(config, err);
}

static const char *copy_of(const struct config *config, const char *key, struct arena *arena)
{
    const char *value = config_get(config, "share", key);
    return arena_strdup(arena, value ? value : "");
}

enum err_code stored_share_find(const char *id, struct arena *arena, struct stored_share *ret_share,
                                struct err *err)
{
    config_auto config = NULL;
    const char *path;
    enum err_code code = path_of(id, arena, &path, err);
    if (code)
        return code;
    code = config_load(path, &config, err);
    if (code)
        return code;
    if (!config_get(config, "share", "url"))
        return err_set(err, ERR_NOT_FOUND,
                       "no delete token for the share %s is stored on this machine", id);
    *ret_share = (struct stored_share){
        .id = arena_strdup(arena, id),
        .url = copy_of(config, "url", arena),
        .delete_token = copy_of(config, "delete_token", arena),
        .filename = copy_of(config, "filename", arena),
        .title = copy_of(config, "title", arena),
        .created_at = copy_of(config, "created_at", arena),
        .expires_at = copy_of(config, "expires_at", arena),
    };
    return ERR_NONE;
}

void stored_share_remove(const char *id)
{
    arena_auto arena = arena_create();
    struct err err;
    const char *path;
    if (!path_of(id, arena, &path, &err))
        unlink(path);
}

static int newest_first(const void *a, const void *b)
{
    const struct stored_share *left = a, *right = b;
    return strcmp(right->created_at, left->created_at);
}

enum err_code stored_share_list(struct arena *arena, struct stored_share **ret_shares,
                                size_t *ret_count, struct err *err)
{
    const char *folder;
    struct stored_share *shares = NULL;
    size_t count = 0, capacity = 0;
    enum err_code code = config_path(CONFIG_FOLDER_STATE, "shares", arena, &folder, err);
    if (code)
        return code;
    DIR *listing = opendir(folder);
    for (const struct dirent *file = listing ? readdir(listing) : NULL; file;
         file = readdir(listing)) {
        struct err ignored;
        if (strlen(file->d_name) != LINK_ID_LENGTH + strlen(".ini"))
            continue;
        arena_reserve(arena, shares, capacity, count + 1);
        char *id = arena_strndup(arena, file->d_name, LINK_ID_LENGTH);
        if (!stored_share_find(id, arena, &shares[count], &ignored))
            count++;
    }
    if (listing)
        closedir(listing);
    if (count)
        qsort(shares, count, sizeof(*shares), newest_first);
    *ret_shares = shares;
    *ret_count = count;
    return ERR_NONE;
}

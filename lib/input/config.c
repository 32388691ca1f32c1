#include "lib/input/config.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <libgen.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONFIG_MAX_BYTES = 4 << 20 };

struct entry {
    char *section;
    char *key;
    char *value;
};

struct config {
    char *path;
    struct entry *entries;
    size_t entry_count;
    size_t entry_capacity;
    bool is_private;
};

static const char *absolute_env(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] == '/' ? value : NULL;
}

static const char *home_folder(void)
{
    const char *home = absolute_env("HOME");
    if (home)
        return home;
    const struct passwd *user = getpwuid(getuid());
    return user && user->pw_dir && user->pw_dir[0] == '/' ? user->pw_dir : NULL;
}

enum err_code config_path(enum config_folder folder, const char *name, struct arena *arena,
                          const char **ret_path, struct err *err)
{
    bool is_state = folder == CONFIG_FOLDER_STATE;
    const char *base = absolute_env(is_state ? "XDG_STATE_HOME" : "XDG_CONFIG_HOME");
    const char *home = home_folder();
    if (base)
        *ret_path = arena_printf(arena, "%s/perfolio/%s", base, name);
    else if (home)
        *ret_path = arena_printf(arena, "%s/%s/perfolio/%s", home,
                                 is_state ? ".local/state" : ".config", name);
    else
        return err_set(err, ERR_INVALID, "no home folder is known: set HOME");
    return ERR_NONE;
}

static struct entry *find_entry(const struct config *config, const char *section, const char *key)
{
    for (size_t i = 0; i < config->entry_count; i++) {
        struct entry *entry = &config->entries[i];
        if (strcmp(entry->section, section) == 0 && strcmp(entry->key, key) == 0)
            return entry;
    }
    return NULL;
}

static void free_entry(struct entry *entry)
{
    mem_free(entry->section);
    mem_free(entry->key);
    mem_free(entry->value);
}

static void remove_entry(struct config *config, struct entry *entry)
{
    size_t at = (size_t)(entry - config->entries);
    free_entry(entry);
    config->entry_count--;
    memmove(entry, entry + 1, (config->entry_count - at) * sizeof(*entry));
}

/* Inserts after the last entry of the section, so that each section is written once. */
static struct entry *insert_entry(struct config *config, const char *section)
{
    vec_reserve(config->entries, config->entry_capacity, config->entry_count + 1);
    size_t at = config->entry_count;
    while (at > 0 && strcmp(config->entries[at - 1].section, section) != 0)
        at--;
    if (at == 0 && section[0]) /* a new section goes last; entries without a section stay first */
        at = config->entry_count;
    struct entry *entry = &config->entries[at];
    memmove(entry + 1, entry, (config->entry_count - at) * sizeof(*entry));
    config->entry_count++;
    return entry;
}

const char *config_get(const struct config *config, const char *section, const char *key)
{
    const struct entry *entry = find_entry(config, section, key);
    return entry ? entry->value : NULL;
}

void config_set(struct config *config, const char *section, const char *key, const char *value)
{
    struct entry *entry = find_entry(config, section, key);
    if (entry && !value) {
        remove_entry(config, entry);
    } else if (entry) {
        char *copy = mem_strdup(value);
        mem_free(entry->value);
        entry->value = copy;
    } else if (value) {
        *insert_entry(config, section) = (struct entry){
            .section = mem_strdup(section), .key = mem_strdup(key), .value = mem_strdup(value)};
    }
}

void config_remove_section(struct config *config, const char *section)
{
    for (size_t i = config->entry_count; i-- > 0;) {
        if (strcmp(config->entries[i].section, section) == 0)
            remove_entry(config, &config->entries[i]);
    }
}

const char *config_section(const struct config *config, size_t n)
{
    for (size_t i = 0; i < config->entry_count; i++) {
        const char *section = config->entries[i].section;
        if ((i == 0 || strcmp(section, config->entries[i - 1].section) != 0) && n-- == 0)
            return section;
    }
    return NULL;
}

const char *config_key(const struct config *config, size_t n, const char **ret_section)
{
    if (n >= config->entry_count)
        return NULL;
    *ret_section = config->entries[n].section;
    return config->entries[n].key;
}

bool config_is_private(const struct config *config)
{
    return config->is_private;
}

void config_destroy(struct config *config)
{
    if (!config)
        return;
    for (size_t i = 0; i < config->entry_count; i++)
        free_entry(&config->entries[i]);
    mem_free(config->entries);
    mem_free(config->path);
    mem_free(config);
}

static struct config *make_config(const char *path)
{
    struct config *config = mem_new(struct config, 1);
    config->path = mem_strdup(path);
    config->is_private = true;
    return config;
}

static int on_entry(void *context, const char *section, const char *key, const char *value)
{
    config_set(context, section, key, value);
    return 1;
}

static enum err_code read_file(struct config *config, FILE *file, struct err *err)
{
    struct stat status;
    if (fstat(fileno(file), &status))
        return err_set_errno(err, ERR_IO, "reading %s", config->path);
    if (status.st_size > CONFIG_MAX_BYTES)
        return err_set(err, ERR_INVALID, "%s is not a settings file: it has more than %d bytes",
                       config->path, CONFIG_MAX_BYTES);
    config->is_private = (status.st_mode & 077) == 0;
    int line = ini_parse_file(file, on_entry, config);
    if (ferror(file))
        return err_set_errno(err, ERR_IO, "reading %s", config->path);
    if (line)
        return err_set(err, ERR_INVALID, "%s, line %d: expected [section] or key = value",
                       config->path, line);
    return ERR_NONE;
}

enum err_code config_load(const char *path, struct config **ret_config, struct err *err)
{
    struct config *config = make_config(path);
    FILE *file = fopen(path, "re");
    enum err_code code = ERR_NONE;
    if (file) {
        code = read_file(config, file, err);
        fclose(file);
    } else if (errno != ENOENT) {
        code = err_set_errno(err, ERR_IO, "reading %s", path);
    }
    if (code)
        config_destroy(config);
    else
        *ret_config = config;
    return code;
}

static void write_entries(const struct config *config, struct buf *text)
{
    for (size_t i = 0; i < config->entry_count; i++) {
        const struct entry *entry = &config->entries[i];
        bool is_first = i == 0 || strcmp(entry->section, config->entries[i - 1].section) != 0;
        if (is_first && entry->section[0])
            buf_printf(text, "%s[%s]\n", i ? "\n" : "", entry->section);
        buf_printf(text, "%s = %s\n", entry->key, entry->value);
    }
    buf_append_byte(text, 0);
}

/* The text must be read back unchanged. The format has no quoting, so parse the text and
 * compare. */
static enum err_code check_round_trip(const struct config *config, const char *text,
                                      struct err *err)
{
    config_auto again = make_config(config->path);
    ini_parse_string(text, on_entry, again);
    for (size_t i = 0; i < config->entry_count; i++) {
        const struct entry *entry = &config->entries[i];
        const char *value = config_get(again, entry->section, entry->key);
        if (!value || strcmp(value, entry->value) != 0)
            return err_set(err, ERR_INVALID,
                           "the value of %s cannot be stored in a settings file: it is too long or "
                           "contains a line break or \" ;\"",
                           entry->key);
    }
    if (again->entry_count != config->entry_count)
        return err_set(err, ERR_INVALID, "a name or value cannot be stored in a settings file");
    return ERR_NONE;
}

static enum err_code make_folders(const char *folder, struct arena *arena, struct err *err)
{
    char *path = arena_strdup(arena, folder);
    for (char *at = path + 1;; at++) {
        if (*at && *at != '/')
            continue;
        char kept = *at;
        *at = 0;
        if (mkdir(path, 0700) && errno != EEXIST)
            return err_set_errno(err, ERR_IO, "creating the folder %s", path);
        *at = kept;
        if (!kept)
            return ERR_NONE;
    }
}

static bool write_synced(int fd, struct span bytes)
{
    while (bytes.size) {
        ssize_t written = write(fd, bytes.data, bytes.size);
        if (written < 0 && errno != EINTR)
            return false;
        if (written > 0)
            bytes = span_of(bytes.data + written, bytes.size - (size_t)written);
    }
    return fsync(fd) == 0;
}

/* Makes the rename durable: a delete token is stored nowhere else. */
static void sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

enum err_code config_save(struct config *config, struct err *err)
{
    buf_auto text;
    buf_init(&text, CONFIG_MAX_BYTES);
    write_entries(config, &text);
    if (buf_failed(&text))
        return err_set(err, ERR_INVALID, "%s would pass %d bytes", config->path, CONFIG_MAX_BYTES);
    enum err_code code = check_round_trip(config, (const char *)text.data, err);
    if (code)
        return code;
    arena_auto arena = arena_create();
    const char *folder = dirname(arena_strdup(arena, config->path));
    code = make_folders(folder, arena, err);
    if (code)
        return code;
    char *temporary = arena_printf(arena, "%s.XXXXXX", config->path);
    int fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return err_set_errno(err, ERR_IO, "creating a file in %s", folder);
    bool is_written = write_synced(fd, span_of(text.data, text.size - 1));
    if (close(fd) || !is_written) {
        err_set_errno(err, ERR_IO, "writing %s", temporary);
        goto fail;
    }
    if (rename(temporary, config->path)) {
        err_set_errno(err, ERR_IO, "replacing %s", config->path);
        goto fail;
    }
    sync_folder(folder);
    config->is_private = true;
    return ERR_NONE;
fail:
    unlink(temporary);
    return err->code;
}

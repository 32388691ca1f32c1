/*
 * config: small INI files in the user's XDG folders, for settings and for state that must last.
 *
 * A file is read whole, changed in memory and replaced atomically (written beside, synced,
 * renamed), always with mode 0600, in folders of mode 0700: it may hold secrets. Comments in a
 * file that is written again are lost. Sections and keys compare by case. Values are one line.
 * Folders: https://specifications.freedesktop.org/basedir-spec/latest/
 * Threads: an object belongs to one thread; the last of two processes that save wins.
 */
#ifndef LIB_BASE_CONFIG_H
#define LIB_BASE_CONFIG_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct config;

enum config_folder {
    CONFIG_FOLDER_CONFIG, /* $XDG_CONFIG_HOME, else ~/.config */
    CONFIG_FOLDER_STATE,  /* $XDG_STATE_HOME, else ~/.local/state */
};

/*
 * The path of name (may hold slashes) in the program's folder: …/perfolio/<name>. Relative XDG
 * variables are ignored, as the specification says. Nothing is created.
 * Handles: ERR_INVALID (no home folder is known).
 */
enum err_code config_path(enum config_folder folder, const char *name, struct arena *arena,
                          const char **ret_path, struct err *err) MUST_USE;

/*
 * Reads the file at path; a file that is not there gives an empty config. The caller destroys it.
 * Handles: ERR_INVALID (not an INI file; names the line), ERR_IO (not readable).
 */
enum err_code config_load(const char *path, struct config **ret_config, struct err *err) MUST_USE;
void config_destroy(struct config *config); /* NULL is a no-op */

/* Borrowed until the next config_set; NULL when absent. */
const char *config_get(const struct config *config, const char *section, const char *key);
/* Copies value; NULL removes the key. */
void config_set(struct config *config, const char *section, const char *key, const char *value);
/* Removes a section with all its keys. */
void config_remove_section(struct config *config, const char *section);
/* The n-th section's name in the order of the file, NULL past the last. */
const char *config_section(const struct config *config, size_t n);
/* The n-th key in the order of the file, and its section ("" before the first); NULL past the last.
 */
const char *config_key(const struct config *config, size_t n, const char **ret_section);
/* False when the file that was read could be read by other users. */
bool config_is_private(const struct config *config);

/*
 * Replaces the file, creating its folders. Handles: ERR_INVALID (a name or value that would not
 * read back the same: line breaks, " ;", too long), ERR_IO.
 */
enum err_code config_save(struct config *config, struct err *err) MUST_USE;

static inline void config_cleanup(struct config **config)
{
    config_destroy(*config);
}
#define config_auto __attribute__((cleanup(config_cleanup))) struct config *

#endif

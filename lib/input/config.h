/*
 * config: small INI files in the user's XDG directories, for settings and persistent state.
 *
 * A file is read whole, changed in memory and replaced atomically (written to a temporary file,
 * synced, renamed). Files have mode 0600 and their directories 0700, because they may contain
 * secrets. Saving drops comments. Sections and keys are case-sensitive. A value is one line.
 * Directories: https://specifications.freedesktop.org/basedir-spec/latest/ Threads: an object
 * belongs to one thread. When two processes save the same file, the last one wins.
 */
#ifndef LIB_INPUT_CONFIG_H
#define LIB_INPUT_CONFIG_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct config;

enum config_folder {
    CONFIG_FOLDER_CONFIG, /* $XDG_CONFIG_HOME, else ~/.config */
    CONFIG_FOLDER_STATE,  /* $XDG_STATE_HOME, else ~/.local/state */
};

/*
 * The path of name (which may contain slashes) in the program's directory: …/perfolio/<name>.
 * Relative XDG variables are ignored, as the specification requires. Creates nothing. Errors:
 * ERR_INVALID (no home directory is known).
 */
enum err_code config_path(enum config_folder folder, const char *name, struct arena *arena,
                          const char **ret_path, struct err *err) MUST_USE;

/*
 * Reads the file at path; a missing file gives an empty config. The caller destroys *ret_config.
 * Errors: ERR_INVALID (not an INI file; the message contains the line), ERR_IO (not readable).
 */
enum err_code config_load(const char *path, struct config **ret_config, struct err *err) MUST_USE;
void config_destroy(struct config *config); /* NULL is a no-op */

/* The value of a key, borrowed until the next config_set; NULL when absent. */
const char *config_get(const struct config *config, const char *section, const char *key);
/* Sets a key to a copy of value; NULL removes the key. */
void config_set(struct config *config, const char *section, const char *key, const char *value);
/* Removes a section with all its keys. */
void config_remove_section(struct config *config, const char *section);
/* The name of the n-th section in file order; NULL past the last. */
const char *config_section(const struct config *config, size_t n);
/* The n-th key in file order and its section ("" before the first section); NULL past the last. */
const char *config_key(const struct config *config, size_t n, const char **ret_section);
/* False when other users had permission to read the file that was loaded. */
bool config_is_private(const struct config *config);

/*
 * Replaces the file and creates its directories. Errors: ERR_INVALID (a name or value that would
 * not be read back unchanged: line breaks, " ;", too long), ERR_IO.
 */
enum err_code config_save(struct config *config, struct err *err) MUST_USE;

static inline void config_cleanup(struct config **config)
{
    config_destroy(*config);
}
#define config_auto __attribute__((cleanup(config_cleanup))) struct config *

#endif

/*
 * settings_value: the value of one setting (api/core/settings_table.h): from text to the member of
 * struct settings, and back. Threads: those of struct settings.
 */
#ifndef API_CORE_SETTINGS_VALUE_H
#define API_CORE_SETTINGS_VALUE_H

#include "api/core/settings_table.h"
#include "lib/base/err_code.h"

struct buf;
struct settings;

/* Parses text and sets the member; an address to listen on is added to the others. Errors:
 * ERR_INVALID. */
enum err_code settings_value_set(struct settings *settings, const struct setting *setting,
                                 const char *text, struct err *err) MUST_USE;
/* Appends the value in a form that settings_value_set accepts. */
void settings_value_format(const struct settings *settings, const struct setting *setting,
                           struct buf *text);
/* "SIZE", "yes|no", …, for the help. */
const char *settings_value_hint(enum setting_kind kind);

/* Replaces one text setting; value is copied. */
void settings_value_set_text(char **text, const char *value);
/* Frees the text of a setting. */
void settings_value_free_text(struct settings *settings, const struct setting *setting);
/* Removes all addresses to listen on. */
void settings_value_clear_listen(struct settings *settings);

#endif

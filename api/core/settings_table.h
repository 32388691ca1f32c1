/*
 * settings_table: one row for each setting of perfoliod: its name, kind, range, default and help.
 *
 * A row makes a setting a flag, a variable of the environment and a line of the settings file
 * (api/core/settings.h). Threads: any, read-only.
 */
#ifndef API_CORE_SETTINGS_TABLE_H
#define API_CORE_SETTINGS_TABLE_H

#include <stddef.h>
#include <stdint.h>

enum setting_kind {
    SETTING_TEXT,
    SETTING_LISTEN,
    SETTING_LEVEL,
    SETTING_SWITCH,
    SETTING_NUMBER,   /* int */
    SETTING_COUNT,    /* uint64_t */
    SETTING_SIZE,     /* uint64_t bytes */
    SETTING_SECONDS,  /* int */
    SETTING_DURATION, /* int64_t seconds */
};

struct setting {
    const char *name; /* "data-dir" */
    enum setting_kind kind;
    size_t offset; /* where struct settings has the value */
    int64_t low;   /* the range of a number, in the unit of the member */
    int64_t high;
    const char *initial; /* the default, as a text */
    const char *help;    /* without a full stop */
};

extern const struct setting settings_table[];
extern const size_t settings_table_count;

/* Old names, which are still accepted; the last row has a NULL name. */
struct settings_table_renamed {
    const char *old_name;
    const char *name;
};
extern const struct settings_table_renamed settings_table_renamed[];

/* The setting with this name, or with this old name; NULL if there is none. */
const struct setting *settings_table_find(const char *name);

/* The name of its variable: "data-dir" becomes "PERFOLIO_DATA_DIR". */
void settings_table_variable(const char *name, char *text, size_t text_bytes);

#endif

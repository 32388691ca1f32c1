#include "api/core/settings_value.h"

#include "api/core/settings.h"
#include "api/core/settings_table.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <string.h>
#include <strings.h>

static void *field_of(struct settings *settings, const struct setting *setting)
{
    return (char *)settings + setting->offset;
}

static const void *const_field_of(const struct settings *settings, const struct setting *setting)
{
    return (const char *)settings + setting->offset;
}

void settings_value_set_text(char **text, const char *value)
{
    char *copy = mem_strdup(value);
    mem_free(*text);
    *text = copy;
}

void settings_value_free_text(struct settings *settings, const struct setting *setting)
{
    char **text = field_of(settings, setting);
    mem_free(*text);
    *text = NULL;
}

struct unit {
    const char *name;
    int64_t factor;
};

static const struct unit size_units[] = {
    {"", 1},          {"KiB", 1 << 10},          {"MiB", 1 << 20},
    {"GiB", 1 << 30}, {"TiB", INT64_C(1) << 40}, {NULL, 0}};
static const struct unit time_units[] = {{"s", 1},         {"m", 60}, {"h", 3600}, {"d", 86400},
                                         {"w", 7 * 86400}, {"", 1},   {NULL, 0}};
static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

/* The number in the setting's unit; text may be "5", "5 MiB" or "5MiB". */
static enum err_code parse_number(const struct setting *setting, const char *text,
                                  const struct unit *units, int64_t *ret_number, struct err *err)
{
    size_t digits = strspn(text, "0123456789");
    int64_t number;
    if (digits == 0 || !span_parse_i64(span_of(text, digits), &number))
        return err_set(err, ERR_INVALID, "\"%s\" is not a number for %s", text, setting->name);
    const char *rest = text + digits;
    while (*rest == ' ')
        rest++;
    const struct unit *unit = units;
    while (unit->name && strcmp(unit->name, rest) != 0)
        unit++;
    if (!unit->name)
        return err_set(err, ERR_INVALID, "\"%s\" is not a value for %s: it takes %s", text,
                       setting->name,
                       units == size_units   ? "bytes, KiB, MiB, GiB or TiB"
                       : units == time_units ? "s, m, h, d or w"
                                             : "a plain number");
    if (__builtin_mul_overflow(number, unit->factor, &number) || number < setting->low ||
        number > setting->high)
        return err_set(err, ERR_INVALID, "%s for %s is outside %lld to %lld", text, setting->name,
                       (long long)setting->low, (long long)setting->high);
    *ret_number = number;
    return ERR_NONE;
}

static enum err_code parse_switch(const struct setting *setting, const char *text, bool *ret_value,
                                  struct err *err)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *ret_value = i % 2 == 1;
            return ERR_NONE;
        }
    }
    return err_set(err, ERR_INVALID, "\"%s\" is not a value for %s: it takes yes or no", text,
                   setting->name);
}

static const char *const level_names[] = {"debug", "info", "warn", "error"};

static enum err_code parse_level(const char *text, enum log_level *ret_level, struct err *err)
{
    for (int i = 0; i < 4; i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *ret_level = (enum log_level)i;
            return ERR_NONE;
        }
    }
    return err_set(err, ERR_INVALID,
                   "\"%s\" is not a value for log-level: it takes debug, info, warn or error",
                   text);
}

static enum err_code add_listen(struct settings *settings, struct span text, struct err *err)
{
    char *address = mem_alloc(text.size + 1, 1);
    if (text.size)
        memcpy(address, text.data, text.size);
    const char *colon = strrchr(address, ':');
    uint64_t port;
    enum err_code code = ERR_NONE;
    if (!colon || colon == address || !span_parse_u64(span_text(colon + 1), &port) || port > 65535)
        code = err_set(err, ERR_INVALID,
                       "\"%s\" is not an address to listen on: it takes host:port or [::1]:port",
                       address);
    else if (settings->listen_count == SETTINGS_MAX_LISTEN)
        code =
            err_set(err, ERR_INVALID, "more than %d addresses to listen on", SETTINGS_MAX_LISTEN);
    if (code)
        mem_free(address);
    else
        settings->listen[settings->listen_count++] = address;
    return code;
}

void settings_value_clear_listen(struct settings *settings)
{
    for (int i = 0; i < settings->listen_count; i++)
        mem_free(settings->listen[i]);
    settings->listen_count = 0;
}

/* Adds to the existing addresses; text contains one or more. */
static enum err_code add_listens(struct settings *settings, const char *text, struct err *err)
{
    struct span rest = span_text(text);
    bool has_more;
    do {
        struct span one, after;
        has_more = span_split(rest, ',', &one, &after);
        enum err_code code = add_listen(settings, span_trim(has_more ? one : rest), err);
        if (code)
            return code;
        rest = after;
    } while (has_more);
    return ERR_NONE;
}

enum err_code settings_value_set(struct settings *settings, const struct setting *setting,
                                 const char *text, struct err *err)
{
    void *field = field_of(settings, setting);
    int64_t number = 0;
    enum err_code code = ERR_NONE;
    switch (setting->kind) {
    case SETTING_TEXT:
        settings_value_set_text(field, text);
        return ERR_NONE;
    case SETTING_LISTEN:
        return add_listens(settings, text, err);
    case SETTING_LEVEL:
        return parse_level(text, field, err);
    case SETTING_SWITCH:
        return parse_switch(setting, text, field, err);
    case SETTING_NUMBER:
    case SETTING_SECONDS:
        code = parse_number(setting, text, setting->kind == SETTING_NUMBER ? no_units : time_units,
                            &number, err);
        if (!code)
            *(int *)field = (int)number;
        return code;
    case SETTING_COUNT:
    case SETTING_SIZE:
        code = parse_number(setting, text, setting->kind == SETTING_COUNT ? no_units : size_units,
                            &number, err);
        if (!code)
            *(uint64_t *)field = (uint64_t)number;
        return code;
    case SETTING_DURATION:
        code = parse_number(setting, text, time_units, &number, err);
        if (!code)
            *(int64_t *)field = number;
        return code;
    }
    return code;
}

const char *settings_value_hint(enum setting_kind kind)
{
    static const char *const hints[] = {
        [SETTING_TEXT] = "TEXT",         [SETTING_LISTEN] = "HOST:PORT",
        [SETTING_LEVEL] = "LEVEL",       [SETTING_SWITCH] = "yes|no",
        [SETTING_NUMBER] = "NUMBER",     [SETTING_COUNT] = "NUMBER",
        [SETTING_SIZE] = "SIZE",         [SETTING_SECONDS] = "DURATION",
        [SETTING_DURATION] = "DURATION",
    };
    return hints[kind];
}

void settings_value_format(const struct settings *settings, const struct setting *setting,
                           struct buf *text)
{
    const void *field = const_field_of(settings, setting);
    switch (setting->kind) {
    case SETTING_TEXT:
        buf_append_text(text, *(char *const *)field);
        break;
    case SETTING_LISTEN:
        for (int i = 0; i < settings->listen_count; i++)
            buf_printf(text, "%s%s", i ? "," : "", settings->listen[i]);
        break;
    case SETTING_LEVEL:
        buf_append_text(text, level_names[*(const enum log_level *)field]);
        break;
    case SETTING_SWITCH:
        buf_append_text(text, *(const bool *)field ? "yes" : "no");
        break;
    case SETTING_NUMBER:
    case SETTING_SECONDS:
        buf_printf(text, "%d", *(const int *)field);
        break;
    case SETTING_COUNT:
    case SETTING_SIZE:
        buf_printf(text, "%llu", (unsigned long long)*(const uint64_t *)field);
        break;
    case SETTING_DURATION:
        buf_printf(text, "%lld", (long long)*(const int64_t *)field);
        break;
    }
}

#include "api/core/settings.h"

#include "api/core/sample_labels.h"
#include "api/core/settings_table.h"
#include "api/core/settings_value.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <ini.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

void settings_init(struct settings *settings)
{
    *settings = (struct settings){.log_level = LOG_INFO};
    for (size_t i = 0; i < settings_table_count; i++) {
        struct err err;
        if (settings_value_set(settings, &settings_table[i], settings_table[i].initial, &err))
            abort(); /* a default in settings_table is wrong */
    }
}

void settings_fini(struct settings *settings)
{
    for (size_t i = 0; i < settings_table_count; i++) {
        if (settings_table[i].kind == SETTING_TEXT)
            settings_value_free_text(settings, &settings_table[i]);
    }
    settings_value_clear_listen(settings);
}

/* A source of values: the file, the environment or the flags. The listen addresses of one source
 * replace those of a source with lower priority; repeated addresses within one source add up. */
struct source {
    struct settings *settings;
    bool has_listen;
    struct err *err;
    enum err_code code;
};

static enum err_code set_from(struct source *source, const struct setting *setting,
                              const char *text)
{
    if (setting->kind == SETTING_LISTEN && !source->has_listen) {
        settings_value_clear_listen(source->settings);
        source->has_listen = true;
    }
    source->code = settings_value_set(source->settings, setting, text, source->err);
    return source->code;
}

/* inih's convention: 0 is an error, and ini_parse returns its line number. */
static int take_file_entry(void *context, const char *section, const char *name, const char *value)
{
    struct source *source = context;
    const struct setting *setting = settings_table_find(name);
    if (strcmp(section, "server") != 0) {
        source->code = err_set(source->err, ERR_INVALID,
                               "section [%s] is not known: settings belong to [server]", section);
        return 0;
    }
    if (!setting || strcmp(name, "config") == 0) {
        source->code = err_set(source->err, ERR_INVALID, "there is no setting \"%s\"", name);
        return 0;
    }
    return set_from(source, setting, value) == ERR_NONE;
}

static enum err_code load_file(struct settings *settings, struct err *err)
{
    struct source source = {.settings = settings, .err = err};
    int line = ini_parse(settings->config_file, take_file_entry, &source);
    if (line < 0)
        return err_set_errno(err, ERR_INVALID, "cannot read the settings file %s",
                             settings->config_file);
    if (line > 0 && !source.code)
        return err_set(err, ERR_INVALID, "%s, line %d: not a line of the form name = value",
                       settings->config_file, line);
    return line > 0 ? err_add(err, "%s, line %d", settings->config_file, line) : ERR_NONE;
}

static enum err_code load_variable(struct source *source, const char *setting_name, struct err *err)
{
    char name[80];
    settings_table_variable(setting_name, name, sizeof(name));
    const char *value = getenv(name);
    if (value && set_from(source, settings_table_find(setting_name), value))
        return err_add(err, "%s", name);
    return ERR_NONE;
}

/* If both names of a renamed setting are set, the new one applies. */
static enum err_code load_environment(struct settings *settings, struct err *err)
{
    struct source source = {.settings = settings, .err = err};
    enum err_code code = ERR_NONE;
    for (size_t i = 0; settings_table_renamed[i].name && !code; i++)
        code = load_variable(&source, settings_table_renamed[i].old_name, err);
    for (size_t i = 0; i < settings_table_count && !code; i++)
        code = load_variable(&source, settings_table[i].name, err);
    return code;
}

/* Reads the flag at arguments[0], as --name value or --name=value; *ret_used is the number of
 * arguments it took. */
static enum err_code take_flag(struct source *source, int argument_count, char *const *arguments,
                               int *ret_used, struct err *err)
{
    char name[64];
    const char *text = arguments[0], *equals = strchr(text, '=');
    if (strncmp(text, "--", 2) != 0)
        return err_set(err, ERR_INVALID, "\"%s\" is not a flag; see --help", text);
    snprintf(name, sizeof(name), "%.*s", (int)(equals ? equals - text - 2 : 60), text + 2);
    const struct setting *setting = settings_table_find(name);
    if (!setting)
        return err_set(err, ERR_INVALID, "there is no flag --%s; see --help", name);
    const char *value = equals ? equals + 1 : argument_count > 1 ? arguments[1] : NULL;
    if (!value)
        return err_set(err, ERR_INVALID, "--%s needs a value", name);
    *ret_used = equals ? 1 : 2;
    if (set_from(source, setting, value))
        return err_add(err, "--%s", name);
    return ERR_NONE;
}

static enum err_code load_flags(struct settings *settings, int argument_count,
                                char *const *arguments, struct err *err)
{
    struct source source = {.settings = settings, .err = err};
    for (int at = 0, used = 0; at < argument_count; at += used) {
        enum err_code code = take_flag(&source, argument_count - at, arguments + at, &used, err);
        if (code)
            return code;
    }
    return ERR_NONE;
}

/* Converts the list to its stored form. */
static enum err_code clean_sample_labels(struct settings *settings, struct err *err)
{
    char list[SAMPLE_LABELS_BYTES];
    enum err_code code = sample_labels_read(settings->tenant_sample_labels, list, err);
    if (code)
        return err_add(err, "tenant-sample-labels");
    settings_value_set_text(&settings->tenant_sample_labels, list);
    return ERR_NONE;
}

/* Checks the minimum of a setting that limits memory; the value 0 selects the default. */
static enum err_code check_minimum(uint64_t bytes, const char *name, struct err *err)
{
    enum { LEAST_MIB = 16 };
    if (bytes == 0 || bytes >= (uint64_t)LEAST_MIB << 20)
        return ERR_NONE;
    return err_set(err, ERR_INVALID, "--%s must be at least %dMiB, or 0 for the default", name,
                   LEAST_MIB);
}

static enum err_code check_together(struct settings *settings, struct err *err)
{
    enum err_code code = clean_sample_labels(settings, err);
    if (code)
        return code;
    code = check_minimum(settings->max_buffered_bytes, "max-buffered-bytes", err);
    if (code)
        return code;
    code = check_minimum(settings->block_cache_bytes, "block-cache-bytes", err);
    if (code)
        return code;
    if (!*settings->data_dir)
        return err_set(err, ERR_INVALID, "--data-dir is empty");
    if (!*settings->tls_cert != !*settings->tls_key)
        return err_set(err, ERR_INVALID, "--tls-cert and --tls-key go together");
    if (*settings->public_url && strncmp(settings->public_url, "https://", 8) != 0 &&
        strncmp(settings->public_url, "http://", 7) != 0)
        return err_set(err, ERR_INVALID, "--public-url must start with https:// or http://");
    for (size_t size = strlen(settings->public_url);
         size > 0 && settings->public_url[size - 1] == '/'; size--)
        settings->public_url[size - 1] = '\0';
    return ERR_NONE;
}

enum err_code settings_load(struct settings *settings, int argument_count, char *const *arguments,
                            bool *ret_wants_help, struct err *err)
{
    *ret_wants_help = false;
    for (int i = 0; i < argument_count; i++) {
        if (strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0) {
            *ret_wants_help = true;
            return ERR_NONE;
        }
    }
    /* Flags are read twice: the first time finds the config file and checks the flags. */
    enum err_code code = load_environment(settings, err);
    if (code)
        return code;
    code = load_flags(settings, argument_count, arguments, err);
    if (code)
        return code;
    if (!*settings->config_file)
        return check_together(settings, err);
    code = load_file(settings, err);
    if (code)
        return code;
    code = load_environment(settings, err);
    if (code)
        return code;
    code = load_flags(settings, argument_count, arguments, err);
    if (code)
        return code;
    return check_together(settings, err);
}

void settings_print_help(FILE *file)
{
    for (size_t i = 0; i < settings_table_count; i++) {
        char name[80];
        settings_table_variable(settings_table[i].name, name, sizeof(name));
        fprintf(file, "  --%s %s\n      %s.\n", settings_table[i].name,
                settings_value_hint(settings_table[i].kind), settings_table[i].help);
        fprintf(file, "      %s%s%s%s\n", name, *settings_table[i].initial ? "; default " : "",
                settings_table[i].initial, "");
    }
}

char **settings_to_environment(const struct settings *settings)
{
    size_t kept = 0, count = 0;
    while (environ[kept])
        kept++;
    char **result = mem_new(char *, kept + settings_table_count + 1);
    for (size_t i = 0; i < kept; i++)
        if (strncmp(environ[i], "PERFOLIO_", 9) != 0)
            result[count++] = mem_strdup(environ[i]);
    for (size_t i = 0; i < settings_table_count; i++) {
        if (strcmp(settings_table[i].name, "config") == 0)
            continue; /* the child need not read it, and may not be able to */
        char name[80];
        buf_auto text;
        buf_init(&text, 64 * 1024);
        settings_table_variable(settings_table[i].name, name, sizeof(name));
        buf_printf(&text, "%s=", name);
        settings_value_format(settings, &settings_table[i], &text);
        buf_append_byte(&text, 0);
        result[count++] = mem_strdup((const char *)text.data);
    }
    return result;
}

void settings_free_environment(char **environment)
{
    for (char **at = environment; at && *at; at++)
        mem_free(*at);
    mem_free(environment);
}

uint64_t settings_anonymous_daily_bytes(const struct settings *settings, uint64_t left_bytes)
{
    enum { PARTS = 20 };
    const uint64_t part = left_bytes / PARTS, most = settings->anonymous_max_daily_bytes;
    return most && most < part ? most : part;
}

bool settings_uses_debuginfod(const struct settings *settings)
{
    return strcmp(settings->debuginfod_urls, "off") != 0 && settings->debuginfod_urls[0];
}

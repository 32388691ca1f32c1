#include "agent/settings.h"

#include "agent/agent.h"
#include "agent/ops/http_monitor.h"
#include "agent/upload/spool.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"
#include "lib/base/version.h"
#include "lib/input/config.h"
#include "lib/input/options.h"
#include "lib/input/suggest.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DEFAULT_HZ = 19, /* a prime, so not in step with periodic tasks */
    DEFAULT_INTERVAL_S = 10,
    DEFAULT_SPOOL_MB = 256,
    DEFAULT_SYMBOLS_MB = 1024,
    SYMBOLS_MIN_MB = 64,
    MEMORY_LIMIT_MIN_MB = 8,
    MEMORY_MAX_MB = 1 << 20,
    HZ_MAX = 10000,
    MIN_OFF_CPU_MAX_US = 1000000000,
    INTERVAL_MAX_S = 3600,
    SPOOL_MAX_MB = 1 << 20,
};

enum { MIB = 1 << 20, NS_PER_US = 1000 };

/* The values of the options. */
struct reader {
    struct settings settings;
    struct arena *arena;
    const char *spool_dir;   /* NULL: not set */
    const char *offline_dir; /* NULL: not set */
    bool has_hidden_label;   /* a label for rules only, "__name" */
};

/* ---- single values ---- */

static enum err_code take_off_cpu(void *values, const struct option_row *row, const char *text,
                                  struct err *err)
{
    struct reader *reader = values;
    char *end;
    const double fraction = strtod(text, &end);
    if (end == text || *end || !(fraction >= 0 && fraction <= 1) ||
        (fraction > 0 && fraction < AGENT_OFF_CPU_FRACTION_MIN))
        return options_refuse(row, text, err);
    reader->settings.off_cpu_fraction = fraction;
    return ERR_NONE;
}

static enum err_code read_label(struct reader *reader, struct span text, struct err *err)
{
    struct settings *settings = &reader->settings;
    struct span name, value;
    if (!span_split(text, '=', &name, &value) || name.size == 0 || !span_is_utf8(text))
        return err_set(err, ERR_INVALID, "label must have the form NAME=VALUE, not %.*s",
                       SPAN_PRINT(text));
    if (settings->label_count == SETTINGS_LABELS_MAX)
        return err_set(err, ERR_INVALID, "more than %d labels", SETTINGS_LABELS_MAX);
    reader->has_hidden_label |= span_starts_with(span_trim(name), "__");
    settings->labels[settings->label_count++] =
        (struct batch_text_label){.name = span_trim(name), .value = span_trim(value)};
    return ERR_NONE;
}

static enum err_code take_label(void *values, const struct option_row *row, const char *text,
                                struct err *err)
{
    (void)row;
    return read_label(values, span_text(text), err);
}

static enum err_code take_environment(void *values, const struct option_row *row, const char *text,
                                      struct err *err)
{
    struct settings *settings = &((struct reader *)values)->settings;
    settings->environment_count = 0;
    struct span rest = span_text(text), one;
    while (rest.size) {
        span_split(rest, ',', &one, &rest);
        one = span_trim(one);
        if (!batch_labels_is_name(one))
            return options_refuse(row, text, err);
        if (settings->environment_count == SETTINGS_VARIABLES_MAX)
            return err_set(err, ERR_INVALID, "more than %d environment variables",
                           SETTINGS_VARIABLES_MAX);
        settings->environment[settings->environment_count++] = one;
    }
    return ERR_NONE;
}

static enum err_code take_version(void *values, const struct option_row *row, const char *text,
                                  struct err *err)
{
    (void)values;
    (void)row;
    (void)text;
    (void)err;
    puts("perfolio-agent " PERFOLIO_VERSION);
    exit(fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* ---- the table ---- */

static const char *const policies[] = {[SYMBOL_POLICY_OFF] = "off",
                                       [SYMBOL_POLICY_MISSING] = "missing",
                                       [SYMBOL_POLICY_ALL] = "all",
                                       NULL};
static const char *const aggregates[] = {"user", "kernel", NULL};

/* Kinds and places of values in struct reader. */
#define TEXT(member) OPTION_TEXT(struct reader, settings.member)
#define FLAG(member) OPTION_FLAG(struct reader, settings.member)
#define NUMBER(member, min, max, factor)                                                           \
    OPTION_NUMBER(struct reader, settings.member, min, max, factor)

/* Groups: where to send, what to sample, where to keep it, everything else. */
static const struct option_row rows[] = {
    {"server", 0, "URL", "Send to this server, https://HOST:PORT", TEXT(access.server)},
    {"token-file", 0, "FILE", "The token, of scope ingest, is the first line of FILE",
     TEXT(access.token_file)},
    {"ca-file", 0, "FILE", "Trust the certificates in FILE (PEM)", TEXT(access.ca_file)},
    {"proxy", 0, "URL", "Send through this proxy instead of that of the environment",
     TEXT(access.proxy)},
    {"frequency", 'F', "HZ", "Samples per second of each busy CPU (19)",
     NUMBER(frequency_hz, 1, HZ_MAX, 1), .group = 1},
    {"interval", 0, "SECONDS", "Send a batch every SECONDS (10)",
     NUMBER(interval_s, 1, INTERVAL_MAX_S, 1), .group = 1},
    {"off-cpu", 0, "FRACTION",
     "Also profile where threads wait: this fraction of their off-CPU intervals, 0.0001 to 1; 0 "
     "for none (0)",
     .take = take_off_cpu, .error = "{name} must be 0 or a fraction from 0.0001 to 1, not {value}",
     .group = 1},
    {"min-off-cpu", 0, "MICROSECONDS", "Leave shorter off-CPU intervals out (0)",
     NUMBER(min_off_cpu_ns, 0, MIN_OFF_CPU_MAX_US, NS_PER_US), .group = 1},
    {"min-wait", 0, "MICROSECONDS", "Former name of --min-off-cpu",
     NUMBER(min_off_cpu_ns, 0, MIN_OFF_CPU_MAX_US, NS_PER_US), .group = 1, .is_hidden = true,
     .error = "min-off-cpu must be a number from {min} to {max}, not {value}"},
    {"frame-pointers", 0, NULL, "Unwind stacks by frame pointers only, without unwind tables",
     FLAG(has_no_tables), .group = 1},
    {"bounded-loops", 0, NULL, "Use the kernel program for Linux before 5.17, also on later ones",
     FLAG(has_bounded_loops), .group = 1},
    {"aggregate", 0, "WHERE",
     "Where equal samples are counted: user, in the agent, or kernel (user)",
     OPTION_CHOICE(struct reader, settings.has_tallies, aggregates), .group = 1},
    {"label", 0, "NAME=VALUE", "Label of all profiles; may be repeated", .take = take_label,
     .group = 1},
    {"environment", 0, "NAME,...", "Environment variables of processes that become labels (none)",
     .take = take_environment, .error = "{name} must have the form NAME,NAME, not {value}",
     .group = 1},
    {"relabel-file", 0, "FILE",
     "Rules that change labels or leave processes out, in the form of relabel_configs of "
     "Prometheus and Parca",
     TEXT(relabel_file), .group = 1},
    {"pods", 0, "URL",
     "Read this node's Kubernetes pods from there: the kubelet's /pods, or the API server's",
     TEXT(pods.server), .group = 1},
    {"pods-ca-file", 0, "FILE",
     "Certificates to trust for --pods (by default the service account's)", TEXT(pods.ca_file),
     .group = 1},
    {"pods-token-file", 0, "FILE", "Token for --pods (by default the service account's)",
     TEXT(pods.token_file), .group = 1},
    {"host-root", 0, "FOLDER",
     "Root folder of the host, to read the state of containers (process 1's root)", TEXT(host_root),
     .group = 1},
    {"spool-dir", 0, "FOLDER",
     "Folder of batches to be sent (/var/lib/perfolio-agent, or systemd's state folder)",
     OPTION_TEXT(struct reader, spool_dir), .group = 2},
    {"spool-max", 0, "MB",
     "Size limit of the folder; the oldest batch is deleted first (256; no limit with "
     "--offline-dir)",
     NUMBER(spool_max_bytes, 1, SPOOL_MAX_MB, MIB), .group = 2},
    {"offline-dir", 0, "FOLDER",
     "Keep all batches there and send nothing; perfolio push --format otlp sends them",
     OPTION_TEXT(struct reader, offline_dir), .group = 2},
    {"symbols", 0, "WHICH",
     "Send symbol tables of sampled binaries: off, missing (those that the server has no names of) "
     "or all (missing)",
     OPTION_CHOICE(struct reader, settings.symbols, policies), .group = 3},
    {"symbols-files", 0, "YES|NO",
     "Send the debug file itself if its table exceeds the limits (no)",
     OPTION_SWITCH(struct reader, settings.may_send_debug_files), .group = 3},
    {"symbols-memory", 0, "MB", "Memory limit for building a table (1024)",
     NUMBER(symbols_memory_bytes, SYMBOLS_MIN_MB, MEMORY_MAX_MB, MIB), .group = 3},
    {"memory-limit", 0, "MB",
     "Memory limit of the agent, at least 8; above it, it samples with less detail (none)",
     NUMBER(memory_limit_bytes, MEMORY_LIMIT_MIN_MB, MEMORY_MAX_MB, MIB), .group = 3},
    {"metrics", 0, "ADDRESS",
     "Serve /metrics and /healthz at 127.0.0.1:PORT, [::1]:PORT or unix:/PATH", TEXT(metrics),
     .group = 3},
    {"config", 0, "FILE", "Settings file (" SETTINGS_FILE ")", TEXT(config_file), .group = 3,
     .is_not_in_file = true},
    {"json", 0, NULL, "show-unwind prints JSON", FLAG(is_json), .group = 3},
    {"force", 0, NULL, "Also on kernels that are known to hang (5.19 to 6.0)", FLAG(is_forced),
     .group = 3},
    {"version", 'V', NULL, "Print the version and end", .take = take_version, .group = -1,
     .is_not_in_file = true},
    {0},
};

static enum err_code take_word(void *values, const char *word, struct err *err)
{
    static const struct {
        const char *name;
        enum settings_action action;
    } commands[] = {{"doctor", SETTINGS_DOCTOR},
                    {"show-unwind", SETTINGS_SHOW_UNWIND},
                    {"completion", SETTINGS_COMPLETION}};
    struct settings *settings = &((struct reader *)values)->settings;
    const bool takes_argument =
        settings->action == SETTINGS_SHOW_UNWIND || settings->action == SETTINGS_COMPLETION;
    if (takes_argument && !settings->argument) {
        settings->argument = word;
        return ERR_NONE;
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
        if (settings->action == SETTINGS_RUN && strcmp(word, commands[i].name) == 0) {
            settings->action = commands[i].action;
            return ERR_NONE;
        }
    }
    return err_set(err, ERR_INVALID,
                   "there is no command \"%.60s\": use doctor or show-unwind FILE", word);
}

static enum err_code check_command(void *values, struct err *err)
{
    const struct settings *settings = &((struct reader *)values)->settings;
    if (settings->argument)
        return ERR_NONE;
    if (settings->action == SETTINGS_SHOW_UNWIND)
        return err_set(err, ERR_INVALID,
                       "show-unwind needs a file: perfolio-agent show-unwind FILE");
    if (settings->action == SETTINGS_COMPLETION)
        return err_set(err, ERR_INVALID, "give a shell: bash, zsh or fish");
    return ERR_NONE;
}

const struct option_table settings_options = {
    .rows = rows,
    .arguments = "[doctor | show-unwind FILE]",
    .text =
        "Sample every process of this host all the time, and send profiles to Perfolio.\v"
        "Runs as root, or with CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH and "
        "CAP_SYSLOG. perfolio-agent doctor lists what is missing, and what this kernel supports. "
        "perfolio-agent(8) is the manual.",
    .take_argument = take_word,
    .check = check_command,
    .error_prefix = "--",
};

/* ---- the file ---- */

/* The file has all labels in one value, separated by commas. */
static enum err_code read_labels(struct reader *reader, const char *text, struct err *err)
{
    struct span rest = span_text(arena_strdup(reader->arena, text)), one;
    enum err_code code = ERR_NONE;
    while (!code && rest.size) {
        span_split(rest, ',', &one, &rest);
        code = read_label(reader, span_trim(one), err);
    }
    return code;
}

static enum err_code read_entry(struct reader *reader, const char *section, const char *key,
                                const char *value, struct err *err)
{
    if (strcmp(section, "agent") != 0)
        return err_set(err, ERR_INVALID, "%s is in the section [%s]: settings belong to [agent]",
                       key, section);
    const struct option_row *row = options_find(&settings_options, key);
    if (!row || row->is_not_in_file)
        return err_set(err, ERR_INVALID, "there is no setting \"%s\"", key);
    return row->take == take_label
               ? read_labels(reader, value, err)
               : options_set(row, reader, arena_strdup(reader->arena, value), err);
}

static enum err_code read_file(struct reader *reader, struct err *err)
{
    config_auto config = NULL;
    enum err_code code = config_load(reader->settings.config_file, &config, err);
    const char *key, *section;
    for (size_t i = 0; !code && (key = config_key(config, i, &section)); i++)
        code = read_entry(reader, section, key, config_get(config, section, key), err);
    return code ? err_add(err, "%s", reader->settings.config_file) : ERR_NONE;
}

/* ---- the command line ---- */

/* In a pod, Kubernetes provides the token and the certificate of the API server. */
static void set_pods_defaults(struct server_config *pods)
{
    static const char token[] = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    static const char ca[] = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
    if (!pods->token_file && access(token, R_OK) == 0)
        pods->token_file = token;
    if (!pods->ca_file && access(ca, R_OK) == 0)
        pods->ca_file = ca;
    pods->proxy = ""; /* no proxy: the server is on this node or in its cluster */
}

static void set_defaults(struct settings *settings)
{
    *settings = (struct settings){
        .config_file = SETTINGS_FILE,
        .symbols = SYMBOL_POLICY_MISSING,
        .symbols_memory_bytes = (uint64_t)DEFAULT_SYMBOLS_MB << 20,
        .frequency_hz = DEFAULT_HZ,
        .interval_s = DEFAULT_INTERVAL_S,
    };
}

/* Chooses the folder of batches and its size limit. */
static enum err_code set_spool(struct reader *reader, struct err *err)
{
    struct settings *settings = &reader->settings;
    const char *state = getenv("STATE_DIRECTORY");
    if (reader->spool_dir && reader->offline_dir)
        return err_set(err, ERR_INVALID,
                       "spool-dir keeps batches until they are sent, offline-dir keeps all of "
                       "them: give one of "
                       "them");
    settings->is_offline = reader->offline_dir != NULL;
    settings->spool_dir = reader->offline_dir        ? reader->offline_dir
                          : reader->spool_dir        ? reader->spool_dir
                          : state && state[0] == '/' ? state
                                                     : "/var/lib/perfolio-agent";
    if (!settings->spool_max_bytes)
        settings->spool_max_bytes =
            settings->is_offline ? SPOOL_NO_LIMIT : (uint64_t)DEFAULT_SPOOL_MB << 20;
    return ERR_NONE;
}

static enum err_code check_folder(const char *name, const char *folder, struct err *err)
{
    struct stat status;
    if (stat(folder, &status))
        return err_set_errno(err, ERR_INVALID, "%s %s", name, folder);
    return S_ISDIR(status.st_mode)
               ? ERR_NONE
               : err_set(err, ERR_INVALID, "%s %s is not a folder", name, folder);
}

/* Rejects combinations that would have no effect or an unexpected one. */
static enum err_code check_together(const struct reader *reader, struct err *err)
{
    const struct settings *settings = &reader->settings;
    if (!settings->access.server && !settings->is_offline)
        return err_set(err, ERR_INVALID,
                       "give a server to send to, --server=https://HOST:PORT, or a folder to keep "
                       "batches in, --offline-dir");
    const struct server_config *access = &settings->access;
    if (settings->is_offline &&
        (access->server || access->token_file || access->ca_file || access->proxy))
        return err_set(
            err, ERR_INVALID,
            "server, token-file, ca-file and proxy have no effect with offline-dir, because "
            "nothing is sent: leave out one or the other");
    if (settings->min_off_cpu_ns && settings->off_cpu_fraction == 0)
        return err_set(err, ERR_INVALID,
                       "min-off-cpu has no effect without off-CPU profiling: add off-cpu");
    if (reader->has_hidden_label && !settings->relabel_file)
        return err_set(
            err, ERR_INVALID,
            "labels whose names begin with __ are only for the rules of relabel-file: set "
            "relabel-file, or rename the labels");
    return ERR_NONE;
}

static enum err_code check_addresses(const struct settings *settings, struct err *err)
{
    if (settings->access.server && server_config_check(settings->access.server, err))
        return err->code;
    if (settings->pods.server && server_config_check_url(settings->pods.server, err))
        return err_add(err, "pods");
    return settings->metrics ? http_monitor_check(settings->metrics, err) : ERR_NONE;
}

static enum err_code check_settings(const struct reader *reader, struct err *err)
{
    const struct settings *settings = &reader->settings;
    if (check_together(reader, err) || check_addresses(settings, err))
        return err->code;
    return settings->host_root ? check_folder("host-root", settings->host_root, err) : ERR_NONE;
}

/* options_parse reports an unknown option without a suggestion. */
static void refuse_option(int argc, char **argv)
{
    const char *typed;
    const char *known = suggest_option(&settings_options, argc, argv, &typed);
    if (!known)
        return;
    fprintf(stderr, "perfolio-agent: unrecognized option '%.*s'; did you mean --%s?\n",
            (int)strcspn(typed, "="), typed, known);
    exit(OPTIONS_EXIT_USAGE);
}

/* Overrides the values of the file. With --offline-dir on the command line, the server and the
 * spool of the file are ignored, because nothing is sent. */
static void read_command_line(struct reader *reader, int argc, char **argv)
{
    struct server_config *access = &reader->settings.access;
    const struct server_config of_file = *access;
    const char *spool_of_file = reader->spool_dir, *offline_of_file = reader->offline_dir;
    *access = (struct server_config){0};
    reader->spool_dir = reader->offline_dir = NULL;
    refuse_option(argc, argv);
    options_parse(&settings_options, argc, argv, reader);
    if (reader->offline_dir)
        return;
    reader->offline_dir = offline_of_file;
    reader->spool_dir = reader->spool_dir ? reader->spool_dir : spool_of_file;
    access->server = access->server ? access->server : of_file.server;
    access->token_file = access->token_file ? access->token_file : of_file.token_file;
    access->ca_file = access->ca_file ? access->ca_file : of_file.ca_file;
    access->proxy = access->proxy ? access->proxy : of_file.proxy;
}

enum err_code settings_read(int argc, char **argv, struct arena *arena,
                            struct settings *ret_settings, struct err *err)
{
    struct reader reader = {.arena = arena};
    set_defaults(&reader.settings);
    /* The file is read first, because the command line overrides it. */
    const char *named = options_last_value(&settings_options, argc, argv, "config");
    const char *file = named ? named : SETTINGS_FILE;
    reader.settings.config_file = file;
    /* The default file may be missing, a named one may not. */
    if (strcmp(file, SETTINGS_FILE) != 0 && access(file, R_OK))
        return err_set_errno(err, ERR_IO, "%s", file);
    enum err_code code = read_file(&reader, err);
    if (code)
        return code;
    read_command_line(&reader, argc, argv);
    set_pods_defaults(&reader.settings.pods);
    code = set_spool(&reader, err);
    if (!code && reader.settings.action == SETTINGS_RUN)
        code = check_settings(&reader, err);
    if (!code)
        *ret_settings = reader.settings;
    return code;
}

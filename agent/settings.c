#include "agent/settings.h"

#include "agent/agent.h"
#include "agent/ops/http_monitor.h"
#include "agent/upload/spool.h"
#include "lib/base/arena.h"
#include "lib/base/config.h"
#include "lib/base/err.h"
#include "lib/base/suggest.h"
#include "lib/base/version.h"

#include <argp.h>
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
    USAGE_STATUS = 2,
};

enum {
    OPTION_SERVER = 0x100,
    OPTION_TOKEN_FILE,
    OPTION_CA_FILE,
    OPTION_PROXY,
    OPTION_SPOOL_DIR,
    OPTION_SPOOL_MAX,
    OPTION_OFFLINE_DIR,
    OPTION_INTERVAL,
    OPTION_LABEL,
    OPTION_CONFIG,
    OPTION_FORCE,
    OPTION_FRAME_POINTERS,
    OPTION_BOUNDED_LOOPS,
    OPTION_AGGREGATE,
    OPTION_JSON,
    OPTION_METRICS,
    OPTION_SYMBOLS,
    OPTION_SYMBOLS_FILES,
    OPTION_SYMBOLS_MEMORY,
    OPTION_MEMORY_LIMIT,
    OPTION_ENVIRONMENT,
    OPTION_RELABEL_FILE,
    OPTION_PODS,
    OPTION_PODS_CA_FILE,
    OPTION_PODS_TOKEN_FILE,
    OPTION_HOST_ROOT,
    OPTION_OFF_CPU,
    OPTION_MIN_OFF_CPU,
};

static const struct argp_option options[] = {
    {"server", OPTION_SERVER, "URL", 0, "Send to this server, https://HOST:PORT", 0},
    {"token-file", OPTION_TOKEN_FILE, "FILE", 0,
     "The token, of scope ingest, is the first line of FILE", 0},
    {"ca-file", OPTION_CA_FILE, "FILE", 0, "Trust the certificates in FILE (PEM)", 0},
    {"proxy", OPTION_PROXY, "URL", 0, "Send through this proxy instead of that of the environment",
     0},
    {"frequency", 'F', "HZ", 0, "Samples per second of each busy CPU (19)", 1},
    {"interval", OPTION_INTERVAL, "SECONDS", 0, "Send a batch every SECONDS (10)", 1},
    {"off-cpu", OPTION_OFF_CPU, "FRACTION", 0,
     "Also profile where threads wait: this fraction of their off-CPU intervals, 0.0001 to 1; 0 "
     "for none (0)",
     1},
    {"min-off-cpu", OPTION_MIN_OFF_CPU, "MICROSECONDS", 0,
     "Leave shorter off-CPU intervals out (0)", 1},
    {"min-wait", OPTION_MIN_OFF_CPU, "MICROSECONDS", OPTION_HIDDEN, "Former name of --min-off-cpu",
     1},
    {"frame-pointers", OPTION_FRAME_POINTERS, NULL, 0,
     "Unwind stacks by frame pointers only, without unwind tables", 1},
    {"bounded-loops", OPTION_BOUNDED_LOOPS, NULL, 0,
     "Use the kernel program for Linux before 5.17, also on later ones", 1},
    {"aggregate", OPTION_AGGREGATE, "WHERE", 0,
     "Where equal samples are counted: user, in the agent, or kernel (user)", 1},
    {"label", OPTION_LABEL, "NAME=VALUE", 0, "Label of all profiles; may be repeated", 1},
    {"environment", OPTION_ENVIRONMENT, "NAME,...", 0,
     "Environment variables of processes that become labels (none)", 1},
    {"relabel-file", OPTION_RELABEL_FILE, "FILE", 0,
     "Rules that change labels or leave processes out, in the form of relabel_configs of "
     "Prometheus and Parca",
     1},
    {"pods", OPTION_PODS, "URL", 0,
     "Read this node's Kubernetes pods from there: the kubelet's /pods, or the API server's", 1},
    {"pods-ca-file", OPTION_PODS_CA_FILE, "FILE", 0,
     "Certificates to trust for --pods (by default the service account's)", 1},
    {"pods-token-file", OPTION_PODS_TOKEN_FILE, "FILE", 0,
     "Token for --pods (by default the service account's)", 1},
    {"host-root", OPTION_HOST_ROOT, "FOLDER", 0,
     "Root folder of the host, to read the state of containers (process 1's root)", 1},
    {"spool-dir", OPTION_SPOOL_DIR, "FOLDER", 0,
     "Folder of batches to be sent (/var/lib/perfolio-agent, or systemd's state folder)", 2},
    {"spool-max", OPTION_SPOOL_MAX, "MB", 0,
     "Size limit of the folder; the oldest batch is deleted first (256; no limit with "
     "--offline-dir)",
     2},
    {"offline-dir", OPTION_OFFLINE_DIR, "FOLDER", 0,
     "Keep all batches there and send nothing; perfolio push --format otlp sends them", 2},
    {"symbols", OPTION_SYMBOLS, "WHICH", 0,
     "Send symbol tables of sampled binaries: off, missing (those that the server has no names of) "
     "or all (missing)",
     3},
    {"symbols-files", OPTION_SYMBOLS_FILES, "YES|NO", 0,
     "Send the debug file itself if its table exceeds the limits (no)", 3},
    {"symbols-memory", OPTION_SYMBOLS_MEMORY, "MB", 0, "Memory limit for building a table (1024)",
     3},
    {"memory-limit", OPTION_MEMORY_LIMIT, "MB", 0,
     "Memory limit of the agent, at least 8; above it, it samples with less detail (none)", 3},
    {"metrics", OPTION_METRICS, "ADDRESS", 0,
     "Serve /metrics and /healthz at 127.0.0.1:PORT, [::1]:PORT or unix:/PATH", 3},
    {"config", OPTION_CONFIG, "FILE", 0, "Settings file (" SETTINGS_FILE ")", 3},
    {"json", OPTION_JSON, NULL, 0, "show-unwind prints JSON", 3},
    {"force", OPTION_FORCE, NULL, 0, "Also on kernels that are known to hang (5.19 to 6.0)", 3},
    {"version", 'V', NULL, 0, "Print the version and end", -1},
    {0},
};

struct reader {
    struct settings *settings;
    struct arena *arena;
    const char *spool_dir;   /* NULL: not set */
    const char *offline_dir; /* NULL: not set */
    bool has_hidden_label;   /* a label for rules only, "__name" */
};

/* ---- single values ---- */

static enum err_code read_number(const char *name, const char *text, uint64_t min, uint64_t max,
                                 uint64_t *ret_number, struct err *err)
{
    if (!span_parse_u64(span_text(text), ret_number) || *ret_number < min || *ret_number > max)
        return err_set(err, ERR_INVALID, "%s must be a number from %lu to %lu, not %s", name,
                       (unsigned long)min, (unsigned long)max, text);
    return ERR_NONE;
}

static enum err_code read_share(const char *text, double *ret_share, struct err *err)
{
    char *end;
    *ret_share = strtod(text, &end);
    if (end == text || *end || !(*ret_share >= 0 && *ret_share <= 1) ||
        (*ret_share > 0 && *ret_share < AGENT_OFF_CPU_FRACTION_MIN))
        return err_set(err, ERR_INVALID, "off-cpu must be 0 or a fraction from 0.0001 to 1, not %s",
                       text);
    return ERR_NONE;
}

static enum err_code read_label(struct reader *reader, struct span text, struct err *err)
{
    struct settings *settings = reader->settings;
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

static enum err_code read_variables(struct settings *settings, const char *text, struct err *err)
{
    struct span rest = span_text(text), one;
    while (rest.size) {
        span_split(rest, ',', &one, &rest);
        one = span_trim(one);
        if (!batch_labels_is_name(one))
            return err_set(err, ERR_INVALID, "environment must have the form NAME,NAME, not %s",
                           text);
        if (settings->environment_count == SETTINGS_VARIABLES_MAX)
            return err_set(err, ERR_INVALID, "more than %d environment variables",
                           SETTINGS_VARIABLES_MAX);
        settings->environment[settings->environment_count++] = one;
    }
    return ERR_NONE;
}

static enum err_code read_policy(const char *text, enum symbol_policy *ret_policy, struct err *err)
{
    static const char *const words[] = {[SYMBOL_POLICY_OFF] = "off",
                                        [SYMBOL_POLICY_MISSING] = "missing",
                                        [SYMBOL_POLICY_ALL] = "all"};
    for (uint32_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        if (strcmp(text, words[i]) == 0) {
            *ret_policy = (enum symbol_policy)i;
            return ERR_NONE;
        }
    }
    return err_set(err, ERR_INVALID, "symbols must be off, missing or all, not %s", text);
}

static enum err_code read_bool(const char *name, const char *text, bool *ret_value, struct err *err)
{
    *ret_value = strcmp(text, "yes") == 0;
    return *ret_value || strcmp(text, "no") == 0
               ? ERR_NONE
               : err_set(err, ERR_INVALID, "%s must be yes or no, not %s", name, text);
}

/* ---- options ---- */

enum value_kind { VALUE_TEXT, VALUE_FLAG, VALUE_U32, VALUE_U64, VALUE_I64 };

/* An option whose value goes to one member of struct settings without further checks. */
struct simple_option {
    int key;
    enum value_kind kind;
    size_t offset; /* offset of the member */
    /* For numbers: the name for messages, the range, and the factor by which the value is stored.
     */
    const char *name;
    uint64_t min;
    uint64_t max;
    uint32_t factor;
};

#define MEMBER(member) .offset = offsetof(struct settings, member)
#define TEXT(option, member)                                                                       \
    {                                                                                              \
        .key = option, .kind = VALUE_TEXT, MEMBER(member)                                          \
    }
#define FLAG(option, member)                                                                       \
    {                                                                                              \
        .key = option, .kind = VALUE_FLAG, MEMBER(member)                                          \
    }
enum { MIB = 1 << 20, NS_PER_US = 1000 };

static const struct simple_option simple_options[] = {
    TEXT(OPTION_SERVER, access.server),
    TEXT(OPTION_TOKEN_FILE, access.token_file),
    TEXT(OPTION_CA_FILE, access.ca_file),
    TEXT(OPTION_PROXY, access.proxy),
    TEXT(OPTION_METRICS, metrics),
    TEXT(OPTION_RELABEL_FILE, relabel_file),
    TEXT(OPTION_PODS, pods.server),
    TEXT(OPTION_PODS_CA_FILE, pods.ca_file),
    TEXT(OPTION_PODS_TOKEN_FILE, pods.token_file),
    TEXT(OPTION_HOST_ROOT, host_root),
    FLAG(OPTION_FORCE, is_forced),
    FLAG(OPTION_FRAME_POINTERS, has_no_tables),
    FLAG(OPTION_BOUNDED_LOOPS, has_bounded_loops),
    FLAG(OPTION_JSON, is_json),
    {'F', VALUE_U32, offsetof(struct settings, frequency_hz), "frequency", 1, HZ_MAX, 1},
    {OPTION_INTERVAL, VALUE_U32, offsetof(struct settings, interval_s), "interval", 1,
     INTERVAL_MAX_S, 1},
    {OPTION_MIN_OFF_CPU, VALUE_I64, offsetof(struct settings, min_off_cpu_ns), "min-off-cpu", 0,
     MIN_OFF_CPU_MAX_US, NS_PER_US},
    {OPTION_SPOOL_MAX, VALUE_U64, offsetof(struct settings, spool_max_bytes), "spool-max", 1,
     SPOOL_MAX_MB, MIB},
    {OPTION_SYMBOLS_MEMORY, VALUE_U64, offsetof(struct settings, symbols_memory_bytes),
     "symbols-memory", SYMBOLS_MIN_MB, MEMORY_MAX_MB, MIB},
    {OPTION_MEMORY_LIMIT, VALUE_U64, offsetof(struct settings, memory_limit_bytes), "memory-limit",
     MEMORY_LIMIT_MIN_MB, MEMORY_MAX_MB, MIB},
};

/* memcpy, because the member is known by its offset only. */
static enum err_code store_number(const struct simple_option *option, const char *text,
                                  uint8_t *member, struct err *err)
{
    uint64_t number;
    enum err_code code = read_number(option->name, text, option->min, option->max, &number, err);
    if (code)
        return code;
    number *= option->factor;
    const uint32_t small = (uint32_t)number;
    if (option->kind == VALUE_U32)
        memcpy(member, &small, sizeof(small));
    else
        memcpy(member, &number, sizeof(number));
    return ERR_NONE;
}

static enum err_code store_simple(struct settings *settings, const struct simple_option *option,
                                  const char *text, struct err *err)
{
    uint8_t *member = (uint8_t *)settings + option->offset;
    const bool yes = true;
    switch (option->kind) {
    case VALUE_TEXT:
        memcpy(member, &text, sizeof(text));
        return ERR_NONE;
    case VALUE_FLAG:
        memcpy(member, &yes, sizeof(yes));
        return ERR_NONE;
    case VALUE_U32:
    case VALUE_U64:
    case VALUE_I64:
        break;
    }
    return store_number(option, text, member, err);
}

static enum err_code read_aggregate(const char *text, bool *ret_has_tallies, struct err *err)
{
    *ret_has_tallies = strcmp(text, "kernel") == 0;
    return *ret_has_tallies || strcmp(text, "user") == 0
               ? ERR_NONE
               : err_set(err, ERR_INVALID, "aggregate must be user or kernel, not %.40s", text);
}

/* Options that need their own check, or whose value is not stored in one member of struct settings.
 * Errors: ERR_NOT_FOUND (there is no such option).
 */
static enum err_code apply_special(struct reader *reader, int key, const char *text,
                                   struct err *err)
{
    struct settings *settings = reader->settings;
    switch (key) {
    case OPTION_OFFLINE_DIR:
        reader->offline_dir = text;
        return ERR_NONE;
    case OPTION_SPOOL_DIR:
        reader->spool_dir = text;
        return ERR_NONE;
    case OPTION_OFF_CPU:
        return read_share(text, &settings->off_cpu_fraction, err);
    case OPTION_LABEL:
        return read_label(reader, span_text(text), err);
    case OPTION_AGGREGATE:
        return read_aggregate(text, &settings->has_tallies, err);
    case OPTION_ENVIRONMENT:
        settings->environment_count = 0;
        return read_variables(settings, text, err);
    case OPTION_SYMBOLS:
        return read_policy(text, &settings->symbols, err);
    case OPTION_SYMBOLS_FILES:
        return read_bool("symbols-files", text, &settings->may_send_debug_files, err);
    default:
        return ERR_NOT_FOUND;
    }
}

/* text: NULL for a flag. Errors: ERR_INVALID, ERR_NOT_FOUND (there is no such option). */
static enum err_code apply_option(struct reader *reader, int key, const char *text, struct err *err)
{
    for (size_t i = 0; i < sizeof(simple_options) / sizeof(*simple_options); i++) {
        if (simple_options[i].key == key)
            return store_simple(reader->settings, &simple_options[i], text, err);
    }
    return apply_special(reader, key, text, err);
}

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

/* An option without a value on the command line is yes or no in the file. */
static enum err_code read_flag(struct reader *reader, const struct argp_option *option,
                               const char *value, struct err *err)
{
    bool is_set;
    enum err_code code = read_bool(option->name, value, &is_set, err);
    return !code && is_set ? apply_option(reader, option->key, NULL, err) : code;
}

static enum err_code read_entry(struct reader *reader, const char *section, const char *key,
                                const char *value, struct err *err)
{
    if (strcmp(section, "agent") != 0)
        return err_set(err, ERR_INVALID, "%s is in the section [%s]: settings belong to [agent]",
                       key, section);
    const struct argp_option *option = options;
    while (option->name && strcmp(option->name, key) != 0)
        option++;
    if (!option->name || option->key == OPTION_CONFIG || option->key == 'V')
        return err_set(err, ERR_INVALID, "there is no setting \"%s\"", key);
    if (!option->arg)
        return read_flag(reader, option, value, err);
    return option->key == OPTION_LABEL
               ? read_labels(reader, value, err)
               : apply_option(reader, option->key, arena_strdup(reader->arena, value), err);
}

static enum err_code read_file(struct reader *reader, struct err *err)
{
    config_auto config = NULL;
    enum err_code code = config_load(reader->settings->config_file, &config, err);
    const char *key, *section;
    for (size_t i = 0; !code && (key = config_key(config, i, &section)); i++)
        code = read_entry(reader, section, key, config_get(config, section, key), err);
    return code ? err_add(err, "%s", reader->settings->config_file) : ERR_NONE;
}

/* ---- the command line ---- */

/* A first pass finds the name of the file, because the command line overrides the file. */
static error_t find_file(int key, char *text, struct argp_state *state)
{
    struct reader *reader = state->input;
    if (key == OPTION_CONFIG)
        reader->settings->config_file = text;
    return 0;
}

static void take_word(struct settings *settings, const char *word, struct argp_state *state)
{
    if (settings->action == SETTINGS_SHOW_UNWIND && !settings->file)
        settings->file = word;
    else if (settings->action == SETTINGS_RUN && strcmp(word, "doctor") == 0)
        settings->action = SETTINGS_DOCTOR;
    else if (settings->action == SETTINGS_RUN && strcmp(word, "show-unwind") == 0)
        settings->action = SETTINGS_SHOW_UNWIND;
    else
        argp_error(state, "there is no command \"%.60s\": use doctor or show-unwind FILE", word);
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct reader *reader = state->input;
    struct err err;
    if (key == OPTION_CONFIG)
        return 0;
    if (key == 'V') {
        puts("perfolio-agent " PERFOLIO_VERSION);
        exit(fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS);
    }
    if (key == ARGP_KEY_ARG) {
        take_word(reader->settings, text, state);
        return 0;
    }
    if (key == ARGP_KEY_END && reader->settings->action == SETTINGS_SHOW_UNWIND &&
        !reader->settings->file)
        argp_error(state, "show-unwind needs a file: perfolio-agent show-unwind FILE");
    const enum err_code code = apply_option(reader, key, text, &err);
    if (code && code != ERR_NOT_FOUND)
        argp_error(state, "--%s", err.message);
    return code ? ARGP_ERR_UNKNOWN : 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse_option,
    .args_doc = "[doctor | show-unwind FILE]",
    .doc =
        "Sample every process of this host all the time, and send profiles to Perfolio.\v"
        "Runs as root, or with CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH and "
        "CAP_SYSLOG. perfolio-agent doctor lists what is missing, and what this kernel supports. "
        "perfolio-agent(8) is the manual.",
};
static const struct argp file_argp = {
    .options = options, .parser = find_file, .args_doc = "[doctor | show-unwind FILE]"};

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
static enum err_code set_spool(const struct reader *reader, struct err *err)
{
    struct settings *settings = reader->settings;
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
    const struct settings *settings = reader->settings;
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
    enum err_code code = ERR_NONE;
    if (settings->access.server)
        code = server_config_check(settings->access.server, err);
    if (!code && settings->pods.server && server_config_check_url(settings->pods.server, err))
        code = err_add(err, "pods");
    if (!code && settings->metrics)
        code = http_monitor_check(settings->metrics, err);
    return code;
}

static enum err_code check_settings(const struct reader *reader, struct err *err)
{
    const struct settings *settings = reader->settings;
    enum err_code code = check_together(reader, err);
    if (!code)
        code = check_addresses(settings, err);
    if (!code && settings->host_root)
        code = check_folder("host-root", settings->host_root, err);
    return code;
}

/* argp reports an unknown option without a suggestion. */
static void refuse_option(int argc, char **argv)
{
    const char *typed;
    const char *known = suggest_option(&argp, argc, argv, false, &typed);
    if (!known)
        return;
    fprintf(stderr, "perfolio-agent: unrecognized option '%.*s'; did you mean --%s?\n",
            (int)strcspn(typed, "="), typed, known);
    exit(USAGE_STATUS);
}

/* Overrides the values of the file. With --offline-dir on the command line, the server and the
 * spool of the file are ignored, because nothing is sent. */
static void read_command_line(struct reader *reader, int argc, char **argv)
{
    struct server_config *access = &reader->settings->access;
    const struct server_config of_file = *access;
    const char *spool_of_file = reader->spool_dir, *offline_of_file = reader->offline_dir;
    *access = (struct server_config){0};
    reader->spool_dir = reader->offline_dir = NULL;
    refuse_option(argc, argv);
    argp_parse(&argp, argc, argv, 0, NULL, reader);
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
    struct reader reader = {.settings = ret_settings, .arena = arena};
    argp_err_exit_status = USAGE_STATUS;
    set_defaults(ret_settings);
    argp_parse(&file_argp, argc, argv, ARGP_SILENT, NULL, &reader);
    const char *file = ret_settings->config_file;
    /* The default file may be missing, a named one may not. */
    if (strcmp(file, SETTINGS_FILE) != 0 && access(file, R_OK))
        return err_set_errno(err, ERR_IO, "%s", file);
    enum err_code code = read_file(&reader, err);
    if (code)
        return code;
    read_command_line(&reader, argc, argv);
    set_pods_defaults(&ret_settings->pods);
    code = set_spool(&reader, err);
    return code || ret_settings->action != SETTINGS_RUN ? code : check_settings(&reader, err);
}

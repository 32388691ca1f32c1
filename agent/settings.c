#include "agent/settings.h"

#include "agent/agent.h"
#include "agent/ops/http_monitor.h"
#include "agent/upload/spool.h"
#include "lib/base/config.h"
#include "lib/base/mem.h"
#include "lib/base/suggest.h"
#include "lib/base/version.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DEFAULT_HZ = 19, /* a prime: in step with nothing */
    DEFAULT_INTERVAL_S = 10,
    DEFAULT_SPOOL_MB = 256,
    DEFAULT_SYMBOLS_MB = 1024,
    MEMORY_LIMIT_MIN_MB = 8,
    MEMORY_MAX_MB = 1 << 20,
    HZ_MAX = 10000,
    MIN_WAIT_MAX_US = 1000000000,
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
    OPTION_MIN_WAIT,
};

static const struct argp_option options[] = {
    {"server", OPTION_SERVER, "URL", 0, "Send to this server, https://HOST:PORT", 0},
    {"token-file", OPTION_TOKEN_FILE, "FILE", 0,
     "The token, of scope ingest, is the first line of FILE", 0},
    {"ca-file", OPTION_CA_FILE, "FILE", 0, "Trust the certificates in FILE (PEM)", 0},
    {"proxy", OPTION_PROXY, "URL", 0, "Send through this proxy, in place of the environment's", 0},
    {"frequency", 'F', "HZ", 0, "Samples a second of each busy processor (19)", 1},
    {"interval", OPTION_INTERVAL, "SECONDS", 0, "Send that often (10)", 1},
    {"off-cpu", OPTION_OFF_CPU, "SHARE", 0,
     "Where threads wait, too: of their waits this part, from 0.0001 to 1; 0 for none (0)", 1},
    {"min-wait", OPTION_MIN_WAIT, "MICROSECONDS", 0, "Leave shorter waits out (0)", 1},
    {"frame-pointers", OPTION_FRAME_POINTERS, NULL, 0,
     "Walk stacks by frame pointers alone, without unwind tables", 1},
    {"bounded-loops", OPTION_BOUNDED_LOOPS, NULL, 0,
     "Use the kernel program for Linux before 5.17, also on later ones", 1},
    {"aggregate", OPTION_AGGREGATE, "WHERE", 0,
     "Where equal samples are added up: user, in the agent, or kernel (user)", 1},
    {"label", OPTION_LABEL, "NAME=VALUE", 0, "Label of all that is sent; may be repeated", 1},
    {"environment", OPTION_ENVIRONMENT, "NAME,...", 0,
     "Environment variables of processes that become labels (none)", 1},
    {"relabel-file", OPTION_RELABEL_FILE, "FILE", 0,
     "Rules that change labels, or leave processes out: relabel_configs, as Prometheus' and "
     "Parca's",
     1},
    {"pods", OPTION_PODS, "URL", 0,
     "Ask there for this node's Kubernetes pods: the kubelet's /pods, or the API server's", 1},
    {"pods-ca-file", OPTION_PODS_CA_FILE, "FILE", 0,
     "For it, trust the certificates in FILE (the service account's, where there is one)", 1},
    {"pods-token-file", OPTION_PODS_TOKEN_FILE, "FILE", 0,
     "For it, the token (the service account's, where there is one)", 1},
    {"host-root", OPTION_HOST_ROOT, "FOLDER", 0,
     "Where the host's files are, for the state of containers (process 1's root)", 1},
    {"spool-dir", OPTION_SPOOL_DIR, "FOLDER", 0,
     "Where batches wait (/var/lib/perfolio-agent, or systemd's state folder)", 2},
    {"spool-max", OPTION_SPOOL_MAX, "MB", 0,
     "At most so much waits; then the oldest goes (256; with --offline-dir no bound)", 2},
    {"offline-dir", OPTION_OFFLINE_DIR, "FOLDER", 0,
     "Keep all batches there and send nothing; perfolio push --format otlp sends them", 2},
    {"symbols", OPTION_SYMBOLS, "WHICH", 0,
     "Send symbol tables of sampled binaries: off, missing (those that the server has no names of) "
     "or all (missing)",
     3},
    {"symbols-files", OPTION_SYMBOLS_FILES, "YES|NO", 0,
     "Send the debug file itself where its table is beyond the bounds (no)", 3},
    {"symbols-memory", OPTION_SYMBOLS_MEMORY, "MB", 0,
     "Building a table takes at most so much (1024)", 3},
    {"memory-limit", OPTION_MEMORY_LIMIT, "MB", 0,
     "Beyond it nothing new is taken on; at least 8 (none)", 3},
    {"metrics", OPTION_METRICS, "ADDRESS", 0,
     "Answer /metrics and /healthz at 127.0.0.1:PORT, [::1]:PORT or unix:/PATH", 3},
    {"config", OPTION_CONFIG, "FILE", 0, "Settings file (" SETTINGS_FILE ")", 3},
    {"json", OPTION_JSON, NULL, 0, "show-unwind prints JSON", 3},
    {"force", OPTION_FORCE, NULL, 0, "Also on kernels that are known to hang (5.19 to 6.0)", 3},
    {"version", 'V', NULL, 0, "Print the version and end", -1},
    {0},
};

struct reader {
    struct settings *settings;
    struct arena *arena;
    const char *spool_dir;   /* NULL: not named, as the next */
    const char *offline_dir; /* likewise */
    bool has_hidden_label;
};

/* ---- single values ---- */

static enum err_code read_number(const char *name, const char *text, uint64_t min, uint64_t max,
                                 uint64_t *ret_number, struct err *err)
{
    if (!span_parse_u64(span_text(text), ret_number) || *ret_number < min || *ret_number > max)
        return err_set(err, ERR_INVALID, "%s is a number from %lu to %lu, not %s", name,
                       (unsigned long)min, (unsigned long)max, text);
    return ERR_NONE;
}

static enum err_code read_share(const char *text, double *ret_share, struct err *err)
{
    char *end;
    *ret_share = strtod(text, &end);
    if (end == text || *end || !(*ret_share >= 0 && *ret_share <= 1) ||
        (*ret_share > 0 && *ret_share < AGENT_OFF_CPU_SHARE_MIN))
        return err_set(err, ERR_INVALID, "off-cpu is 0 or a part from 0.0001 to 1, not %s", text);
    return ERR_NONE;
}

static enum err_code read_label(struct reader *reader, struct span text, struct err *err)
{
    struct settings *settings = reader->settings;
    struct span name, value;
    if (!span_split(text, '=', &name, &value) || name.size == 0 || !span_is_utf8(text))
        return err_set(err, ERR_INVALID, "label is NAME=VALUE, not %.*s", SPAN_PRINT(text));
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
            return err_set(err, ERR_INVALID, "environment is NAME,NAME, not %s", text);
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
    return err_set(err, ERR_INVALID, "symbols is off, missing or all, not %s", text);
}

static enum err_code read_bool(const char *name, const char *text, bool *ret_value, struct err *err)
{
    *ret_value = strcmp(text, "yes") == 0;
    return *ret_value || strcmp(text, "no") == 0
               ? ERR_NONE
               : err_set(err, ERR_INVALID, "%s is yes or no, not %s", name, text);
}

static enum err_code apply(struct reader *reader, int key, const char *text, struct err *err)
{
    struct settings *settings = reader->settings;
    uint64_t number = 0;
    enum err_code code = ERR_NONE;
    switch (key) {
    case OPTION_SERVER:
        settings->access.server = text;
        break;
    case OPTION_TOKEN_FILE:
        settings->access.token_file = text;
        break;
    case OPTION_CA_FILE:
        settings->access.ca_file = text;
        break;
    case OPTION_PROXY:
        settings->access.proxy = text;
        break;
    case OPTION_OFFLINE_DIR:
        reader->offline_dir = text;
        break;
    case OPTION_SPOOL_DIR:
        reader->spool_dir = text;
        break;
    case OPTION_SPOOL_MAX:
        code = read_number("spool-max", text, 1, SPOOL_MAX_MB, &number, err);
        settings->spool_max_bytes = number << 20;
        break;
    case OPTION_INTERVAL:
        code = read_number("interval", text, 1, INTERVAL_MAX_S, &number, err);
        settings->interval_s = (uint32_t)number;
        break;
    case 'F':
        code = read_number("frequency", text, 1, HZ_MAX, &number, err);
        settings->frequency_hz = (uint32_t)number;
        break;
    case OPTION_OFF_CPU:
        code = read_share(text, &settings->off_cpu_share, err);
        break;
    case OPTION_MIN_WAIT:
        code = read_number("min-wait", text, 0, MIN_WAIT_MAX_US, &number, err);
        settings->min_wait_ns = (int64_t)number * 1000;
        break;
    case OPTION_LABEL:
        code = read_label(reader, span_text(text), err);
        break;
    case OPTION_FORCE:
        settings->is_forced = true;
        break;
    case OPTION_FRAME_POINTERS:
        settings->has_no_tables = true;
        break;
    case OPTION_BOUNDED_LOOPS:
        settings->has_bounded_loops = true;
        break;
    case OPTION_AGGREGATE:
        settings->has_tallies = strcmp(text, "kernel") == 0;
        if (!settings->has_tallies && strcmp(text, "user") != 0)
            code = err_set(err, ERR_INVALID, "aggregate is user or kernel, not %.40s", text);
        break;
    case OPTION_METRICS:
        settings->metrics = text;
        break;
    case OPTION_ENVIRONMENT:
        settings->environment_count = 0;
        code = read_variables(settings, text, err);
        break;
    case OPTION_RELABEL_FILE:
        settings->relabel_file = text;
        break;
    case OPTION_PODS:
        settings->pods.server = text;
        break;
    case OPTION_PODS_CA_FILE:
        settings->pods.ca_file = text;
        break;
    case OPTION_PODS_TOKEN_FILE:
        settings->pods.token_file = text;
        break;
    case OPTION_HOST_ROOT:
        settings->host_root = text;
        break;
    case OPTION_SYMBOLS:
        code = read_policy(text, &settings->symbols, err);
        break;
    case OPTION_SYMBOLS_FILES:
        code = read_bool("symbols-files", text, &settings->may_send_debug_files, err);
        break;
    case OPTION_SYMBOLS_MEMORY:
        code = read_number("symbols-memory", text, 64, MEMORY_MAX_MB, &number, err);
        settings->symbols_memory_bytes = number << 20;
        break;
    case OPTION_MEMORY_LIMIT:
        code = read_number("memory-limit", text, MEMORY_LIMIT_MIN_MB, MEMORY_MAX_MB, &number, err);
        settings->memory_limit_bytes = number << 20;
        break;
    case OPTION_JSON:
        settings->is_json = true;
        break;
    default:
        return ERR_NOT_FOUND;
    }
    return code;
}

/* ---- the file ---- */

/* Several labels of the file stand in one line, with commas between them. */
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

/* What has no value on the command line is yes or no here. */
static enum err_code read_flag(struct reader *reader, const struct argp_option *option,
                               const char *value, struct err *err)
{
    bool is_set;
    enum err_code code = read_bool(option->name, value, &is_set, err);
    return !code && is_set ? apply(reader, option->key, NULL, err) : code;
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
               : apply(reader, option->key, arena_strdup(reader->arena, value), err);
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

/* First the file alone is looked for, since the command line wins over it. */
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

static error_t parse(int key, char *text, struct argp_state *state)
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
        argp_error(state, "show-unwind wants the name of a file");
    const enum err_code code = apply(reader, key, text, &err);
    if (code && code != ERR_NOT_FOUND)
        argp_error(state, "--%s", err.message);
    return code ? ARGP_ERR_UNKNOWN : 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "[doctor | show-unwind FILE]",
    .doc =
        "Sample every process of this host all the time, and send profiles to Perfolio.\v"
        "Runs as root, or with CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH and "
        "CAP_SYSLOG. perfolio-agent doctor says what of it is missing, and what this kernel can. "
        "perfolio-agent(8) is the manual.",
};
static const struct argp file_argp = {
    .options = options, .parser = find_file, .args_doc = "[doctor | show-unwind FILE]"};

/* Inside of a pod, what Kubernetes gives it. */
static void set_pods_defaults(struct server_config *pods)
{
    static const char token[] = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    static const char ca[] = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
    if (!pods->token_file && access(token, R_OK) == 0)
        pods->token_file = token;
    if (!pods->ca_file && access(ca, R_OK) == 0)
        pods->ca_file = ca;
    pods->proxy = ""; /* it is near */
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

/* Where batches go, and how many may be there. */
static enum err_code set_spool(const struct reader *reader, struct err *err)
{
    struct settings *settings = reader->settings;
    const char *state = getenv("STATE_DIRECTORY");
    if (reader->spool_dir && reader->offline_dir)
        return err_set(err, ERR_INVALID,
                       "batches wait in spool-dir to be sent, or stay in offline-dir: name one of "
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
    return S_ISDIR(status.st_mode) ? ERR_NONE
                                   : err_set(err, ERR_INVALID, "%s %s is no folder", name, folder);
}

/* What would do nothing, or something else than was meant. */
static enum err_code check_together(const struct reader *reader, struct err *err)
{
    const struct settings *settings = reader->settings;
    if (!settings->access.server && !settings->is_offline)
        return err_set(err, ERR_INVALID,
                       "name a server to send to, --server=https://HOST:PORT, or a folder to keep "
                       "batches in, --offline-dir");
    const struct server_config *access = &settings->access;
    if (settings->is_offline &&
        (access->server || access->token_file || access->ca_file || access->proxy))
        return err_set(err, ERR_INVALID,
                       "server, token-file, ca-file and proxy are of sending, and with offline-dir "
                       "nothing is sent: leave either out");
    if (settings->min_wait_ns && settings->off_cpu_share == 0)
        return err_set(err, ERR_INVALID, "min-wait is of waits: add off-cpu");
    if (reader->has_hidden_label && !settings->relabel_file)
        return err_set(err, ERR_INVALID,
                       "labels whose names begin with __ are not sent: they are for rules of "
                       "relabel-file, which is not there");
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

static enum err_code check(const struct reader *reader, struct err *err)
{
    const struct settings *settings = reader->settings;
    enum err_code code = check_together(reader, err);
    if (!code)
        code = check_addresses(settings, err);
    if (!code && settings->host_root)
        code = check_folder("host-root", settings->host_root, err);
    return code;
}

/* argp can only say that it does not know an option. */
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

/* Over what the file has, which a command line that keeps batches, in place of sending them, does
 * without. */
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
    /* Only the one that nobody named may be missing. */
    if (strcmp(file, SETTINGS_FILE) != 0 && access(file, R_OK))
        return err_set_errno(err, ERR_IO, "%s", file);
    enum err_code code = read_file(&reader, err);
    if (code)
        return code;
    read_command_line(&reader, argc, argv);
    set_pods_defaults(&ret_settings->pods);
    code = set_spool(&reader, err);
    return code || ret_settings->action != SETTINGS_RUN ? code : check(&reader, err);
}

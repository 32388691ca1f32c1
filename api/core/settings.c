#include "api/core/settings.h"

#include "api/core/sample_labels.h"
#include "lib/base/buf.h"
#include "lib/base/mem.h"

#include <ctype.h>
#include <ini.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

enum knob_kind {
    KNOB_TEXT,
    KNOB_LISTEN,
    KNOB_LEVEL,
    KNOB_SWITCH,
    KNOB_NUMBER,   /* int */
    KNOB_COUNT,    /* uint64_t */
    KNOB_SIZE,     /* uint64_t bytes */
    KNOB_SECONDS,  /* int */
    KNOB_DURATION, /* int64_t seconds */
};

struct knob {
    const char *name;
    enum knob_kind kind;
    size_t offset;
    int64_t low;
    int64_t high;
    const char *initial;
    const char *help;
};

#define KNOB(name, kind, field, low, high, initial, help)                                          \
    {                                                                                              \
        name, kind, offsetof(struct settings, field), low, high, initial, help                     \
    }
#define KIB INT64_C(1024)
#define GIB (INT64_C(1024) * 1024 * 1024)
#define TIB (GIB * 1024)
#define DAY INT64_C(86400)

static const struct knob knobs[] = {
    KNOB("config", KNOB_TEXT, config_file, 0, 0, "",
         "INI file with these settings in its section [server]"),
    KNOB("data-dir", KNOB_TEXT, data_dir, 0, 0, "perfolio-data",
         "folder for the database, the profiles, certificates and admin.token"),
    KNOB(
        "min-free-bytes", KNOB_SIZE, min_free_bytes, 0, TIB, "0",
        "free space of the data folder's disk below which nothing is stored, so that deletions can "
        "go on; 0 is a sixteenth of the disk, from 64MiB to 1GiB, but at most a quarter of it"),
    KNOB("listen", KNOB_LISTEN, listen, 0, 0, "localhost:7443",
         "host:port to serve HTTPS on; may be repeated (in the file and environment: with commas)"),
    KNOB("public-url", KNOB_TEXT, public_url, 0, 0, "",
         "what links start with; made from the first --listen unless given"),
    KNOB("database-url", KNOB_TEXT, database_url, 0, 0, "",
         "an external PostgreSQL 15 or newer (postgresql://user@host/name) instead of the private "
         "one in the data folder"),
    KNOB("s3-bucket", KNOB_TEXT, s3_bucket, 0, 0, "",
         "bucket of an S3-compatible server that holds the profiles, instead of the data folder"),
    KNOB("s3-endpoint", KNOB_TEXT, s3_endpoint, 0, 0, "",
         "https://host or http://host:port of the S3 server; Amazon's of the region unless given"),
    KNOB("s3-prefix", KNOB_TEXT, s3_prefix, 0, 0, "",
         "what the names of all objects in the bucket start with, as team/perfolio"),
    KNOB("s3-region", KNOB_TEXT, s3_region, 0, 0, "us-east-1", "where the bucket is"),
    KNOB("s3-path-style", KNOB_SWITCH, s3_path_style, 0, 0, "no",
         "ask for host/bucket/key instead of bucket.host/key, as most servers but Amazon's want"),
    KNOB("s3-ca-file", KNOB_TEXT, s3_ca_file, 0, 0, "",
         "PEM file to trust for the S3 server instead of the system's authorities"),
    KNOB("s3-credentials-file", KNOB_TEXT, s3_credentials_file, 0, 0, "",
         "file with aws_access_key_id, aws_secret_access_key and perhaps aws_session_token in its "
         "section [default], read at start; AWS_ACCESS_KEY_ID and so on of the environment unless "
         "given"),
    KNOB("tls-cert", KNOB_TEXT, tls_cert, 0, 0, "",
         "PEM file with certificate and chain, read again on SIGHUP; a local one unless given"),
    KNOB("tls-key", KNOB_TEXT, tls_key, 0, 0, "", "PEM file with the certificate's private key"),
    KNOB("access-log", KNOB_TEXT, access_log, 0, 0, "",
         "file for one line per request, opened again on SIGHUP; - is standard error"),
    KNOB("log-level", KNOB_LEVEL, log_level, 0, 0, "info", "debug, info, warn or error"),
    KNOB("loop-threads", KNOB_NUMBER, loop_threads, 1, 64, "2", "threads that do network work"),
    KNOB("worker-threads", KNOB_NUMBER, worker_threads, 1, 256, "8",
         "threads that do everything else"),
    KNOB("intake-threads", KNOB_NUMBER, intake_threads, 1, 256, "32",
         "threads that take continuous profiles: senders that wait until theirs are durable"),
    KNOB("worker-queue", KNOB_NUMBER, worker_queue, 1, 100000, "256",
         "requests that may wait for a worker before others get 503"),
    KNOB("jobs-interval", KNOB_SECONDS, jobs_interval_s, 1, 3600, "5s",
         "pause between rounds of background work (expiry, deletion), unless one left work behind"),
    KNOB("scrub-period", KNOB_DURATION, scrub_period_s, 0, 3650 * DAY, "30d",
         "within which every stored object is read and compared with its digest; 0: never"),
    KNOB("http2", KNOB_SWITCH, http2, 0, 0, "no", "offer HTTP/2"),
    KNOB("trust-forwarded-for", KNOB_SWITCH, trust_forwarded_for, 0, 0, "no",
         "behind a proxy of yours: take the last address of X-Forwarded-For for the client's"),
    KNOB("max-connections", KNOB_NUMBER, max_connections, 1, 100000, "2048", "open connections"),
    KNOB("max-connections-per-address", KNOB_NUMBER, max_connections_per_address, 0, 100000, "0",
         "open connections of one address (IPv6: of a /64); 0: a tenth of max-connections and at "
         "least 16, or no limit with trust-forwarded-for"),
    KNOB("reserved-connections", KNOB_NUMBER, reserved_connections, 0, 100000, "0",
         "of max-connections, for authenticated clients and health checks; 0: a tenth"),
    KNOB("max-buffered-bytes", KNOB_SIZE, max_buffered_bytes, 16 * KIB * KIB, TIB, "192MiB",
         "memory of the bodies of all requests together, and again of all responses"),
    KNOB("request-timeout", KNOB_SECONDS, request_timeout_s, 1, 86400, "30s",
         "for a request that trickles in or is not read"),
    KNOB("idle-timeout", KNOB_SECONDS, idle_timeout_s, 1, 86400, "60s",
         "for a connection without a byte"),
    KNOB("shutdown-timeout", KNOB_SECONDS, shutdown_timeout_s, 0, 3600, "30s",
         "for requests in flight after SIGTERM"),
    KNOB("database-connections", KNOB_NUMBER, database_connections, 1, 1000, "8",
         "connections for requests; background work has 3 more"),
    KNOB("public-metrics", KNOB_SWITCH, public_metrics, 0, 0, "yes",
         "let everyone read /metrics, otherwise only operators' tokens"),
    KNOB("anonymous-sharing", KNOB_SWITCH, anonymous_sharing, 0, 0, "yes",
         "let clients without an account create shares"),
    KNOB("anonymous-uploads-per-minute", KNOB_NUMBER, anonymous_uploads_per_minute, 1, 1000000,
         "30", "per address"),
    KNOB("anonymous-max-upload-bytes", KNOB_SIZE, anonymous_max_upload_bytes, KIB, TIB, "256MiB",
         "of one anonymous share"),
    KNOB("anonymous-max-generated-bytes", KNOB_SIZE, anonymous_max_generated_bytes, KIB,
         512 * KIB * KIB, "64MiB",
         "of one file or report generated for a request without credentials, before compression"),
    KNOB("max-generated-bytes", KNOB_SIZE, max_generated_bytes, KIB, 512 * KIB * KIB, "256MiB",
         "of one file or report generated for a token or a user, before compression"),
    KNOB("anonymous-max-bytes", KNOB_SIZE, anonymous_max_bytes, KIB, 1024 * TIB, "20GiB",
         "stored by all anonymous shares together"),
    KNOB("anonymous-max-announced-bytes", KNOB_SIZE, anonymous_max_announced_bytes, KIB, 1024 * TIB,
         "1GiB",
         "announced by one address for anonymous uploads in parts and not sent yet; a single "
         "upload is never too large for it"),
    KNOB("anonymous-expiry", KNOB_DURATION, anonymous_expiry_s, 3600, 3650 * DAY, "365d",
         "after the last view of an anonymous share"),
    KNOB("anonymous-upload-lifetime", KNOB_DURATION, anonymous_upload_lifetime_s, 60, 365 * DAY,
         "1h", "of an unfinished anonymous upload in parts, unless upload-lifetime is shorter"),
    KNOB("tenant-max-bytes", KNOB_SIZE, tenant_max_bytes, KIB, 1024 * TIB, "100GiB",
         "stored by a new tenant"),
    KNOB("tenant-uploads-per-minute", KNOB_NUMBER, tenant_uploads_per_minute, 1, 1000000, "600",
         "of a new tenant"),
    KNOB("tenant-max-upload-bytes", KNOB_SIZE, tenant_max_upload_bytes, KIB, TIB, "1GiB",
         "of one share of a new tenant"),
    KNOB("tenant-profile-retention", KNOB_DURATION, tenant_profile_retention_s, 0, 36500 * DAY, "0",
         "how long continuous profiles of a new tenant are kept; 0: for ever"),
    KNOB("tenant-samples-per-second", KNOB_COUNT, tenant_limits[TENANT_LIMIT_SAMPLES_PER_SECOND], 0,
         INT64_C(1000000000), "1000000",
         "of the continuous profiles of one tenant, in the long run"),
    KNOB("tenant-samples-burst", KNOB_COUNT, tenant_limits[TENANT_LIMIT_SAMPLES_BURST], 1,
         INT64_C(1000000000), "20000000", "of the continuous profiles of one tenant, at once"),
    KNOB("tenant-active-series", KNOB_COUNT, tenant_limits[TENANT_LIMIT_ACTIVE_SERIES], 0, 10000000,
         "100000", "of one tenant: label sets with a profile in the last hour"),
    KNOB("tenant-series-labels", KNOB_COUNT, tenant_limits[TENANT_LIMIT_SERIES_LABELS], 1, 64, "64",
         "labels of one series"),
    KNOB("tenant-label-name-bytes", KNOB_SIZE, tenant_limits[TENANT_LIMIT_LABEL_NAME_BYTES], 1, KIB,
         "1KiB", "of the name of a series' label"),
    KNOB("tenant-label-value-bytes", KNOB_SIZE, tenant_limits[TENANT_LIMIT_LABEL_VALUE_BYTES], 1,
         2 * KIB, "2KiB", "of the value of a series' label"),
    KNOB("tenant-profile-bytes", KNOB_SIZE, tenant_limits[TENANT_LIMIT_PROFILE_BYTES], KIB,
         64 * GIB, "256MiB",
         "of one continuous profile after decompression; of one request of OpenTelemetry"),
    KNOB("tenant-string-bytes", KNOB_SIZE, tenant_limits[TENANT_LIMIT_STRING_BYTES], 256, KIB *KIB,
         "16KiB",
         "of one name or text in a continuous profile; longer ones are cut and end in a hash"),
    KNOB("tenant-future", KNOB_DURATION, tenant_limits[TENANT_LIMIT_FUTURE_S], 0, 100000 * DAY,
         "1d", "how far ahead of this server's clock a continuous profile may begin"),
    KNOB("tenant-sample-labels", KNOB_TEXT, tenant_sample_labels, 0, 0, "",
         "comma-separated names of labels of samples that make series of deltas"),
    KNOB("tenant-query-cpu-time", KNOB_DURATION, tenant_limits[TENANT_LIMIT_QUERY_CPU_S], 1, 3600,
         "20s", "CPU time of one query of continuous profiles"),
    KNOB("tenant-query-time", KNOB_DURATION, tenant_limits[TENANT_LIMIT_QUERY_TIME_S], 1, 3600,
         "60s", "elapsed time of one query of continuous profiles"),
    KNOB("tenant-query-memory", KNOB_SIZE, tenant_limits[TENANT_LIMIT_QUERY_MEMORY_BYTES], KIB *KIB,
         TIB, "1GiB", "memory of one query of continuous profiles"),
    KNOB("tenant-query-read-bytes", KNOB_SIZE, tenant_limits[TENANT_LIMIT_QUERY_READ_BYTES], 1,
         1024 * TIB, "64GiB", "stored bytes that one query may read"),
    KNOB("tenant-rule-keep", KNOB_DURATION, tenant_limits[TENANT_LIMIT_RULE_KEEP_S], 0, 36500 * DAY,
         "0", "the maximum of retention rules that a team sets itself; 0: no maximum"),
    KNOB("debuginfod-urls", KNOB_TEXT, debuginfod_urls, 0, 0,
         "https://debuginfod.elfutils.org/,https://debuginfod.debian.net/,"
         "https://debuginfod.ubuntu.com/,https://debuginfod.fedoraproject.org/,"
         "https://debuginfod.archlinux.org/,https://debuginfod.opensuse.org/",
         "comma-separated servers from which debug files are fetched, unless a team chooses "
         "otherwise; they learn build ids; off: no server is contacted"),
    KNOB("debuginfod-allow-host", KNOB_TEXT, debuginfod_allow_host, 0, 0, "",
         "comma-separated host or host:port of debuginfod servers that may be contacted over http "
         "and at addresses outside of the public Internet"),
    KNOB("debuginfod-ca-file", KNOB_TEXT, debuginfod_ca_file, 0, 0, "",
         "PEM file to trust for debuginfod servers instead of the system's authorities"),
    KNOB("debuginfod-max-bytes", KNOB_SIZE, debuginfod_max_bytes, KIB, TIB, "2GiB",
         "of one debug file that is fetched"),
    KNOB("max-profile-bytes", KNOB_SIZE, max_profile_bytes, KIB, 64 * GIB, "512MiB",
         "of one profile after decompression"),
    KNOB("max-profile-samples", KNOB_COUNT, max_profile_samples, 1, INT64_C(4000000000), "8388608",
         "in one profile"),
    KNOB("max-request-days", KNOB_NUMBER, max_request_days, 1, 100000, "64",
         "days (UTC) on which the continuous profiles of one request may begin"),
    KNOB("max-expansion-ratio", KNOB_NUMBER, max_expansion_ratio, 10, 1000000, "200",
         "how many times its size a compressed continuous profile may expand to, if that is more "
         "than 8MiB"),
    KNOB("max-share-expansion-ratio", KNOB_NUMBER, max_share_expansion_ratio, 10, 1000000, "1000",
         "the same for a shared profile"),
    KNOB("max-heavy-memory", KNOB_SIZE, max_heavy_memory, 0, 64 * TIB, "0",
         "memory of all large profiles together while they are decoded or reported; 0 is half of "
         "the host's, from 256MiB to 4GiB"),
    KNOB("max-query-memory", KNOB_SIZE, max_query_memory, 0, 64 * TIB, "0",
         "memory of all queries of continuous profiles together; 0 is a quarter of the host's, "
         "from 256MiB to 4GiB"),
    KNOB("report-cpu-time", KNOB_SECONDS, report_cpu_time_s, 1, 3600, "20s",
         "CPU time of one report before it is aborted"),
    KNOB("report-wait", KNOB_SECONDS, report_wait_s, 1, 3600, "30s",
         "how long a report waits for a worker before it gets 503"),
    KNOB("profile-cache-bytes", KNOB_SIZE, profile_cache_bytes, 0, TIB, "0",
         "cache of decoded profiles; 0 is an eighth of the host's memory, from 64MiB to 256MiB"),
    KNOB("query-cache-bytes", KNOB_SIZE, query_cache_bytes, 0, TIB, "32MiB",
         "cache of query results: half of it for merged profiles, half for complete reports; 0 "
         "disables it"),
    KNOB("block-cache-bytes", KNOB_SIZE, block_cache_bytes, 16 << 20, TIB, "256MiB",
         "blocks of continuous profiles kept open for queries, and until they are merged"),
    KNOB("session-lifetime", KNOB_DURATION, session_lifetime_s, 60, 3650 * DAY, "30d",
         "of a sign-in in a browser"),
    KNOB("invitation-lifetime", KNOB_DURATION, invitation_lifetime_s, 60, 365 * DAY, "7d",
         "of an invitation link"),
    KNOB("upload-lifetime", KNOB_DURATION, upload_lifetime_s, 60, 365 * DAY, "1d",
         "of an unfinished upload in parts"),
};
enum { KNOB_COUNT_ALL = sizeof(knobs) / sizeof(knobs[0]) };

static void *field_of(struct settings *settings, const struct knob *knob)
{
    return (char *)settings + knob->offset;
}

static const void *const_field_of(const struct settings *settings, const struct knob *knob)
{
    return (const char *)settings + knob->offset;
}

static const struct knob *find_knob(const char *name)
{
    for (int i = 0; i < KNOB_COUNT_ALL; i++)
        if (strcmp(knobs[i].name, name) == 0)
            return &knobs[i];
    return NULL;
}

/* "data-dir" becomes "PERFOLIO_DATA_DIR". */
static void environment_name(const struct knob *knob, char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "PERFOLIO_%s", knob->name);
    for (char *at = text; *at; at++)
        *at = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
}

void settings_set_text(char **knob, const char *value)
{
    char *copy = mem_strdup(value);
    mem_free(*knob);
    *knob = copy;
}

struct unit {
    const char *name;
    int64_t factor;
};

static const struct unit size_units[] = {{"", 1},      {"KiB", KIB}, {"MiB", KIB *KIB},
                                         {"GiB", GIB}, {"TiB", TIB}, {NULL, 0}};
static const struct unit time_units[] = {{"s", 1},       {"m", 60}, {"h", 3600}, {"d", DAY},
                                         {"w", 7 * DAY}, {"", 1},   {NULL, 0}};
static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

/* The number in the setting's unit; text may be "5", "5 MiB" or "5MiB". */
static enum err_code parse_number(const struct knob *knob, const char *text,
                                  const struct unit *units, int64_t *ret_number, struct err *err)
{
    size_t digits = strspn(text, "0123456789");
    int64_t number;
    if (digits == 0 || !span_parse_i64(span_of(text, digits), &number))
        return err_set(err, ERR_INVALID, "\"%s\" is not a number for %s", text, knob->name);
    const char *rest = text + digits;
    while (*rest == ' ')
        rest++;
    const struct unit *unit = units;
    while (unit->name && strcmp(unit->name, rest) != 0)
        unit++;
    if (!unit->name)
        return err_set(err, ERR_INVALID, "\"%s\" is not a value for %s: it takes %s", text,
                       knob->name,
                       units == size_units   ? "bytes, KiB, MiB, GiB or TiB"
                       : units == time_units ? "s, m, h, d or w"
                                             : "a plain number");
    if (__builtin_mul_overflow(number, unit->factor, &number) || number < knob->low ||
        number > knob->high)
        return err_set(err, ERR_INVALID, "%s for %s is outside %lld to %lld", text, knob->name,
                       (long long)knob->low, (long long)knob->high);
    *ret_number = number;
    return ERR_NONE;
}

static enum err_code parse_switch(const struct knob *knob, const char *text, bool *ret_value,
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
                   knob->name);
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

static void clear_listen(struct settings *settings)
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

static enum err_code set_knob(struct settings *settings, const struct knob *knob, const char *text,
                              struct err *err)
{
    void *field = field_of(settings, knob);
    int64_t number = 0;
    enum err_code code = ERR_NONE;
    switch (knob->kind) {
    case KNOB_TEXT:
        settings_set_text(field, text);
        return ERR_NONE;
    case KNOB_LISTEN:
        return add_listens(settings, text, err);
    case KNOB_LEVEL:
        return parse_level(text, field, err);
    case KNOB_SWITCH:
        return parse_switch(knob, text, field, err);
    case KNOB_NUMBER:
    case KNOB_SECONDS:
        code = parse_number(knob, text, knob->kind == KNOB_NUMBER ? no_units : time_units, &number,
                            err);
        if (!code)
            *(int *)field = (int)number;
        return code;
    case KNOB_COUNT:
    case KNOB_SIZE:
        code = parse_number(knob, text, knob->kind == KNOB_COUNT ? no_units : size_units, &number,
                            err);
        if (!code)
            *(uint64_t *)field = (uint64_t)number;
        return code;
    case KNOB_DURATION:
        code = parse_number(knob, text, time_units, &number, err);
        if (!code)
            *(int64_t *)field = number;
        return code;
    }
    return code;
}

void settings_init(struct settings *settings)
{
    *settings = (struct settings){.log_level = LOG_INFO};
    for (int i = 0; i < KNOB_COUNT_ALL; i++) {
        struct err err;
        if (set_knob(settings, &knobs[i], knobs[i].initial, &err))
            abort(); /* a default in the table above is wrong */
    }
}

void settings_fini(struct settings *settings)
{
    for (int i = 0; i < KNOB_COUNT_ALL; i++) {
        if (knobs[i].kind == KNOB_TEXT) {
            char **text = field_of(settings, &knobs[i]);
            mem_free(*text);
            *text = NULL;
        }
    }
    clear_listen(settings);
}

/* Where a value comes from. The addresses of one source replace those of a lesser one; repeats
 * within one source add up. */
struct source {
    struct settings *settings;
    bool has_listen;
    struct err *err;
    enum err_code code;
};

static enum err_code set_from(struct source *source, const struct knob *knob, const char *text)
{
    if (knob->kind == KNOB_LISTEN && !source->has_listen) {
        clear_listen(source->settings);
        source->has_listen = true;
    }
    source->code = set_knob(source->settings, knob, text, source->err);
    return source->code;
}

/* inih's convention: 0 is an error, and ini_parse returns its line number. */
static int take_file_entry(void *context, const char *section, const char *name, const char *value)
{
    struct source *source = context;
    const struct knob *knob = find_knob(name);
    if (strcmp(section, "server") != 0) {
        source->code = err_set(source->err, ERR_INVALID,
                               "section [%s] is not known: settings belong to [server]", section);
        return 0;
    }
    if (!knob || strcmp(name, "config") == 0) {
        source->code = err_set(source->err, ERR_INVALID, "there is no setting \"%s\"", name);
        return 0;
    }
    return set_from(source, knob, value) == ERR_NONE;
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

static enum err_code load_environment(struct settings *settings, struct err *err)
{
    struct source source = {.settings = settings, .err = err};
    for (int i = 0; i < KNOB_COUNT_ALL; i++) {
        char name[80];
        environment_name(&knobs[i], name, sizeof(name));
        const char *value = getenv(name);
        if (value && set_from(&source, &knobs[i], value))
            return err_add(err, "%s", name);
    }
    return ERR_NONE;
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
    const struct knob *knob = find_knob(name);
    if (!knob)
        return err_set(err, ERR_INVALID, "there is no flag --%s; see --help", name);
    const char *value = equals ? equals + 1 : argument_count > 1 ? arguments[1] : NULL;
    if (!value)
        return err_set(err, ERR_INVALID, "--%s needs a value", name);
    *ret_used = equals ? 1 : 2;
    if (set_from(source, knob, value))
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
    settings_set_text(&settings->tenant_sample_labels, list);
    return ERR_NONE;
}

static enum err_code check_together(struct settings *settings, struct err *err)
{
    enum err_code code = clean_sample_labels(settings, err);
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

static const char *kind_hint(enum knob_kind kind)
{
    static const char *const hints[] = {
        [KNOB_TEXT] = "TEXT",     [KNOB_LISTEN] = "HOST:PORT", [KNOB_LEVEL] = "LEVEL",
        [KNOB_SWITCH] = "yes|no", [KNOB_NUMBER] = "NUMBER",    [KNOB_COUNT] = "NUMBER",
        [KNOB_SIZE] = "SIZE",     [KNOB_SECONDS] = "DURATION", [KNOB_DURATION] = "DURATION",
    };
    return hints[kind];
}

void settings_print_help(FILE *file)
{
    for (int i = 0; i < KNOB_COUNT_ALL; i++) {
        char name[80];
        environment_name(&knobs[i], name, sizeof(name));
        fprintf(file, "  --%s %s\n      %s.\n", knobs[i].name, kind_hint(knobs[i].kind),
                knobs[i].help);
        fprintf(file, "      %s%s%s%s\n", name, *knobs[i].initial ? "; default " : "",
                knobs[i].initial, "");
    }
}

static void format_knob(const struct settings *settings, const struct knob *knob, struct buf *text)
{
    const void *field = const_field_of(settings, knob);
    switch (knob->kind) {
    case KNOB_TEXT:
        buf_append_text(text, *(char *const *)field);
        break;
    case KNOB_LISTEN:
        for (int i = 0; i < settings->listen_count; i++)
            buf_printf(text, "%s%s", i ? "," : "", settings->listen[i]);
        break;
    case KNOB_LEVEL:
        buf_append_text(text, level_names[*(const enum log_level *)field]);
        break;
    case KNOB_SWITCH:
        buf_append_text(text, *(const bool *)field ? "yes" : "no");
        break;
    case KNOB_NUMBER:
    case KNOB_SECONDS:
        buf_printf(text, "%d", *(const int *)field);
        break;
    case KNOB_COUNT:
    case KNOB_SIZE:
        buf_printf(text, "%llu", (unsigned long long)*(const uint64_t *)field);
        break;
    case KNOB_DURATION:
        buf_printf(text, "%lld", (long long)*(const int64_t *)field);
        break;
    }
}

char **settings_to_environment(const struct settings *settings)
{
    size_t kept = 0, count = 0;
    while (environ[kept])
        kept++;
    char **result = mem_new(char *, kept + KNOB_COUNT_ALL + 1);
    for (size_t i = 0; i < kept; i++)
        if (strncmp(environ[i], "PERFOLIO_", 9) != 0)
            result[count++] = mem_strdup(environ[i]);
    for (int i = 0; i < KNOB_COUNT_ALL; i++) {
        if (strcmp(knobs[i].name, "config") == 0)
            continue; /* the child need not read it, and may not be able to */
        char name[80];
        buf_auto text;
        buf_init(&text, 64 * 1024);
        environment_name(&knobs[i], name, sizeof(name));
        buf_printf(&text, "%s=", name);
        format_knob(settings, &knobs[i], &text);
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

bool settings_uses_debuginfod(const struct settings *settings)
{
    return strcmp(settings->debuginfod_urls, "off") != 0 && settings->debuginfod_urls[0];
}

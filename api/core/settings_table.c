#include "api/core/settings_table.h"

#include "api/core/settings.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define SETTING(name, kind, field, low, high, initial, help)                                       \
    {                                                                                              \
        name, kind, offsetof(struct settings, field), low, high, initial, help                     \
    }
#define KIB INT64_C(1024)
#define GIB (INT64_C(1024) * 1024 * 1024)
#define TIB (GIB * 1024)
#define DAY INT64_C(86400)

const struct setting settings_table[] = {
    SETTING("config", SETTING_TEXT, config_file, 0, 0, "",
            "INI file with these settings in its section [server]"),
    SETTING("data-dir", SETTING_TEXT, data_dir, 0, 0, "perfolio-data",
            "folder for the database, the profiles, certificates and admin.token"),
    SETTING(
        "min-free-bytes", SETTING_SIZE, min_free_bytes, 0, TIB, "0",
        "free space of the data folder's disk below which nothing is stored, so that deletions can "
        "go on; 0 is a sixteenth of the disk, from 64MiB to 1GiB, but at most a quarter of it"),
    SETTING(
        "listen", SETTING_LISTEN, listen, 0, 0, "localhost:7443",
        "host:port to serve HTTPS on; may be repeated (in the file and environment: with commas)"),
    SETTING("public-url", SETTING_TEXT, public_url, 0, 0, "",
            "prefix of links; made from the first --listen unless given"),
    SETTING(
        "database-url", SETTING_TEXT, database_url, 0, 0, "",
        "an external PostgreSQL 15 or newer (postgresql://user@host/name) instead of the private "
        "one in the data folder"),
    SETTING(
        "s3-bucket", SETTING_TEXT, s3_bucket, 0, 0, "",
        "bucket of an S3-compatible server that holds the profiles, instead of the data folder"),
    SETTING(
        "s3-endpoint", SETTING_TEXT, s3_endpoint, 0, 0, "",
        "https://host or http://host:port of the S3 server; Amazon's of the region unless given"),
    SETTING("s3-prefix", SETTING_TEXT, s3_prefix, 0, 0, "",
            "prefix of the names of all objects in the bucket, such as team/perfolio"),
    SETTING("s3-region", SETTING_TEXT, s3_region, 0, 0, "us-east-1", "region of the bucket"),
    SETTING("s3-path-style", SETTING_SWITCH, s3_path_style, 0, 0, "no",
            "use host/bucket/key instead of bucket.host/key, as most servers except Amazon's need"),
    SETTING("s3-ca-file", SETTING_TEXT, s3_ca_file, 0, 0, "",
            "PEM file to trust for the S3 server instead of the system's authorities"),
    SETTING(
        "s3-credentials-file", SETTING_TEXT, s3_credentials_file, 0, 0, "",
        "file with aws_access_key_id, aws_secret_access_key and perhaps aws_session_token in its "
        "section [default], read at start; AWS_ACCESS_KEY_ID and so on of the environment unless "
        "given"),
    SETTING("tls-cert", SETTING_TEXT, tls_cert, 0, 0, "",
            "PEM file with certificate and chain, read again on SIGHUP; a local one unless given"),
    SETTING("tls-key", SETTING_TEXT, tls_key, 0, 0, "",
            "PEM file with the certificate's private key"),
    SETTING("access-log", SETTING_TEXT, access_log, 0, 0, "",
            "file for one line per request, opened again on SIGHUP; - is standard error"),
    SETTING("log-level", SETTING_LEVEL, log_level, 0, 0, "info", "debug, info, warn or error"),
    SETTING("loop-threads", SETTING_NUMBER, loop_threads, 1, 64, "2", "threads for network I/O"),
    SETTING("worker-threads", SETTING_NUMBER, worker_threads, 1, 256, "8",
            "threads for all other requests"),
    SETTING("ingest-threads", SETTING_NUMBER, ingest_threads, 1, 256, "32",
            "threads for requests of agents, which wait until their profiles are durable"),
    SETTING("worker-queue", SETTING_NUMBER, worker_queue, 1, 100000, "256",
            "requests that may wait for a worker before others get 503"),
    SETTING("jobs-interval", SETTING_SECONDS, jobs_interval_s, 1, 3600, "5s",
            "pause between rounds of background work (expiry, deletion), unless work is left"),
    SETTING("scrub-period", SETTING_DURATION, scrub_period_s, 0, 3650 * DAY, "30d",
            "time in which every stored object is read and compared with its digest; 0: never"),
    SETTING("http2", SETTING_SWITCH, http2, 0, 0, "no", "offer HTTP/2, to trusted clients only"),
    SETTING("trust-forwarded-for", SETTING_SWITCH, trust_forwarded_for, 0, 0, "no",
            "behind your own proxy: the last address of X-Forwarded-For is the client's"),
    SETTING("max-connections", SETTING_NUMBER, max_connections, 1, 100000, "2048",
            "maximum number of open connections"),
    SETTING("max-connections-per-address", SETTING_NUMBER, max_connections_per_address, 0, 100000,
            "0",
            "maximum open connections of one address (IPv6: of a /64); 0: a tenth of "
            "max-connections and at "
            "least 16, or no limit with trust-forwarded-for"),
    SETTING("max-new-connections-per-address", SETTING_NUMBER, max_new_connections_per_address, 0,
            100000, "0",
            "new connections of one address (IPv6: of a /48) per second, without those that are "
            "authenticated; 0: 32, or no limit with trust-forwarded-for"),
    SETTING("reserved-connections", SETTING_NUMBER, reserved_connections, 0, 100000, "0",
            "connections of max-connections that are reserved for authenticated clients and health "
            "checks; 0: a tenth"),
    SETTING("max-buffered-bytes", SETTING_SIZE, max_buffered_bytes, 0, TIB, "0",
            "maximum memory of all request bodies together, and the same for all responses; 0 is "
            "4 % of the host's memory beyond 384MiB, from 32MiB to 192MiB"),
    SETTING("request-timeout", SETTING_SECONDS, request_timeout_s, 1, 86400, "30s",
            "time limit for a request that arrives slowly or a response that is not read"),
    SETTING("idle-timeout", SETTING_SECONDS, idle_timeout_s, 1, 86400, "60s",
            "time after which a connection that transfers no byte is closed"),
    SETTING("shutdown-timeout", SETTING_SECONDS, shutdown_timeout_s, 0, 3600, "30s",
            "time limit for requests in flight after SIGTERM"),
    SETTING("database-connections", SETTING_NUMBER, database_connections, 1, 1000, "8",
            "database connections for requests; background work has 5 more"),
    SETTING(
        "passwords-per-minute", SETTING_NUMBER, passwords_per_minute, 1, 1000000, "30",
        "maximum passwords per minute that one address tries or sets, right or wrong, and twice "
        "as many at once; a browser that has signed in before does not count"),
    SETTING("public-metrics", SETTING_SWITCH, public_metrics, 0, 0, "yes",
            "let everyone read /metrics, otherwise only operators' tokens"),
    SETTING("anonymous-sharing", SETTING_SWITCH, anonymous_sharing, 0, 0, "yes",
            "let clients without an account create shares"),
    SETTING("anonymous-uploads-per-minute", SETTING_NUMBER, anonymous_uploads_per_minute, 1,
            1000000, "30", "maximum uploads per minute of one address without credentials"),
    SETTING(
        "anonymous-changes-per-minute", SETTING_NUMBER, anonymous_changes_per_minute, 1, 1000000,
        "60",
        "maximum changes per minute, other than uploads, of one address without credentials; ten "
        "times as many at once"),
    SETTING("anonymous-max-upload-bytes", SETTING_SIZE, anonymous_max_upload_bytes, KIB, TIB,
            "256MiB", "maximum size of one anonymous share"),
    SETTING(
        "anonymous-max-generated-bytes", SETTING_SIZE, anonymous_max_generated_bytes, KIB,
        512 * KIB * KIB, "64MiB",
        "maximum size of one file or report generated for a request without credentials, before "
        "compression"),
    SETTING(
        "max-generated-bytes", SETTING_SIZE, max_generated_bytes, KIB, 512 * KIB * KIB, "256MiB",
        "maximum size of one file or report generated for a token or a user, before compression"),
    SETTING("anonymous-max-bytes", SETTING_SIZE, anonymous_max_bytes, 0, 1024 * TIB, "0",
            "maximum size of all anonymous shares together, with their texts; 0: 20GiB, but at "
            "most a sixteenth of the disk unless objects are in a bucket"),
    SETTING(
        "anonymous-max-daily-bytes", SETTING_SIZE, anonymous_max_daily_bytes, 0, 1024 * TIB, "0",
        "maximum bytes of anonymous shares that one address stores in a day, and always at most a "
        "twentieth of what is left of anonymous-max-bytes; 0: no other limit"),
    SETTING(
        "anonymous-max-announced-bytes", SETTING_SIZE, anonymous_max_announced_bytes, KIB,
        1024 * TIB, "1GiB",
        "maximum bytes that one address has announced for anonymous uploads in parts and not sent "
        "yet; a single "
        "upload is never too large for it"),
    SETTING("anonymous-expiry", SETTING_DURATION, anonymous_expiry_s, 3600, 3650 * DAY, "365d",
            "lifetime of an anonymous share after its last view"),
    SETTING(
        "anonymous-upload-lifetime", SETTING_DURATION, anonymous_upload_lifetime_s, 60, 365 * DAY,
        "1h",
        "lifetime of an unfinished anonymous upload in parts, unless upload-lifetime is shorter"),
    SETTING("tenant-max-bytes", SETTING_SIZE, tenant_max_bytes, 0, 1024 * TIB, "0",
            "maximum bytes stored by a new tenant: shares with their texts, uploads and debug "
            "files; 0: 100GiB, but at most a quarter of the disk unless objects are in a bucket"),
    SETTING("tenant-uploads-per-minute", SETTING_NUMBER, tenant_uploads_per_minute, 1, 1000000,
            "600", "maximum uploads per minute of a new tenant"),
    SETTING(
        "tenant-changes-per-minute", SETTING_NUMBER, tenant_changes_per_minute, 1, 1000000, "300",
        "maximum changes per minute, other than uploads, of a tenant; ten times as many at once"),
    SETTING("audit-max-rows", SETTING_NUMBER, audit_max_rows, 1000, 1000000000, "1000000",
            "maximum rows of a tenant's audit log; the oldest are deleted"),
    SETTING("tenant-max-upload-bytes", SETTING_SIZE, tenant_max_upload_bytes, KIB, TIB, "1GiB",
            "maximum size of one share of a new tenant"),
    SETTING("tenant-profile-retention", SETTING_DURATION, tenant_profile_retention_s, 0,
            36500 * DAY, "0", "how long continuous profiles of a new tenant are kept; 0: for ever"),
    SETTING("tenant-samples-per-second", SETTING_COUNT,
            tenant_limits[TENANT_LIMIT_SAMPLES_PER_SECOND], 0, INT64_C(1000000000), "1000000",
            "maximum samples per second in the continuous profiles of one tenant, in the long run"),
    SETTING("tenant-samples-burst", SETTING_COUNT, tenant_limits[TENANT_LIMIT_SAMPLES_BURST], 1,
            INT64_C(1000000000), "20000000",
            "maximum samples in the continuous profiles of one tenant at once"),
    SETTING("tenant-active-series", SETTING_COUNT, tenant_limits[TENANT_LIMIT_ACTIVE_SERIES], 0,
            10000000, "100000", "maximum series of one tenant with a profile in the last hour"),
    SETTING("tenant-series-labels", SETTING_COUNT, tenant_limits[TENANT_LIMIT_SERIES_LABELS], 1, 64,
            "64", "maximum labels of one series"),
    SETTING("tenant-label-name-bytes", SETTING_SIZE, tenant_limits[TENANT_LIMIT_LABEL_NAME_BYTES],
            1, KIB, "1KiB", "maximum size of the name of a series' label"),
    SETTING("tenant-label-value-bytes", SETTING_SIZE, tenant_limits[TENANT_LIMIT_LABEL_VALUE_BYTES],
            1, 2 * KIB, "2KiB", "maximum size of the value of a series' label"),
    SETTING("tenant-profile-bytes", SETTING_SIZE, tenant_limits[TENANT_LIMIT_PROFILE_BYTES], KIB,
            64 * GIB, "256MiB",
            "maximum size, after decompression, of one continuous profile or one OTLP request"),
    SETTING(
        "tenant-string-bytes", SETTING_SIZE, tenant_limits[TENANT_LIMIT_STRING_BYTES], 256,
        KIB *KIB, "16KiB",
        "maximum size of one name or text in a continuous profile; longer ones are truncated and "
        "end in a hash"),
    SETTING("tenant-future", SETTING_DURATION, tenant_limits[TENANT_LIMIT_FUTURE_S], 0,
            100000 * DAY, "1d",
            "maximum time by which the start of a continuous profile may be ahead of this server's "
            "clock"),
    SETTING(
        "tenant-sample-labels", SETTING_TEXT, tenant_sample_labels, 0, 0, "",
        "comma-separated names of the sample labels that become series labels of delta profiles"),
    SETTING("tenant-query-cpu-time", SETTING_DURATION, tenant_limits[TENANT_LIMIT_QUERY_CPU_S], 1,
            3600, "20s", "maximum CPU time of one query of continuous profiles"),
    SETTING("tenant-query-time", SETTING_DURATION, tenant_limits[TENANT_LIMIT_QUERY_TIME_S], 1,
            3600, "60s", "maximum elapsed time of one query of continuous profiles"),
    SETTING("tenant-query-memory", SETTING_SIZE, tenant_limits[TENANT_LIMIT_QUERY_MEMORY_BYTES],
            KIB *KIB, TIB, "1GiB", "maximum memory of one query of continuous profiles"),
    SETTING("tenant-query-read-bytes", SETTING_SIZE, tenant_limits[TENANT_LIMIT_QUERY_READ_BYTES],
            1, 1024 * TIB, "64GiB", "maximum stored bytes that one query reads"),
    SETTING("tenant-rule-keep", SETTING_DURATION, tenant_limits[TENANT_LIMIT_RULE_KEEP_S], 0,
            36500 * DAY, "0",
            "maximum retention that a team's owner may set by a rule; 0: no maximum"),
    SETTING(
        "tenant-stored-profile-bytes", SETTING_SIZE,
        tenant_limits[TENANT_LIMIT_STORED_PROFILE_BYTES], 0, 1024 * TIB, "0",
        "maximum size of the continuous profiles of one tenant in the store, after which no more "
        "are accepted; 0: half of the disk, or in a bucket any size"),
    SETTING("debuginfod-urls", SETTING_TEXT, debuginfod_urls, 0, 0,
            "https://debuginfod.elfutils.org/,https://debuginfod.debian.net/,"
            "https://debuginfod.ubuntu.com/,https://debuginfod.fedoraproject.org/,"
            "https://debuginfod.archlinux.org/,https://debuginfod.opensuse.org/",
            "comma-separated servers from which debug files are fetched, unless a team chooses "
            "otherwise; they learn build ids; off: no server is contacted"),
    SETTING(
        "debuginfod-allow-host", SETTING_TEXT, debuginfod_allow_host, 0, 0, "",
        "comma-separated host or host:port of debuginfod servers that may be contacted over http "
        "and at addresses outside of the public Internet"),
    SETTING("debuginfod-ca-file", SETTING_TEXT, debuginfod_ca_file, 0, 0, "",
            "PEM file to trust for debuginfod servers instead of the system's authorities"),
    SETTING("debuginfod-max-bytes", SETTING_SIZE, debuginfod_max_bytes, KIB, TIB, "2GiB",
            "maximum size of one debug file that is fetched"),
    SETTING("debuginfod-cache-bytes", SETTING_SIZE, debuginfod_cache_bytes, 0, 1024 * TIB, "0",
            "maximum size of all symbol tables from debuginfod servers; the tables that have been "
            "unused for longest are deleted; 0: 10GiB, but at most a sixteenth of the disk unless "
            "objects are in a bucket"),
    SETTING("max-profile-bytes", SETTING_SIZE, max_profile_bytes, KIB, 64 * GIB, "512MiB",
            "maximum size of one profile after decompression"),
    SETTING("max-profile-samples", SETTING_COUNT, max_profile_samples, 1, INT64_C(4000000000),
            "8388608", "maximum samples in one profile"),
    SETTING("max-request-days", SETTING_NUMBER, max_request_days, 1, 100000, "64",
            "maximum days (UTC) on which the continuous profiles of one request may begin"),
    SETTING("max-expansion-ratio", SETTING_NUMBER, max_expansion_ratio, 10, 1000000, "200",
            "maximum ratio of the decompressed to the compressed size of a continuous profile that "
            "expands to more than 8MiB"),
    SETTING("max-share-expansion-ratio", SETTING_NUMBER, max_share_expansion_ratio, 10, 1000000,
            "1000", "maximum ratio of the decompressed to the compressed size of a shared profile"),
    SETTING(
        "max-heavy-memory", SETTING_SIZE, max_heavy_memory, 0, 64 * TIB, "0",
        "maximum memory of all large profiles together while they are decoded or reported; 0 is "
        "40 % of the host's memory beyond 384MiB, from 128MiB to 4GiB"),
    SETTING("max-query-memory", SETTING_SIZE, max_query_memory, 0, 64 * TIB, "0",
            "maximum memory of all queries of continuous profiles together; 0 is 15 % of the "
            "host's memory beyond 384MiB, from 64MiB to 4GiB"),
    SETTING("max-builder-memory", SETTING_SIZE, max_builder_memory, 0, 64 * TIB, "0",
            "maximum memory of the process that builds a symbol table, besides its input; 0 is an "
            "eighth of the host's, from 1GiB to 4GiB"),
    SETTING("max-merge-memory", SETTING_SIZE, max_merge_memory, 0, 64 * TIB, "0",
            "maximum memory of the stored blocks that a merge has open together; 0 is 5 % of "
            "the host's memory beyond 384MiB, from 32MiB to 512MiB"),
    SETTING("report-cpu-time", SETTING_SECONDS, report_cpu_time_s, 1, 3600, "20s",
            "maximum CPU time of one report; half of it without credentials, a quarter with rules, "
            "too"),
    SETTING("report-wait", SETTING_SECONDS, report_wait_s, 1, 3600, "30s",
            "time that a report waits for a worker before it gets 503"),
    SETTING(
        "profile-cache-bytes", SETTING_SIZE, profile_cache_bytes, 0, TIB, "0",
        "size of the cache of decoded profiles; 0 is 5 % of the host's memory beyond 384MiB, from "
        "16MiB to 256MiB"),
    SETTING("query-cache-bytes", SETTING_SIZE, query_cache_bytes, 0, TIB, "32MiB",
            "size of the cache of query results: half of it for merged profiles, half for complete "
            "reports; 0 "
            "disables it"),
    SETTING("block-cache-bytes", SETTING_SIZE, block_cache_bytes, 0, TIB, "0",
            "size of the cache of open blocks of continuous profiles, for queries and merges; 0 is "
            "4 % of the host's memory beyond 384MiB, from 16MiB to 256MiB"),
    SETTING("session-lifetime", SETTING_DURATION, session_lifetime_s, 60, 3650 * DAY, "30d",
            "lifetime of a sign-in in a browser"),
    SETTING("invitation-lifetime", SETTING_DURATION, invitation_lifetime_s, 60, 365 * DAY, "7d",
            "lifetime of an invitation link"),
    SETTING("upload-lifetime", SETTING_DURATION, upload_lifetime_s, 60, 365 * DAY, "1d",
            "lifetime of an unfinished upload in parts"),
};
const size_t settings_table_count = sizeof(settings_table) / sizeof(settings_table[0]);

const struct settings_table_renamed settings_table_renamed[] = {
    {"intake-threads", "ingest-threads"},
    {NULL, NULL},
};

const struct setting *settings_table_find(const char *name)
{
    for (size_t i = 0; settings_table_renamed[i].name; i++)
        if (strcmp(settings_table_renamed[i].old_name, name) == 0)
            name = settings_table_renamed[i].name;
    for (size_t i = 0; i < settings_table_count; i++)
        if (strcmp(settings_table[i].name, name) == 0)
            return &settings_table[i];
    return NULL;
}

void settings_table_variable(const char *name, char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "PERFOLIO_%s", name);
    for (char *at = text; *at; at++)
        *at = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
}

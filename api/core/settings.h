/*
 * settings: all settings of perfoliod, from flags, environment and one INI file.
 *
 * A flag overrides the environment, the environment the file, and the file the default. --data-dir
 * is PERFOLIO_DATA_DIR in the environment and data-dir in the section [server] of the file
 * (--config, or PERFOLIO_CONFIG). Switches take yes or no; sizes take KiB, MiB, GiB; durations take
 * s, m, h, d, w. Unknown names and values out of range are errors that state their source. Threads:
 * filled once at start, then only read. All texts belong to the struct (settings_fini).
 */
#ifndef API_CORE_SETTINGS_H
#define API_CORE_SETTINGS_H

#include "api/core/tenant_limit.h"
#include "lib/base/err_code.h"
#include "lib/base/log.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { SETTINGS_MAX_LISTEN = 8 };

/* Texts are never NULL; "" is unset. */
struct settings {
    char *config_file;
    char *data_dir;
    uint64_t min_free_bytes; /* api/core/disk.h; 0: depends on the size of the file system */
    char *listen[SETTINGS_MAX_LISTEN]; /* "host:port", "[::1]:port"; default localhost:7443 */
    int listen_count;
    char *public_url;   /* without "/" at its end; never empty once the server runs */
    char *database_url; /* of an external PostgreSQL; "" for the private cluster */
    char *s3_bucket;    /* "" for the folder D/objects */
    char *s3_endpoint;  /* "" for Amazon's endpoint of the region */
    char *s3_prefix;    /* prefix of all keys */
    char *s3_region;
    bool s3_path_style;
    char *s3_ca_file;          /* "" for the system's certificates */
    char *s3_credentials_file; /* "" for AWS_* of the environment */
    char *tls_cert;            /* PEM chain and key for the listener; "" for the local CA's leaf */
    char *tls_key;
    char *access_log; /* file, reopened on SIGHUP; "-" is standard error, "" is none */
    enum log_level log_level;

    int loop_threads;       /* for network I/O */
    int worker_threads;     /* for requests without threads of their own */
    int ingest_threads;     /* for requests of agents */
    int worker_queue;       /* requests that may wait for a worker; 503 beyond that */
    int jobs_interval_s;    /* pause between rounds of background work, unless work is left */
    int64_t scrub_period_s; /* api/ops/scrub.h; 0: no scrub */
    bool http2;
    bool trust_forwarded_for; /* behind a proxy: the last X-Forwarded-For is the client */
    int max_connections;
    int max_new_connections_per_address; /* per second; 0: api/server/http_server.h says it */
    int max_connections_per_address;  /* 0: depends on max_connections (api/server/http_server.h) */
    int reserved_connections;         /* 0: depends on max_connections */
    uint64_t max_buffered_bytes;      /* all request bodies together; the same for responses */
    int request_timeout_s;            /* for a whole request with its body, while bytes arrive */
    int idle_timeout_s;               /* without a byte: headers, body, keep-alive */
    int shutdown_timeout_s;           /* for requests in flight after SIGTERM */
    int database_connections;         /* for requests; background work has 5 more */
    bool public_metrics;              /* /metrics for everyone, otherwise for operators only */
    bool anonymous_sharing;           /* whether clients without an account may create shares */
    int passwords_per_minute;         /* per address */
    int anonymous_uploads_per_minute; /* per address */
    int anonymous_changes_per_minute; /* per address: api/identity/change_limit.h */
    uint64_t anonymous_max_upload_bytes;
    int64_t anonymous_expiry_s; /* after the last view, and the longest that a client may request */
    uint64_t anonymous_max_generated_bytes; /* of one generated file or report */
    uint64_t max_generated_bytes;           /* as above, for tokens and users */
    uint64_t anonymous_max_bytes;           /* stored by all anonymous shares together */
    uint64_t anonymous_max_daily_bytes;     /* stored by an address; 0: see the function below */
    uint64_t anonymous_max_announced_bytes; /* announced by an address and not yet sent */
    int64_t anonymous_upload_lifetime_s;    /* as upload_lifetime_s; the shorter one applies */
    uint64_t tenant_max_bytes;              /* quota of a tenant that has none of its own */
    int tenant_uploads_per_minute;
    int tenant_changes_per_minute;      /* api/identity/change_limit.h */
    int audit_max_rows;                 /* rows of a tenant's audit log that are kept */
    int64_t tenant_profile_retention_s; /* 0: for ever */
    uint64_t tenant_max_upload_bytes;
    char *tenant_sample_labels;                 /* api/core/sample_labels.h */
    uint64_t tenant_limits[TENANT_LIMIT_COUNT]; /* api/core/tenant_limit.h */
    uint64_t debuginfod_cache_bytes;            /* limit of all public symbol tables together */
    uint64_t max_profile_bytes;                 /* after decompression */
    uint64_t max_profile_samples;
    int max_request_days;          /* api/ingest/ingest_request.h */
    int max_expansion_ratio;       /* of continuous profiles; lib/base/compress.h */
    int max_share_expansion_ratio; /* of shares */
    char *debuginfod_urls;         /* comma-separated; "off": no server is ever contacted */
    char *debuginfod_allow_host;   /* comma-separated: "host" or "host:port" */
    char *debuginfod_ca_file;      /* "" for the system's certificates */
    uint64_t debuginfod_max_bytes; /* of one debug file */
    uint64_t max_builder_memory;   /* limit of one builder; 0: depends on the host's memory */
    uint64_t max_merge_memory; /* limit of a merge's open blocks; 0: depends on the host's memory */
    uint64_t max_query_memory; /* memory of all queries; 0: depends on the host's */
    uint64_t max_heavy_memory; /* for large profiles; 0: depends on the host's memory */
    int report_cpu_time_s;     /* CPU time of one report */
    int report_wait_s;         /* how long a report waits for a slot */
    uint64_t profile_cache_bytes; /* cached decoded profiles; 0: depends on the host's memory */
    uint64_t query_cache_bytes;   /* cached reports of queries */
    uint64_t block_cache_bytes;   /* open blocks of continuous profiles */
    int64_t session_lifetime_s;
    int64_t invitation_lifetime_s;
    int64_t upload_lifetime_s; /* of an unfinished upload in parts, since its last part */
};

/* Sets all settings to their defaults. */
void settings_init(struct settings *settings);
void settings_fini(struct settings *settings);

/*
 * Reads arguments (without program and subcommand), environment and file into initialised settings
 * and checks them together. *ret_wants_help is set by --help or -h, and then nothing else is
 * checked. Errors: ERR_INVALID, whose message names the flag, variable or file and line.
 */
enum err_code settings_load(struct settings *settings, int argument_count, char *const *arguments,
                            bool *ret_wants_help, struct err *err) MUST_USE;

/* One paragraph per setting, with default and environment name. */
void settings_print_help(FILE *file);
/* The bytes that one address may store in a day: a twentieth of left_bytes, what is left of the
 * quota of all anonymous shares, and at most anonymous_max_daily_bytes. */
uint64_t settings_anonymous_daily_bytes(const struct settings *settings, uint64_t left_bytes);

/* How long an unfinished anonymous upload lasts after its last part: the shorter of both settings.
 */
static inline int64_t settings_anonymous_upload_lifetime_s(const struct settings *settings)
{
    return settings->anonymous_upload_lifetime_s < settings->upload_lifetime_s
               ? settings->anonymous_upload_lifetime_s
               : settings->upload_lifetime_s;
}

/* Whether the server contacts debuginfod servers at all. */
bool settings_uses_debuginfod(const struct settings *settings);

/* All settings as NAME=value texts for the environment of a child process, so that it need not read
 * file or flags again; a NULL-terminated array, freed with settings_free_environment. Variables of
 * the present environment that are not PERFOLIO_* are kept. */
char **settings_to_environment(const struct settings *settings);
void settings_free_environment(char **environment);

#endif

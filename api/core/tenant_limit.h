/*
 * tenant_limit: the limits of a tenant. Each has a setting, which is its default
 * (api/core/settings.h); api/identity/tenant_limits.h reads those of one tenant.
 */
#ifndef API_CORE_TENANT_LIMIT_H
#define API_CORE_TENANT_LIMIT_H

enum tenant_limit {
    TENANT_LIMIT_SAMPLES_PER_SECOND,
    TENANT_LIMIT_SAMPLES_BURST,     /* that may arrive at once */
    TENANT_LIMIT_ACTIVE_SERIES,     /* with a profile in the last hour */
    TENANT_LIMIT_SERIES_LABELS,     /* of one series */
    TENANT_LIMIT_LABEL_NAME_BYTES,  /* of a series */
    TENANT_LIMIT_LABEL_VALUE_BYTES, /* likewise */
    TENANT_LIMIT_PROFILE_BYTES,     /* after decompression; for OTLP the whole request */
    TENANT_LIMIT_STRING_BYTES,      /* of a name or text in a profile; longer ones are cut */
    TENANT_LIMIT_FUTURE_S,          /* how far ahead of the server's clock a profile may begin */
    TENANT_LIMIT_QUERY_CPU_S,
    TENANT_LIMIT_QUERY_TIME_S, /* elapsed time */
    TENANT_LIMIT_QUERY_MEMORY_BYTES,
    TENANT_LIMIT_QUERY_READ_BYTES,
    TENANT_LIMIT_RULE_KEEP_S,          /* of a retention rule that the team sets itself; 0: any */
    TENANT_LIMIT_STORED_PROFILE_BYTES, /* of profiles in the store; 0: half of the disk */
    TENANT_LIMIT_COUNT
};

#endif

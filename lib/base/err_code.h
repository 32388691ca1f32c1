/*
 * err_code: the reasons why a function failed. Headers include this file, which rarely changes;
 * files that make or read errors include lib/base/err.h.
 */
#ifndef LIB_BASE_ERR_CODE_H
#define LIB_BASE_ERR_CODE_H

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

struct err;

enum err_code {
    ERR_NONE = 0,
    ERR_INVALID,     /* the input is wrong: malformed, out of range, contradictory */
    ERR_UNSUPPORTED, /* the input may be valid, but its format or feature is not supported */
    ERR_TOO_LARGE,   /* the input exceeds a limit of size, count or depth */
    ERR_NOT_FOUND,   /* does not exist, or the caller may not know that it exists */
    ERR_GONE,        /* existed, but has expired or was deleted */
    ERR_CONFLICT,    /* the current state does not allow it: exists already, changed meanwhile */
    ERR_STALE,       /* derived from a version that is no longer the latest */
    ERR_UNAUTHENTICATED, /* no credentials, or wrong ones */
    ERR_FORBIDDEN,       /* authenticated, but not allowed */
    ERR_RATE_LIMITED,    /* too many requests; retry_after_s is the time to wait */
    ERR_QUOTA,           /* a tenant's quota is used up */
    ERR_LIMIT,           /* the query costs more than its caller may spend */
    ERR_BUSY,            /* overloaded or starting; retry_after_s is the time to wait */
    ERR_TIMEOUT,         /* a deadline passed */
    ERR_CANCELLED,       /* the caller no longer waits for the result */
    ERR_CORRUPT,         /* stored data is damaged: a checksum or a consistency check failed */
    ERR_LOST,            /* stored data is missing although nothing has deleted it */
    ERR_IO,              /* an operation on a file or disk failed */
    ERR_DATABASE,        /* PostgreSQL cannot be reached or refused a statement */
    ERR_NETWORK,         /* a peer cannot be reached or violated the protocol */
    ERR_INTERNAL,        /* a state that a bug in Perfolio must have caused */
    ERR_CODE_COUNT
};

#endif

/*
 * err: the one error type of the code base.
 *
 * A function that can fail returns an enum err_code and fills a struct err that its caller owns.
 * A caller handles the codes that the function's header names; every other code goes up unchanged,
 * at most with words added in front (err_add). Texts are written for the person who will read them:
 * one sentence that says what is wrong and, where possible, what to do. They carry no secrets.
 *
 * Threads: a struct err belongs to the thread that uses it.
 */
#ifndef LIB_BASE_ERR_H
#define LIB_BASE_ERR_H

#include <stdbool.h>

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

enum { ERR_MESSAGE_BYTES = 512 };

enum err_code {
    ERR_NONE = 0,
    ERR_INVALID,         /* the input is wrong: malformed, out of range, contradictory */
    ERR_UNSUPPORTED,     /* the input may be right, but its format or feature is not known here */
    ERR_TOO_LARGE,       /* the input passes a limit of size, count or depth */
    ERR_NOT_FOUND,       /* no such thing, or none that the caller may know of */
    ERR_GONE,            /* it was there: expired or deleted */
    ERR_CONFLICT,        /* the state does not allow it: exists already, changed meanwhile */
    ERR_STALE,           /* made from a version that is no longer the latest */
    ERR_UNAUTHENTICATED, /* no credentials, or wrong ones */
    ERR_FORBIDDEN,       /* known, but not allowed */
    ERR_RATE_LIMITED,    /* too often; retry_after_s says when again */
    ERR_QUOTA,           /* a tenant's quota is used up */
    ERR_LIMIT,           /* the question costs more than its asker may spend */
    ERR_BUSY,            /* overloaded or starting; retry_after_s says when again */
    ERR_TIMEOUT,         /* a deadline passed */
    ERR_CANCELLED,       /* nobody waits for the result any more */
    ERR_CORRUPT,         /* stored data is damaged: it fails its checks */
    ERR_LOST,            /* stored data is missing, and nothing has deleted it */
    ERR_IO,              /* a file or the disk */
    ERR_DATABASE,        /* PostgreSQL unreachable or refusing */
    ERR_NETWORK,         /* a peer unreachable or breaking the protocol */
    ERR_INTERNAL,        /* a state that our own code should have made impossible */
    ERR_CODE_COUNT
};

struct err {
    enum err_code code;
    int retry_after_s;   /* > 0 with ERR_RATE_LIMITED, ERR_QUOTA and ERR_BUSY where it is known */
    bool is_disconnect;  /* with ERR_DATABASE: a connection in use broke; another may do better */
    bool is_unreadable;  /* with ERR_IO: it may be this object alone that cannot be read */
    bool is_rolled_back; /* with ERR_BUSY: the database ended it for another's sake; it may be done
                            again at once */
    /* For clients in place of the message, which has SQL, hosts or keys; a literal. NULL: none. */
    const char *public_text;
    bool is_final; /* with ERR_TOO_LARGE: more memory would not make it fit */
    char message[ERR_MESSAGE_BYTES];
};

/* Sets code and message (cut to fit) and returns code, so that one line fails: return err_set(…).
 */
enum err_code err_set(struct err *err, enum err_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* As err_set, and appends ": " and the text of errno. */
enum err_code err_set_errno(struct err *err, enum err_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Puts "text: " before the message, keeps the code and returns it. */
enum err_code err_add(struct err *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* The text that clients and users may read: public_text, or the message where there is none. */
const char *err_public_text(const struct err *err);

/* A stable lower-case word with dashes: "not-found". Used in logs and as the end of problem types.
 */
const char *err_code_name(enum err_code code);

#endif

/*
 * err: the error type of all modules. err_code.h lists the codes.
 *
 * A function that can fail returns an enum err_code and fills a struct err that its caller owns.
 * A function's header lists after "Errors:" the codes that the caller handles. The function may
 * return other codes as well; the caller returns these unchanged, at most with words added in front
 * of the message (err_add). Messages are written for the person who reads them: one sentence that
 * states what is wrong and, where possible, what to do. They contain no secrets.
 *
 * Threads: a struct err belongs to the thread that uses it.
 */
#ifndef LIB_BASE_ERR_H
#define LIB_BASE_ERR_H

#include "lib/base/err_code.h"

#include <stdbool.h>

enum { ERR_MESSAGE_BYTES = 512 };

struct err {
    enum err_code code;
    int retry_after_s;   /* > 0 with ERR_RATE_LIMITED, ERR_QUOTA, ERR_BUSY when it is known */
    bool is_disconnect;  /* with ERR_DATABASE: an open connection broke; another may work */
    bool is_unreadable;  /* with ERR_IO: possibly only this object is unreadable */
    bool is_rolled_back; /* with ERR_BUSY: PostgreSQL rolled the transaction back in favour of
                            another one (deadlock, serialization); it may be repeated at once */
    /* Shown to clients in place of a message that contains SQL, host names or keys; a literal.
     * NULL: the message may be shown. */
    const char *public_text;
    bool is_final; /* with ERR_TOO_LARGE: the input would not fit with more memory either */
    char message[ERR_MESSAGE_BYTES];
};

/* Sets code and message (truncated to fit) and returns code: return err_set(…). */
enum err_code err_set(struct err *err, enum err_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* As err_set, and appends ": " and the text of errno. */
enum err_code err_set_errno(struct err *err, enum err_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Puts "text: " in front of the message. Keeps and returns the code. */
enum err_code err_add(struct err *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* The text that clients and users may read: public_text, or the message if it is NULL. */
const char *err_public_text(const struct err *err);

/* A stable lower-case name with dashes, "not-found", for logs and the last part of problem
 * types. */
const char *err_code_name(enum err_code code);

#endif

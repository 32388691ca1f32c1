#include "lib/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const code_names[ERR_CODE_COUNT] = {
    [ERR_NONE] = "none",
    [ERR_INVALID] = "invalid",
    [ERR_UNSUPPORTED] = "unsupported",
    [ERR_TOO_LARGE] = "too-large",
    [ERR_NOT_FOUND] = "not-found",
    [ERR_GONE] = "gone",
    [ERR_CONFLICT] = "conflict",
    [ERR_STALE] = "stale",
    [ERR_UNAUTHENTICATED] = "unauthenticated",
    [ERR_FORBIDDEN] = "forbidden",
    [ERR_RATE_LIMITED] = "rate-limited",
    [ERR_QUOTA] = "quota",
    [ERR_LIMIT] = "limit",
    [ERR_BUSY] = "busy",
    [ERR_TIMEOUT] = "timeout",
    [ERR_CANCELLED] = "cancelled",
    [ERR_CORRUPT] = "damaged",
    [ERR_LOST] = "lost",
    [ERR_IO] = "io",
    [ERR_DATABASE] = "database",
    [ERR_NETWORK] = "network",
    [ERR_INTERNAL] = "internal",
};

enum err_code err_set(struct err *err, enum err_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(err->message, sizeof(err->message), format, arguments);
    va_end(arguments);
    err->code = code;
    err->retry_after_s = 0;
    err->is_disconnect = false;
    err->is_unreadable = false;
    err->is_rolled_back = false;
    err->is_final = false;
    err->public_text = NULL;
    return code;
}

enum err_code err_set_errno(struct err *err, enum err_code code, const char *format, ...)
{
    int saved_errno = errno;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(err->message, sizeof(err->message), format, arguments);
    va_end(arguments);
    size_t used = strlen(err->message);
    char text[128];
    snprintf(err->message + used, sizeof(err->message) - used, ": %s",
             strerror_r(saved_errno, text, sizeof(text)));
    err->code = code;
    err->retry_after_s = 0;
    err->is_disconnect = false;
    err->is_unreadable = false;
    err->is_rolled_back = false;
    err->is_final = false;
    err->public_text = NULL;
    return code;
}

enum err_code err_add(struct err *err, const char *format, ...)
{
    char prefix[ERR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(prefix, sizeof(prefix), format, arguments);
    va_end(arguments);
    if (size < 0)
        return err->code;
    char joined[ERR_MESSAGE_BYTES * 2 + 4];
    snprintf(joined, sizeof(joined), "%s: %s", prefix, err->message);
    joined[ERR_MESSAGE_BYTES - 1] = '\0';
    memcpy(err->message, joined, strlen(joined) + 1);
    return err->code;
}

const char *err_public_text(const struct err *err)
{
    return err->public_text ? err->public_text : err->message;
}

const char *err_code_name(enum err_code code)
{
    if ((unsigned)code >= ERR_CODE_COUNT)
        return "unknown";
    return code_names[code];
}

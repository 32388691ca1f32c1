#include "lib/io/s3_failure.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/io/s3_xml.h"

#include <stdio.h>
#include <string.h>

/* The body of an error: <Error><Code>…. */
struct failure {
    char code[64];
    char message[200];
    char region[64];
    bool is_error;
};

/* Copies what fits, printable ASCII only, since it goes to logs and terminals. */
static void copy_clean(char *text, size_t max, struct span from)
{
    size_t size = from.size < max - 1 ? from.size : max - 1;
    for (size_t i = 0; i < size; i++)
        text[i] = from.data[i] >= ' ' && from.data[i] <= '~' ? (char)from.data[i] : '?';
    text[size] = '\0';
}

static enum err_code read_element(void *context, const char *path, struct span text,
                                  struct err *err)
{
    struct failure *failure = context;
    (void)err;
    if (strcmp(path, "Error/Code") == 0)
        copy_clean(failure->code, sizeof(failure->code), text);
    else if (strcmp(path, "Error/Message") == 0)
        copy_clean(failure->message, sizeof(failure->message), text);
    else if (strcmp(path, "Error/Region") == 0)
        copy_clean(failure->region, sizeof(failure->region), text);
    else if (strcmp(path, "Error") == 0)
        failure->is_error = true;
    return ERR_NONE;
}

enum advice {
    ADVICE_NONE,
    ADVICE_ACCESS_KEY,
    ADVICE_SECRET_KEY,
    ADVICE_TOKEN,
    ADVICE_CLOCK,
    ADVICE_RIGHTS,
    ADVICE_BUCKET,
    ADVICE_REGION,
};

static const struct known {
    const char *name;
    enum err_code code;
    enum advice advice;
} known_failures[] = {
    {"NoSuchKey", ERR_NOT_FOUND, ADVICE_NONE},
    {"InvalidRange", ERR_CORRUPT, ADVICE_NONE},
    {"NoSuchUpload", ERR_GONE, ADVICE_NONE},
    {"NotImplemented", ERR_UNSUPPORTED, ADVICE_NONE},
    {"MethodNotAllowed", ERR_UNSUPPORTED, ADVICE_NONE},
    {"InternalError", ERR_BUSY, ADVICE_NONE},
    {"ServiceUnavailable", ERR_BUSY, ADVICE_NONE},
    {"SlowDown", ERR_BUSY, ADVICE_NONE},
    {"OperationAborted", ERR_BUSY, ADVICE_NONE},
    {"RequestTimeout", ERR_TIMEOUT, ADVICE_NONE},
    /* The body does not match its hash: it was damaged in transit, so a retry may succeed. */
    {"XAmzContentSHA256Mismatch", ERR_NETWORK, ADVICE_NONE},
    {"BadDigest", ERR_NETWORK, ADVICE_NONE},
    {"IncompleteBody", ERR_NETWORK, ADVICE_NONE},
    {"InvalidAccessKeyId", ERR_UNAUTHENTICATED, ADVICE_ACCESS_KEY},
    {"SignatureDoesNotMatch", ERR_UNAUTHENTICATED, ADVICE_SECRET_KEY},
    {"ExpiredToken", ERR_UNAUTHENTICATED, ADVICE_TOKEN},
    {"InvalidToken", ERR_UNAUTHENTICATED, ADVICE_TOKEN},
    {"TokenRefreshRequired", ERR_UNAUTHENTICATED, ADVICE_TOKEN},
    {"RequestTimeTooSkewed", ERR_UNAUTHENTICATED, ADVICE_CLOCK},
    {"AccessDenied", ERR_FORBIDDEN, ADVICE_RIGHTS},
    {"InvalidObjectState", ERR_FORBIDDEN, ADVICE_NONE}, /* it was moved to an archive */
    {"NoSuchBucket", ERR_INVALID, ADVICE_BUCKET},
    {"InvalidBucketName", ERR_INVALID, ADVICE_BUCKET},
    {"AuthorizationHeaderMalformed", ERR_INVALID, ADVICE_REGION},
    {"PermanentRedirect", ERR_INVALID, ADVICE_REGION},
    {"TemporaryRedirect", ERR_INVALID, ADVICE_REGION},
    {"IllegalLocationConstraintException", ERR_INVALID, ADVICE_REGION},
};

static const struct known *find_known(const char *name)
{
    static const struct known unknown = {"", ERR_IO, ADVICE_NONE};
    for (size_t i = 0; i < sizeof(known_failures) / sizeof(known_failures[0]); i++)
        if (strcmp(known_failures[i].name, name) == 0)
            return &known_failures[i];
    return &unknown;
}

enum err_code s3_failure_code(const char *name)
{
    return find_known(name)->code;
}

/* Derives a code from the status: responses to HEAD have no body, and proxies write their own. */
static enum err_code code_of_status(int status, bool is_head)
{
    switch (status) {
    case 404:
        /* A response without S3's body does not prove that the object is absent. */
        return is_head ? ERR_NOT_FOUND : ERR_NETWORK;
    case 408:
        return ERR_TIMEOUT;
    case 403:
        return ERR_FORBIDDEN;
    case 416:
        return ERR_CORRUPT;
    case 405:
    case 501:
        return ERR_UNSUPPORTED;
    case 429:
        return ERR_BUSY;
    default:
        return status >= 500 ? ERR_BUSY : status < 400 ? ERR_INVALID : ERR_IO;
    }
}

static void append_clock_advice(struct buf *text, const struct http_client_response *response)
{
    char here[CLOCK_TEXT_BYTES], there[64];
    copy_clean(there, sizeof(there), http_client_response_field(response, "Date"));
    buf_printf(text,
               "the clocks differ too much: here it is %s, at the server %s; set this machine's "
               "clock (NTP)",
               clock_format(clock_wall_ns(), here), there[0] ? there : "another time");
}

static void append_region_advice(struct buf *text, const struct s3_settings *settings,
                                 const struct failure *failure,
                                 const struct http_client_response *response)
{
    char region[64];
    copy_clean(region, sizeof(region), http_client_response_field(response, "x-amz-bucket-region"));
    const char *right = region[0] ? region : failure->region;
    if (right[0] && strcmp(right, settings->region) != 0)
        buf_printf(text, "the bucket is in the region %s, not %s; set the region to %s", right,
                   settings->region, right);
    else
        buf_printf(text,
                   "the bucket is to be reached elsewhere; check the endpoint and the region, "
                   "which is %s",
                   settings->region);
}

static void append_advice(struct buf *text, enum advice advice, const struct s3_settings *settings,
                          const struct s3_request *request, const struct failure *failure,
                          const struct http_client_response *response)
{
    switch (advice) {
    case ADVICE_ACCESS_KEY:
        buf_append_text(text, "the server does not know the access key; check it");
        break;
    case ADVICE_SECRET_KEY:
        buf_append_text(text, "the signature does not fit; check the secret key, and that no proxy "
                              "changes host or path");
        break;
    case ADVICE_TOKEN:
        buf_append_text(text, "the session token has expired or is wrong; get new credentials");
        break;
    case ADVICE_CLOCK:
        append_clock_advice(text, response);
        break;
    case ADVICE_RIGHTS:
        buf_printf(text,
                   "the access key may not %s there; allow it s3:ListBucket, s3:GetObject, "
                   "s3:PutObject, s3:DeleteObject, s3:ListBucketMultipartUploads and "
                   "s3:AbortMultipartUpload",
                   request->action);
        break;
    case ADVICE_BUCKET:
        buf_append_text(text, "there is no such bucket; create it or correct its name");
        break;
    case ADVICE_REGION:
        append_region_advice(text, settings, failure, response);
        break;
    case ADVICE_NONE:
        if (response->status < 200 || response->status > 299)
            buf_printf(text, "HTTP %d ", response->status);
        buf_printf(text, "%s%s%s", failure->code, failure->message[0] ? ": " : "",
                   failure->message);
        break;
    }
}

enum err_code s3_failure_describe(const struct s3_settings *settings,
                                  const struct s3_request *request,
                                  const struct http_client_response *response, struct err *err)
{
    struct failure failure = {0};
    struct err ignored;
    bool is_head = strcmp(request->method, "HEAD") == 0;
    if (s3_xml_read(buf_span(&response->body), read_element, &failure, &ignored) ||
        !failure.is_error)
        failure.code[0] = failure.message[0] = '\0';
    const struct known *known = find_known(failure.code);
    enum err_code code = known->code;
    bool is_success = response->status >= 200 && response->status <= 299;
    if (!failure.code[0])
        code = is_success ? ERR_NETWORK : code_of_status(response->status, is_head);
    else if (code == ERR_IO && (response->status >= 500 || response->status == 429))
        code = code_of_status(response->status, is_head);
    enum advice advice = !failure.code[0] && response->status >= 300 && response->status < 400
                             ? ADVICE_REGION
                             : known->advice;
    buf_auto advice_text;
    buf_init(&advice_text, ERR_MESSAGE_BYTES);
    append_advice(&advice_text, advice, settings, request, &failure, response);
    err_set(err, code, "cannot %s %s%s%sbucket %s of %s: %.*s", request->action,
            request->key ? settings->prefix : "", request->key ? request->key : "",
            request->key ? " in " : "", settings->bucket, settings->host,
            SPAN_PRINT(buf_span(&advice_text)));
    if (code == ERR_BUSY)
        err->retry_after_s = response->retry_after_s;
    return code;
}

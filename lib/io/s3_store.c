#include "lib/io/s3_store.h"

#include "lib/base/err.h"

/* Messages contain the endpoint, the bucket and keys, which are for the operator's log only. */
static const char *public_text_for(enum err_code code)
{
    switch ((int)code) {
    case ERR_UNAUTHENTICATED:
    case ERR_FORBIDDEN:
        return "the object store refused the credentials of the server";
    case ERR_NOT_FOUND:
        return "there is no such object in the object store";
    case ERR_TOO_LARGE:
        return "the object is larger than is allowed here";
    case ERR_CORRUPT:
        return NULL; /* the code is specific enough */
    case ERR_CANCELLED:
        return "the object store took too long; try again";
    case ERR_BUSY:
    case ERR_NETWORK:
    case ERR_TIMEOUT:
        return "the object store does not respond as it should; try again in a few seconds";
    default:
        return "the object store cannot be used as it is set up";
    }
}

enum err_code s3_store_outward(const struct s3_store *store, enum err_code code, struct err *err)
{
    if (!code || store->is_opening)
        return code;
    err->public_text = public_text_for(code);
    switch ((int)code) {
    case ERR_BUSY:
    case ERR_NETWORK:
    case ERR_TIMEOUT:
        err->code = ERR_BUSY;
        return ERR_BUSY;
    case ERR_INVALID:
    case ERR_UNSUPPORTED:
    case ERR_GONE:
    case ERR_UNAUTHENTICATED:
    case ERR_FORBIDDEN:
        err->code = ERR_IO;
        return ERR_IO;
    default:
        return code;
    }
}

enum err_code s3_store_write_outward(struct s3_store *store, enum err_code code, struct err *err)
{
    atomic_store(&store->has_failed_to_write, code != ERR_NONE);
    code = s3_store_outward(store, code, err);
    if (code == ERR_NOT_FOUND || code == ERR_CORRUPT)
        code = err->code = ERR_IO;
    return code;
}

enum err_code s3_store_check_etag(void *context, const struct http_client_response *response,
                                  struct err *err)
{
    (void)context;
    const struct span etag = http_client_response_field(response, "ETag");
    if (etag.size > 0 && etag.size <= S3_STORE_ETAG_MAX_BYTES)
        return ERR_NONE;
    return err_set(err, ERR_NETWORK,
                   "the response of status %d has no ETag: it is not of an S3 server; check the "
                   "endpoint and proxies",
                   response->status);
}

enum err_code s3_store_put(struct s3_store *store, const char *key, struct span bytes,
                           struct err *err)
{
    struct s3_request request;
    http_client_response_auto response;
    http_client_response_init(&response);
    s3_request_init(&request, "put", "PUT", key);
    request.body = bytes;
    request.check = s3_store_check_etag;
    return s3_client_send(store->client, &request, &response, err);
}

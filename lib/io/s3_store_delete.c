#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/io/s3_failure.h"
#include "lib/io/s3_store.h"
#include "lib/io/s3_xml.h"

#include <stdio.h>

enum { BATCH_KEYS = 1000, BATCH_MAX_BYTES = 2 << 20, RESPONSE_MAX_BYTES = 4 << 20 };

/* The response to a deletion has no body; the page of a proxy has one. */
static enum err_code check_deleted(void *context, const struct http_client_response *response,
                                   struct err *err)
{
    (void)context;
    if (response->response_bytes == 0)
        return ERR_NONE;
    return err_set(err, ERR_NETWORK,
                   "the response of status %d to a deletion is not of an S3 server; check the "
                   "endpoint and proxies",
                   response->status);
}

static enum err_code delete_one(struct s3_store *store, const char *key, struct err *err)
{
    struct s3_request request;
    http_client_response_auto response;
    http_client_response_init(&response);
    s3_request_init(&request, "delete", "DELETE", key);
    request.check = check_deleted;
    enum err_code code = s3_client_send(store->client, &request, &response, err);
    return code == ERR_NOT_FOUND ? ERR_NONE : code;
}

/* The response to DeleteObjects; in quiet mode it lists only the keys that failed. */
struct deletion {
    bool is_whole;
    enum err_code worst;
    char code[64];
};

static enum err_code read_deletion(void *context, const char *path, struct span text,
                                   struct err *err)
{
    struct deletion *deletion = context;
    (void)err;
    if (strcmp(path, "DeleteResult") == 0) {
        deletion->is_whole = true;
    } else if (strcmp(path, "DeleteResult/Error/Code") == 0) {
        char name[64];
        snprintf(name, sizeof(name), "%.*s", SPAN_PRINT(text));
        enum err_code code = s3_failure_code(name);
        bool is_worse = code != ERR_NOT_FOUND && deletion->worst != ERR_IO;
        if (is_worse) {
            deletion->worst = code == ERR_BUSY ? ERR_BUSY : ERR_IO;
            memcpy(deletion->code, name, sizeof(name));
        }
    }
    return ERR_NONE;
}

static enum err_code check_deletion(void *context, const struct http_client_response *response,
                                    struct err *err)
{
    (void)context;
    struct deletion deletion = {.worst = ERR_NONE};
    if (s3_xml_read(buf_span(&response->body), read_deletion, &deletion, err) || !deletion.is_whole)
        return err_set(err, ERR_NETWORK, "the S3 server does not state which objects it deleted");
    if (deletion.worst)
        return err_set(err, deletion.worst, "the S3 server did not delete all objects: %s",
                       deletion.code);
    return ERR_NONE;
}

static enum err_code delete_batch(struct s3_store *store, const char *const *keys, size_t count,
                                  struct err *err)
{
    struct s3_request request;
    http_client_response_auto response;
    buf_auto body;
    http_client_response_init(&response);
    buf_init(&body, BATCH_MAX_BYTES);
    buf_append_text(&body, "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
                           "<Quiet>true</Quiet>");
    for (size_t i = 0; i < count; i++) /* prefixes and keys need no escaping in XML */
        buf_printf(&body, "<Object><Key>%s%s</Key></Object>", s3_client_prefix(store->client),
                   keys[i]);
    buf_append_text(&body, "</Delete>");
    if (buf_failed(&body))
        return err_set(err, ERR_INTERNAL, "a thousand keys are too long");
    uint8_t hash[DIGEST_MD5_BYTES];
    char md5[4 * ((DIGEST_MD5_BYTES + 2) / 3) + 1];
    digest_md5(buf_span(&body), hash);
    digest_base64(span_of(hash, sizeof(hash)), md5);
    s3_request_init(&request, "delete objects", "POST", NULL);
    request.query = "delete=";
    request.body = buf_span(&body);
    request.content_md5 = md5;
    request.max_response_bytes = RESPONSE_MAX_BYTES;
    request.check = check_deletion;
    return s3_client_send(store->client, &request, &response, err);
}

enum err_code s3_store_delete_many(struct object_store *base, const char *const *keys, size_t count,
                                   struct err *err)
{
    struct s3_store *store = s3_store_of(base);
    enum err_code code = ERR_NONE;
    bool has_batches = count > 1;
    for (size_t done = 0, size; !code && done < count; done += size) {
        size = !has_batches ? 1 : count - done < BATCH_KEYS ? count - done : BATCH_KEYS;
        code = has_batches ? delete_batch(store, keys + done, size, err)
                           : delete_one(store, keys[done], err);
        if (has_batches && code == ERR_UNSUPPORTED) { /* some servers have no multi-delete */
            has_batches = false;
            code = ERR_NONE;
            size = 0;
        }
    }
    return s3_store_outward(store, code, err);
}

#include "lib/io/s3_writer.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/io/s3_xml.h"

#include <stdio.h>

enum {
    PART_BYTES = 8 << 20,
    MAX_PARTS = 10000, /* S3's limit */
    UPLOAD_ID_BYTES = 1024,
    PARTS_MAX_BYTES = 4 << 20, /* the list of parts: about 120 bytes each */
};

struct s3_writer {
    struct object_writer base;
    int64_t start_ns; /* monotonic */
    uint64_t size;
    struct buf part;
    int part_count;
    struct buf parts_xml;            /* of the parts that were sent */
    char upload_id[UPLOAD_ID_BYTES]; /* "" while everything fits into one part */
    bool has_failed;
    char key[OBJECT_KEY_MAX_BYTES + 1];
};

static struct s3_writer *writer_of(struct object_writer *writer)
{
    return (struct s3_writer *)writer;
}

enum err_code s3_writer_open(struct object_store *store, const char *key,
                             struct object_writer **ret_writer, struct err *err)
{
    (void)err;
    struct s3_writer *writer = mem_new(struct s3_writer, 1);
    writer->base.store = store;
    writer->start_ns = clock_monotonic_ns();
    snprintf(writer->key, sizeof(writer->key), "%s", key);
    buf_init(&writer->part, PART_BYTES);
    buf_init(&writer->parts_xml, PARTS_MAX_BYTES);
    *ret_writer = &writer->base;
    return ERR_NONE;
}

static enum err_code read_upload_id(void *context, const char *path, struct span text,
                                    struct err *err)
{
    (void)err;
    if (strcmp(path, "InitiateMultipartUploadResult/UploadId") == 0 && text.size < UPLOAD_ID_BYTES)
        snprintf(context, UPLOAD_ID_BYTES, "%.*s", SPAN_PRINT(text));
    return ERR_NONE;
}

/* Reads the id of the upload. A response without one is retried; a superfluous upload is swept
 * later. */
static enum err_code check_started(void *context, const struct http_client_response *response,
                                   struct err *err)
{
    char *upload_id = context;
    upload_id[0] = '\0';
    enum err_code code = s3_xml_read(buf_span(&response->body), read_upload_id, upload_id, err);
    if (code || !upload_id[0])
        return err_set(err, ERR_NETWORK, "the S3 server started an upload without an id");
    return ERR_NONE;
}

static enum err_code start_upload(struct s3_writer *writer, struct err *err)
{
    struct s3_request request;
    http_client_response_auto response;
    http_client_response_init(&response);
    s3_request_init(&request, "put", "POST", writer->key);
    request.query = "uploads=";
    request.check = check_started;
    request.check_context = writer->upload_id;
    return s3_client_send(s3_store_of(writer->base.store)->client, &request, &response, err);
}

static void write_upload_query(struct buf *query, int part_number, const char *upload_id)
{
    if (part_number)
        buf_printf(query, "partNumber=%d&", part_number);
    buf_append_text(query, "uploadId=");
    buf_append_url(query, span_text(upload_id));
    buf_append_byte(query, 0);
}

static enum err_code check_age(const struct s3_writer *writer, struct err *err)
{
    /* After that, another node's sweep may take the upload for abandoned. */
    if (clock_monotonic_ns() - writer->start_ns <
        s3_store_of(writer->base.store)->upload_max_age_ns)
        return ERR_NONE;
    return err_set(err, ERR_TIMEOUT, "writing object %s took too long", writer->key);
}

static enum err_code send_part(struct s3_writer *writer, struct err *err)
{
    struct s3_request request;
    http_client_response_auto response;
    buf_auto query;
    http_client_response_init(&response);
    buf_init(&query, 4 * UPLOAD_ID_BYTES);
    enum err_code code = check_age(writer, err);
    if (code)
        return code;
    if (writer->part_count == MAX_PARTS)
        return err_set(err, ERR_TOO_LARGE, "object %s has more than %d parts of %d MiB",
                       writer->key, MAX_PARTS, PART_BYTES >> 20);
    code = writer->upload_id[0] ? ERR_NONE : start_upload(writer, err);
    if (code)
        return code;
    write_upload_query(&query, writer->part_count + 1, writer->upload_id);
    s3_request_init(&request, "put", "PUT", writer->key);
    request.query = (const char *)query.data;
    request.body = buf_span(&writer->part);
    request.check = s3_store_check_etag;
    code = s3_client_send(s3_store_of(writer->base.store)->client, &request, &response, err);
    if (code)
        return code;
    writer->part_count++;
    buf_append_text(&writer->parts_xml, "<Part><ETag>");
    buf_append_html(&writer->parts_xml, http_client_response_field(&response, "ETag"));
    buf_printf(&writer->parts_xml, "</ETag><PartNumber>%d</PartNumber></Part>", writer->part_count);
    buf_clear(&writer->part);
    return ERR_NONE;
}

/* Sends a part only when a byte after it arrives, so that an object that fits into one part
 * needs one request. */
enum err_code s3_writer_append(struct object_writer *base, struct span bytes, struct err *err)
{
    struct s3_writer *writer = writer_of(base);
    while (bytes.size && !writer->has_failed) {
        if (writer->part.size == PART_BYTES) {
            enum err_code code = send_part(writer, err);
            if (code) {
                writer->has_failed = true;
                return s3_store_write_outward(s3_store_of(base->store), code, err);
            }
        }
        size_t space = PART_BYTES - writer->part.size;
        size_t size = bytes.size < space ? bytes.size : space;
        buf_append(&writer->part, bytes.data, size);
        writer->size += size;
        bytes = span_of(bytes.data + size, bytes.size - size);
    }
    if (writer->has_failed)
        return err_set(err, ERR_IO, "writing object %s has failed before", writer->key);
    return ERR_NONE;
}

/* A response with status 200 may contain an error: S3 starts to respond before it has joined the
 * parts. */
static enum err_code read_completed(void *context, const char *path, struct span text,
                                    struct err *err)
{
    (void)text, (void)err;
    if (strcmp(path, "CompleteMultipartUploadResult") == 0)
        *(bool *)context = true;
    return ERR_NONE;
}

struct completion {
    const struct s3_client *client;
    const struct s3_request *request;
};

static enum err_code check_completed(void *context, const struct http_client_response *response,
                                     struct err *err)
{
    const struct completion *completion = context;
    bool is_complete = false;
    struct err ignored;
    if (!s3_xml_read(buf_span(&response->body), read_completed, &is_complete, &ignored) &&
        is_complete)
        return ERR_NONE;
    return s3_client_failure(completion->client, completion->request, response, err);
}

static enum err_code check_size(void *context, const struct http_client_response *response,
                                struct err *err)
{
    uint64_t size;
    const enum err_code code = s3_store_check_etag(NULL, response, err);
    if (code)
        return code;
    if (span_parse_u64(http_client_response_field(response, "Content-Length"), &size) &&
        size == *(const uint64_t *)context)
        return ERR_NONE;
    return err_set(err, ERR_IO, "a joined object has another size than its parts");
}

/* Checks whether an attempt whose response was lost has completed the upload. Keys are never
 * reused, so an object with this key and size is this one. */
static enum err_code find_completed_object(struct s3_writer *writer, struct err *err)
{
    struct s3_request request;
    http_client_response_auto response;
    http_client_response_init(&response);
    s3_request_init(&request, "look at", "HEAD", writer->key);
    request.check = check_size;
    request.check_context = &writer->size;
    return s3_client_send(s3_store_of(writer->base.store)->client, &request, &response, err);
}

static enum err_code complete_upload(struct s3_writer *writer, struct err *err)
{
    struct s3_client *client = s3_store_of(writer->base.store)->client;
    struct s3_request request;
    struct completion completion = {.client = client, .request = &request};
    http_client_response_auto response;
    buf_auto query, body;
    http_client_response_init(&response);
    buf_init(&query, 4 * UPLOAD_ID_BYTES);
    buf_init(&body, PARTS_MAX_BYTES + 1024);
    write_upload_query(&query, 0, writer->upload_id);
    buf_append_text(&body, "<CompleteMultipartUpload "
                           "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    buf_append_span(&body, buf_span(&writer->parts_xml));
    buf_append_text(&body, "</CompleteMultipartUpload>");
    if (buf_failed(&writer->parts_xml) || buf_failed(&body))
        return err_set(err, ERR_TOO_LARGE, "the parts of object %s are too many", writer->key);
    s3_request_init(&request, "put", "POST", writer->key);
    request.query = (const char *)query.data;
    request.body = buf_span(&body);
    request.may_trickle = true;
    request.check = check_completed;
    request.check_context = &completion;
    enum err_code code = s3_client_send(client, &request, &response, err);
    return code == ERR_GONE ? find_completed_object(writer, err) : code;
}

enum err_code s3_writer_commit(struct object_writer *base, struct err *err)
{
    struct s3_writer *writer = writer_of(base);
    enum err_code code = ERR_NONE;
    if (writer->has_failed)
        code = err_set(err, ERR_IO, "writing object %s has failed before", writer->key);
    else if (!writer->upload_id[0])
        code = s3_store_put(s3_store_of(base->store), writer->key, buf_span(&writer->part), err);
    else
        code = send_part(writer, err);
    if (!code && writer->upload_id[0])
        code = complete_upload(writer, err);
    if (!code)
        writer->upload_id[0] = '\0'; /* there is no upload to abort any more */
    struct s3_store *store = s3_store_of(base->store);
    s3_writer_abort(base);
    return s3_store_write_outward(store, code, err);
}

enum err_code s3_writer_abort_upload(struct s3_store *store, const char *key, const char *upload_id,
                                     struct err *err)
{
    struct s3_request request;
    http_client_response_auto response;
    buf_auto query;
    http_client_response_init(&response);
    buf_init(&query, 4 * UPLOAD_ID_BYTES);
    write_upload_query(&query, 0, upload_id);
    s3_request_init(&request, "abort an upload of", "DELETE", key);
    request.query = (const char *)query.data;
    enum err_code code = s3_client_send(store->client, &request, &response, err);
    return code == ERR_GONE || code == ERR_NOT_FOUND ? ERR_NONE : code;
}

/* Aborts the upload; if that fails, it is swept later. */
static void discard_upload(const struct s3_writer *writer)
{
    struct err ignored;
    if (s3_writer_abort_upload(s3_store_of(writer->base.store), writer->key, writer->upload_id,
                               &ignored))
        return;
}

void s3_writer_abort(struct object_writer *base)
{
    struct s3_writer *writer = writer_of(base);
    if (writer->upload_id[0])
        discard_upload(writer);
    buf_fini(&writer->part);
    buf_fini(&writer->parts_xml);
    mem_free(writer);
}

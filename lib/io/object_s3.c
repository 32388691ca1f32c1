#include "lib/io/object_s3.h"

#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/io/s3_store.h"
#include "lib/io/s3_writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    /* larger objects are sent in parts, each of which is retried separately */
    SINGLE_PUT_MAX_BYTES = 64 << 20,
    DEFAULT_UPLOAD_MAX_AGE_S = 86400,
    OPENING_RETRY_MS = 3000, /* an operator who starts a server needs a quick result */
    PROBE_BYTES = 64,
    CHECK_MS = 1900, /* of object_store_check, leaving time for the network */
    NO_SPACE_RETRY_S = 60,
};
#define DEFAULT_OPEN_MAX_BYTES (UINT64_C(1) << 30)

/* For reads: the permission may be missing for one object only. */
static enum err_code read_outward(const struct s3_store *store, enum err_code code, struct err *err)
{
    const bool is_unreadable = code == ERR_FORBIDDEN;
    code = s3_store_outward(store, code, err);
    err->is_unreadable = is_unreadable;
    return code;
}

static enum err_code s3_put(struct object_store *base, const char *key, struct span bytes,
                            struct err *err)
{
    struct s3_store *store = s3_store_of(base);
    if (bytes.size <= SINGLE_PUT_MAX_BYTES) {
        const enum err_code code = s3_store_put(store, key, bytes, err);
        return s3_store_write_outward(store, code, err);
    }
    struct object_writer *writer;
    enum err_code code = s3_writer_open(base, key, &writer, err);
    if (code)
        return code;
    code = s3_writer_append(writer, bytes, err);
    if (!code)
        return s3_writer_commit(writer, err);
    s3_writer_abort(writer);
    return code;
}

/* Checks that the body has the length that the server announced: a response that ends with its
 * connection could be truncated. */
static enum err_code check_length(void *context, const struct http_client_response *response,
                                  struct err *err)
{
    uint64_t size;
    const enum err_code code = s3_store_check_etag(context, response, err);
    if (code)
        return code;
    if (response->status == 200 &&
        span_parse_u64(http_client_response_field(response, "Content-Length"), &size) &&
        size == response->response_bytes)
        return ERR_NONE;
    return err_set(err, ERR_NETWORK, "the S3 server does not state the length of an object");
}

static enum err_code s3_open(struct object_store *base, const char *key,
                             const struct wait_limit *wait_limit, bool is_background, int *ret_fd,
                             uint64_t *ret_size, struct err *err)
{
    struct s3_store *store = s3_store_of(base);
    struct s3_request request;
    http_client_response_auto response;
    char path[512];
    http_client_response_init(&response);
    if (snprintf(path, sizeof(path), "%s/perfolio-object-XXXXXX", store->temporary_folder) >=
        (int)sizeof(path))
        return err_set(err, ERR_IO, "the temporary folder's name is too long");
    fd_auto fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0 || unlink(path) != 0)
        return err_set_errno(err, ERR_IO, "cannot create a temporary file in %s",
                             store->temporary_folder);
    s3_request_init(&request, "read", "GET", key);
    request.max_response_bytes = store->open_max_bytes;
    request.response_fd = fd;
    request.check = check_length;
    request.wait_limit = wait_limit;
    request.has_space = store->has_space;
    request.has_space_context = store->has_space_context;
    request.is_background = is_background;
    enum err_code code = s3_client_send(store->client, &request, &response, err);
    if (code == ERR_LIMIT) {
        err->code = ERR_BUSY;
        err->retry_after_s = NO_SPACE_RETRY_S;
        return ERR_BUSY;
    }
    if (!code && lseek(fd, 0, SEEK_SET) != 0)
        code = err_set_errno(err, ERR_IO, "reading the copy of object %s", key);
    if (code)
        return read_outward(store, code, err);
    *ret_fd = fd;
    *ret_size = response.response_bytes;
    fd = -1;
    return ERR_NONE;
}

/* Whether the response is a whole object larger than the caller allows. A range has exactly the
 * requested bytes, so more of them are an error of the server. */
static bool is_larger_object(const struct s3_request *request,
                             const struct http_client_response *response)
{
    struct err ignored;
    return response->was_too_large && !request->range_size && response->status == 200 &&
           !s3_store_check_etag(NULL, response, &ignored);
}

static enum err_code fail_larger_object(const char *key, struct err *err)
{
    return err_set(err, ERR_TOO_LARGE, "object %s is larger than is allowed here", key);
}

/* Sends a GET and appends its body to buf. */
static enum err_code read_into(struct s3_store *store, struct s3_request *request, struct buf *buf,
                               struct err *err)
{
    http_client_response_auto response;
    http_client_response_init(&response);
    enum err_code code = s3_client_send(store->client, request, &response, err);
    if (code && is_larger_object(request, &response))
        code = fail_larger_object(request->key, err);
    if (code)
        return read_outward(store, code, err);
    uint8_t *space = buf_reserve(buf, response.body.size);
    if (!space)
        return fail_larger_object(request->key, err);
    memcpy(space, response.body.data, response.body.size);
    buf_commit(buf, response.body.size);
    return ERR_NONE;
}

static enum err_code s3_read(struct object_store *base, const char *key, struct buf *buf,
                             struct err *err)
{
    struct s3_request request;
    s3_request_init(&request, "read", "GET", key);
    request.max_response_bytes = buf->max_size - buf->size;
    request.check = check_length;
    return read_into(s3_store_of(base), &request, buf, err);
}

/* Content-Range, "bytes 5-9/100", must be exactly the requested range; less means that the
 * object ends before. */
static enum err_code check_range(void *context, const struct http_client_response *response,
                                 struct err *err)
{
    const struct s3_request *request = context;
    uint64_t last = request->range_offset + request->range_size - 1;
    char expected[64];
    struct span range, total, first, rest;
    const enum err_code code = s3_store_check_etag(NULL, response, err);
    if (code)
        return code;
    span_split(http_client_response_field(response, "Content-Range"), '/', &range, &total);
    snprintf(expected, sizeof(expected), "bytes %llu-%llu",
             (unsigned long long)request->range_offset, (unsigned long long)last);
    if (response->status == 206 && span_equal_text(range, expected) &&
        response->response_bytes == request->range_size)
        return ERR_NONE;
    uint64_t got_last;
    bool is_range = span_split(range, '-', &first, &rest) && span_parse_u64(rest, &got_last);
    if (response->status == 206 && is_range && got_last < last)
        return err_set(err, ERR_CORRUPT, "object %s ends before the bytes wanted of it",
                       request->key);
    return err_set(err, ERR_NETWORK,
                   "the S3 server returned other bytes of object %s than requested", request->key);
}

static enum err_code s3_read_range(struct object_store *base, const char *key, uint64_t offset,
                                   size_t size, const struct wait_limit *wait_limit,
                                   struct buf *buf, struct err *err)
{
    struct s3_request request;
    if (size > buf->max_size - buf->size)
        return err_set(err, ERR_TOO_LARGE, "%zu bytes of object %s are more than is allowed here",
                       size, key);
    s3_request_init(&request, "read", "GET", key);
    request.range_offset = offset;
    request.range_size = size;
    request.max_response_bytes = size;
    request.check = check_range;
    request.check_context = &request;
    request.wait_limit = wait_limit;
    return read_into(s3_store_of(base), &request, buf, err);
}

static enum err_code s3_probe(struct object_store *base, const char *key,
                              const struct wait_limit *wait_limit, struct err *err)
{
    buf_auto byte;
    buf_init(&byte, 1);
    return s3_read_range(base, key, 0, 1, wait_limit, &byte, err);
}

/* The key of the watch's probes; no object has it. */
static const char check_key[] = "perfolio-watch";

static int64_t left_ms(int64_t deadline_ns)
{
    const int64_t left_ns = deadline_ns - clock_monotonic_ns();
    return left_ns > CLOCK_NS_PER_MS ? left_ns / CLOCK_NS_PER_MS : 1;
}

static enum err_code check_send(struct s3_store *store, struct s3_request *request,
                                int64_t deadline_ns, struct err *err)
{
    http_client_response_auto response;
    http_client_response_init(&response);
    request->has_one_try = true;
    request->deadline_ms = left_ms(deadline_ns);
    return s3_client_send(store->client, request, &response, err);
}

/* Tests a write after one has failed, for example because the credentials are read-only. */
static enum err_code check_write(struct s3_store *store, int64_t deadline_ns, struct err *err)
{
    struct s3_request request;
    struct err ignored;
    s3_request_init(&request, "put", "PUT", check_key);
    request.body = SPAN_LITERAL("perfolio\n");
    request.check = s3_store_check_etag;
    const enum err_code code = check_send(store, &request, deadline_ns, err);
    if (code)
        return code;
    atomic_store(&store->has_failed_to_write, false);
    s3_request_init(&request, "delete", "DELETE", check_key);
    (void)!check_send(store, &request, deadline_ns, &ignored);
    return ERR_NONE;
}

static enum err_code s3_check(struct object_store *base, const char *key, struct err *err)
{
    struct s3_store *store = s3_store_of(base);
    struct s3_request request;
    const int64_t learnt_ms = s3_client_deadline_ms(store->client);
    const int64_t check_ms = learnt_ms > CHECK_MS ? learnt_ms : CHECK_MS;
    const int64_t deadline_ns = clock_monotonic_ns() + check_ms * CLOCK_NS_PER_MS;
    s3_request_init(&request, "read", "GET", key);
    request.range_size = 1;
    request.max_response_bytes = 1;
    request.check = check_range;
    request.check_context = &request;
    enum err_code code = check_send(store, &request, deadline_ns, err);
    if (!code && atomic_load(&store->has_failed_to_write))
        code = check_write(store, deadline_ns, err);
    return s3_store_outward(store, code, err);
}

static void s3_close(struct object_store *base)
{
    struct s3_store *store = s3_store_of(base);
    s3_client_destroy(store->client);
    mem_free(store->temporary_folder);
    mem_free(store);
}

static bool s3_is_responding(const struct object_store *base)
{
    return s3_client_is_responding(((const struct s3_store *)base)->client);
}

static const struct object_backend s3_backend = {
    .makes_copies = true,
    .close = s3_close,
    .put = s3_put,
    .writer_open = s3_writer_open,
    .writer_append = s3_writer_append,
    .writer_commit = s3_writer_commit,
    .writer_abort = s3_writer_abort,
    .open = s3_open,
    .read = s3_read,
    .read_range = s3_read_range,
    .probe = s3_probe,
    .check = s3_check,
    .delete_many = s3_store_delete_many,
    .list = s3_store_list,
    .sweep = s3_store_sweep,
    .is_responding = s3_is_responding,
};

static enum err_code count_probe(void *context, const char *key, uint64_t size, int64_t modified_ns,
                                 struct err *err)
{
    (void)key, (void)modified_ns, (void)err;
    *(size_t *)context += size == PROBE_BYTES;
    return ERR_NONE;
}

static enum err_code read_probe(struct object_store *store, const char *key, struct span bytes,
                                struct err *err)
{
    buf_auto whole, part;
    buf_init(&whole, PROBE_BYTES);
    buf_init(&part, PROBE_BYTES);
    enum err_code code = object_read(store, key, &whole, err);
    if (!code)
        code = object_read_range(store, key, 1, PROBE_BYTES - 2, &part, err);
    if (code)
        return code;
    if (!span_equal(buf_span(&whole), bytes) ||
        !span_equal(buf_span(&part), span_of(bytes.data + 1, PROBE_BYTES - 2)))
        return err_set(err, ERR_IO, "the S3 server returned other bytes than were put");
    return ERR_NONE;
}

/* Reads and lists the object that was just put. */
static enum err_code find_probe(struct object_store *store, const char *key, struct span bytes,
                                struct err *err)
{
    size_t count = 0;
    enum err_code code = read_probe(store, key, bytes, err);
    if (code)
        return code;
    code = object_list(store, key, count_probe, &count, err);
    if (code)
        return code;
    if (count != 1)
        return err_set(err, ERR_IO,
                       "the S3 server does not list what was just put; it has to be consistent");
    return ERR_NONE;
}

/* Tests the operations in the order that gives the best message: a listing shows a wrong bucket
 * or region. */
static enum err_code test_store(struct object_store *store, struct err *err)
{
    uint8_t bytes[PROBE_BYTES];
    char id[DIGEST_ID_BYTES], key[64];
    size_t count = 0;
    digest_random(bytes, sizeof(bytes));
    digest_random_id(id);
    snprintf(key, sizeof(key), "perfolio-probe-%s", id);
    enum err_code code = object_list(store, key, count_probe, &count, err);
    if (code)
        return code;
    code = object_put(store, key, span_of(bytes, sizeof(bytes)), err);
    if (code)
        return code;
    code = find_probe(store, key, span_of(bytes, sizeof(bytes)), err);
    struct err deleting;
    enum err_code deleted = object_delete(store, key, &deleting);
    if (!code && deleted)
        *err = deleting;
    return code ? code : deleted;
}

enum err_code object_s3_open(const struct object_s3_options *options,
                             struct object_store **ret_store, struct err *err)
{
    const char *folder = options->temporary_folder ? options->temporary_folder : "/tmp";
    int age_s =
        options->upload_max_age_s > 0 ? options->upload_max_age_s : DEFAULT_UPLOAD_MAX_AGE_S;
    int retry_s = options->retry_s > 0 ? options->retry_s : S3_CLIENT_DEFAULT_RETRY_S;
    struct s3_store *store = mem_new(struct s3_store, 1);
    store->base.backend = &s3_backend;
    store->upload_max_age_ns = age_s * CLOCK_NS_PER_S;
    store->open_max_bytes =
        options->open_max_bytes ? options->open_max_bytes : DEFAULT_OPEN_MAX_BYTES;
    store->temporary_folder = mem_strdup(folder);
    store->is_opening = true;
    enum err_code code = s3_client_create(options, &store->client, err);
    if (!code) {
        s3_client_set_retry(store->client, OPENING_RETRY_MS);
        code = test_store(&store->base, err);
    }
    if (code) {
        s3_close(&store->base);
        return err_add(err, "S3 store");
    }
    s3_client_set_retry(store->client, retry_s * INT64_C(1000));
    store->is_opening = false;
    *ret_store = &store->base;
    return ERR_NONE;
}

void object_s3_set_space(struct object_store *base,
                         bool (*has_space)(void *context, int fd, uint64_t bytes,
                                           bool is_background),
                         void *context)
{
    struct s3_store *store = s3_store_of(base);
    store->has_space = has_space;
    store->has_space_context = context;
}

enum err_code object_s3_watch(struct object_store *store, void (*report)(bool is_responding),
                              struct err *err)
{
    return s3_client_watch(s3_store_of(store)->client, report, err);
}

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/io/s3_store.h"
#include "lib/io/s3_writer.h"
#include "lib/io/s3_xml.h"

#include <stdio.h>

enum { PAGE_ENTRIES = 1000, PAGE_MAX_BYTES = 8 << 20, MARKER_BYTES = 2048 };

struct entry {
    const char *key;       /* without the store's prefix */
    const char *upload_id; /* in a listing of uploads */
    uint64_t size;
    int64_t time_ns; /* time of modification or initiation */
};

/* One page of a listing of objects or uploads; it is read completely before it is processed. */
struct page {
    const char *root; /* name of the root element */
    const char *item; /* "<root>/Contents" or "<root>/Upload" */
    const char *prefix;
    struct arena *arena;
    struct entry *entries;
    size_t count;
    struct entry current;
    bool is_truncated, is_whole;
    char marker[MARKER_BYTES];    /* parameter of the next page: token, or key */
    char id_marker[MARKER_BYTES]; /* for uploads, in addition to the key */
};

/* The part of path after start and a slash, or "". */
static const char *path_behind(const char *path, const char *start)
{
    size_t size = strlen(start);
    return strncmp(path, start, size) == 0 && path[size] == '/' ? path + size + 1 : "";
}

static enum err_code end_entry(struct page *page, struct err *err)
{
    size_t prefix_bytes = strlen(page->prefix);
    if (page->count == PAGE_ENTRIES)
        return err_set(err, ERR_NETWORK, "the S3 server lists more than was requested");
    if (page->current.key && strncmp(page->current.key, page->prefix, prefix_bytes) == 0) {
        page->current.key += prefix_bytes;
        /* The bucket may contain other objects, too. */
        if (object_is_key(page->current.key))
            page->entries[page->count++] = page->current;
    }
    page->current = (struct entry){0};
    return ERR_NONE;
}

static enum err_code read_entry_part(struct page *page, const char *name, struct span text,
                                     struct err *err)
{
    if (strcmp(name, "Key") == 0)
        page->current.key = arena_strndup(page->arena, text.data, text.size);
    else if (strcmp(name, "UploadId") == 0)
        page->current.upload_id = arena_strndup(page->arena, text.data, text.size);
    else if (strcmp(name, "LastModified") == 0 || strcmp(name, "Initiated") == 0)
        page->current.time_ns = s3_xml_time(text);
    else if (strcmp(name, "Size") == 0 && !span_parse_u64(text, &page->current.size))
        return err_set(err, ERR_NETWORK, "the S3 server lists an object without a size");
    return ERR_NONE;
}

static enum err_code set_marker(char marker[MARKER_BYTES], struct span text, struct err *err)
{
    if (text.size >= MARKER_BYTES)
        return err_set(err, ERR_NETWORK, "the S3 server's marks for pages are too long");
    snprintf(marker, MARKER_BYTES, "%.*s", SPAN_PRINT(text));
    return ERR_NONE;
}

static enum err_code read_element(void *context, const char *path, struct span text,
                                  struct err *err)
{
    struct page *page = context;
    const char *in_item = path_behind(path, page->item), *name = path_behind(path, page->root);
    if (in_item[0])
        return read_entry_part(page, in_item, text, err);
    if (strcmp(path, page->item) == 0)
        return end_entry(page, err);
    if (strcmp(path, page->root) == 0)
        page->is_whole = true;
    else if (strcmp(name, "IsTruncated") == 0)
        page->is_truncated = span_equal_text(text, "true");
    else if (strcmp(name, "NextContinuationToken") == 0 || strcmp(name, "NextKeyMarker") == 0)
        return set_marker(page->marker, text, err);
    else if (strcmp(name, "NextUploadIdMarker") == 0)
        return set_marker(page->id_marker, text, err);
    return ERR_NONE;
}

/* Every attempt starts with an empty page: the previous one may have ended in the middle. */
static enum err_code check_page(void *context, const struct http_client_response *response,
                                struct err *err)
{
    struct page *page = context;
    char last_marker[MARKER_BYTES], last_id_marker[MARKER_BYTES];
    memcpy(last_marker, page->marker, MARKER_BYTES);
    memcpy(last_id_marker, page->id_marker, MARKER_BYTES);
    page->count = 0;
    page->is_truncated = page->is_whole = false;
    page->current = (struct entry){0};
    enum err_code code = s3_xml_read(buf_span(&response->body), read_element, page, err);
    if (!code && page->is_whole &&
        (!page->is_truncated || strcmp(last_marker, page->marker) != 0 ||
         strcmp(last_id_marker, page->id_marker) != 0))
        return ERR_NONE;
    memcpy(page->marker, last_marker, MARKER_BYTES);
    memcpy(page->id_marker, last_id_marker, MARKER_BYTES);
    return err_set(err, ERR_NETWORK, "the S3 server's listing is not one, or does not end");
}

static void page_init(struct page *page, const char *root, const char *item, const char *prefix)
{
    *page = (struct page){.root = root, .item = item, .prefix = prefix};
    page->entries = mem_new(struct entry, PAGE_ENTRIES);
}

static void page_fini(struct page *page)
{
    mem_free(page->entries);
    arena_destroy(page->arena);
}

static enum err_code fetch_page(struct s3_store *store, const struct buf *query, struct page *page,
                                struct http_client_response *response, struct err *err)
{
    struct s3_request request;
    s3_request_init(&request, "list", "GET", NULL);
    request.query = (const char *)query->data;
    request.max_response_bytes = PAGE_MAX_BYTES;
    request.check = check_page;
    request.check_context = page;
    arena_destroy(page->arena);
    page->arena = arena_create();
    enum err_code code = s3_client_send(store->client, &request, response, err);
    return code == ERR_NOT_FOUND ? err_set(err, ERR_IO, "the S3 server cannot list") : code;
}

static enum err_code fetch_objects(struct s3_store *store, const char *prefix, struct page *page,
                                   struct err *err)
{
    http_client_response_auto response;
    buf_auto query;
    http_client_response_init(&response);
    buf_init(&query, 4 * MARKER_BYTES);
    if (page->marker[0]) {
        buf_append_text(&query, "continuation-token=");
        buf_append_url(&query, span_text(page->marker));
        buf_append_byte(&query, '&');
    }
    buf_printf(&query, "list-type=2&max-keys=%d&prefix=", PAGE_ENTRIES);
    buf_append_url(&query, span_text(s3_client_prefix(store->client)));
    buf_append_url(&query, span_text(prefix));
    buf_append_byte(&query, 0);
    return fetch_page(store, &query, page, &response, err);
}

enum err_code s3_store_list(struct object_store *base, const char *prefix, object_visit *visit,
                            void *context, struct err *err)
{
    struct s3_store *store = s3_store_of(base);
    struct page page;
    enum err_code code = ERR_NONE;
    if (strlen(prefix) > OBJECT_KEY_MAX_BYTES)
        return ERR_NONE; /* no key is that long */
    page_init(&page, "ListBucketResult", "ListBucketResult/Contents",
              s3_client_prefix(store->client));
    do {
        code = s3_store_outward(store, fetch_objects(store, prefix, &page, err), err);
        for (size_t i = 0; !code && i < page.count; i++) {
            const struct entry *entry = &page.entries[i];
            if (strncmp(entry->key, prefix, strlen(prefix)) == 0)
                code = visit(context, entry->key, entry->size, entry->time_ns, err);
        }
    } while (!code && page.is_truncated);
    page_fini(&page);
    return code;
}

static enum err_code sweep_page(struct s3_store *store, const struct page *page, int64_t now_ns,
                                struct err *err)
{
    enum err_code code = ERR_NONE;
    for (size_t i = 0; !code && i < page->count; i++) {
        const struct entry *entry = &page->entries[i];
        bool is_old = entry->time_ns && entry->time_ns < now_ns - store->upload_max_age_ns;
        if (entry->upload_id && is_old)
            code = s3_writer_abort_upload(store, entry->key, entry->upload_id, err);
    }
    return code;
}

static enum err_code fetch_uploads(struct s3_store *store, struct page *page, int64_t *ret_now_ns,
                                   struct err *err)
{
    http_client_response_auto response;
    buf_auto query;
    http_client_response_init(&response);
    buf_init(&query, 8 * MARKER_BYTES);
    if (page->marker[0]) {
        buf_append_text(&query, "key-marker=");
        buf_append_url(&query, span_text(page->marker));
        buf_append_byte(&query, '&');
    }
    buf_printf(&query, "max-uploads=%d&prefix=", PAGE_ENTRIES);
    buf_append_url(&query, span_text(s3_client_prefix(store->client)));
    if (page->marker[0]) {
        buf_append_text(&query, "&upload-id-marker=");
        buf_append_url(&query, span_text(page->id_marker));
    }
    buf_append_text(&query, "&uploads=");
    buf_append_byte(&query, 0);
    enum err_code code = fetch_page(store, &query, page, &response, err);
    if (!code) /* only the server's clock counts; without its time no upload is old */
        *ret_now_ns = http_client_response_date(&response) * CLOCK_NS_PER_S;
    return code;
}

enum err_code s3_store_sweep(struct object_store *base, struct err *err)
{
    struct s3_store *store = s3_store_of(base);
    struct page page;
    enum err_code code;
    page_init(&page, "ListMultipartUploadsResult", "ListMultipartUploadsResult/Upload",
              s3_client_prefix(store->client));
    do {
        int64_t now_ns = 0;
        code = fetch_uploads(store, &page, &now_ns, err);
        if (!code)
            code = sweep_page(store, &page, now_ns, err);
    } while (!code && page.is_truncated);
    page_fini(&page);
    return s3_store_outward(store, code, err);
}

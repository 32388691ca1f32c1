/*
 * Completing an upload: read the rows of all parts; claim the upload; read the rows again, since a
 * part may have been put again in between; copy the parts, in order, into one object. While bytes
 * are copied, two digests are computed: that of the part, compared with its row, and that of the
 * whole, compared with the one that the client announced. The object is committed only if all of
 * them match; otherwise the writer is aborted and the claim is released.
 */
#include "api/upload/upload_assemble.h"

#include "api/core/integrity.h"
#include "api/core/server.h"
#include "api/upload/upload.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/os.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"

#include <inttypes.h>

enum { CHUNK_BYTES = 1 << 20, CLAIMED_RETRY_S = 1, LOST_RETRY_S = 5 };

enum err_code upload_assemble_read_parts(struct request *request, const struct upload *upload,
                                         struct upload_parts *ret_parts, struct err *err)
{
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, upload->tenant_id,
                           "SELECT part, object_key, size_bytes, sha256 FROM upload_part"
                           " WHERE upload_id = $1::text",
                           request->arena, &result, err, PG_TEXT(upload->id));
    if (code)
        return code;
    ret_parts->objects =
        arena_new(request->arena, struct integrity_object, (size_t)upload->part_count);
    for (int row = 0; row < pg_row_count(result); row++) {
        int64_t part = pg_get_i64(result, row, 0);
        if (part >= 0 && part < upload->part_count)
            ret_parts->objects[part] =
                (struct integrity_object){.kind = INTEGRITY_PART,
                                          .tenant_id = upload->tenant_id,
                                          .row = upload->id,
                                          .key = pg_get_text(result, row, 1),
                                          .bytes = (uint64_t)pg_get_i64(result, row, 2),
                                          .sha256 = pg_get_bytes(result, row, 3)};
    }
    return ERR_NONE;
}

static enum err_code read_all_parts(struct request *request, const struct upload *upload,
                                    struct upload_parts *ret_parts, struct err *err)
{
    enum { SHOWN = 10 };
    int64_t missing_count = 0;
    buf_auto list;
    buf_init(&list, 512);
    enum err_code code = upload_assemble_read_parts(request, upload, ret_parts, err);
    if (code)
        return code;
    for (int64_t part = 0; part < upload->part_count; part++) {
        if (ret_parts->objects[part].key)
            continue;
        if (missing_count < SHOWN)
            buf_printf(&list, "%s%" PRId64, missing_count ? ", " : "", part);
        missing_count++;
    }
    if (missing_count == 0)
        return ERR_NONE;
    return err_set(err, ERR_CONFLICT,
                   "%" PRId64 " of %" PRId64
                   " parts are missing: %.*s%s; put them, then complete again",
                   missing_count, upload->part_count, SPAN_PRINT(buf_span(&list)),
                   missing_count > SHOWN ? ", …" : "");
}

/* The claim expires by itself if the process dies; if two requests ever hold it, the transaction
 * that names the share lets only one of them commit. */
static enum err_code set_claim(struct request *request, const struct upload *upload, bool is_claim,
                               struct err *err)
{
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(
        connection, upload->tenant_id,
        "UPDATE upload SET completing_until ="
        " CASE WHEN $2::boolean THEN now() + interval '2 minutes' END"
        " WHERE id = $1::text AND share_id IS NULL"
        " AND (NOT $2::boolean OR completing_until IS NULL OR completing_until <= now())",
        request->arena, &result, err, PG_TEXT(upload->id), PG_BOOL(is_claim));
    if (code)
        return code;
    if (is_claim && pg_affected(result) != 1) {
        code = err_set(err, ERR_CONFLICT,
                       "another request is completing this upload: try again in a few seconds to "
                       "get the share");
        err->retry_after_s = CLAIMED_RETRY_S;
    }
    return code;
}

static enum err_code copy_part(struct request *request, const struct integrity_object *object,
                               struct object_writer *writer, struct digest_stream *digest,
                               uint8_t *chunk, struct err *err)
{
    fd_auto fd = -1;
    uint64_t size = object->bytes, done = 0;
    enum err_code code = integrity_open(request->server, object, &fd, err);
    struct integrity_stream *check =
        integrity_stream_create(request->server, request->arena, object);
    while (!code && done < size) {
        size_t wanted = size - done < CHUNK_BYTES ? (size_t)(size - done) : CHUNK_BYTES;
        ssize_t count = os_pread(fd, chunk, wanted, (off_t)done);
        if (count < 0)
            return object_fail_reading(err, "cannot read object", object->key);
        if (count == 0)
            return err_set(err, ERR_CORRUPT, "object %s ended early", object->key);
        struct span bytes = span_of(chunk, (size_t)count);
        integrity_stream_append(check, bytes);
        digest_stream_append(digest, bytes);
        code = object_writer_append(writer, bytes, err);
        done += (uint64_t)count;
    }
    return code ? code : integrity_stream_finish(check, err);
}

/* Whether the stored part is unusable, and not the object that is being written. */
static bool is_of_part(const struct err *err)
{
    return err->code == ERR_CORRUPT || err->code == ERR_LOST ||
           (err->code == ERR_IO && err->is_unreadable);
}

/* Whether a part that could not be read is readable now: then the failure of the disk was
 * temporary, and the part stays. */
static bool is_readable_now(struct request *request, const struct integrity_object *object,
                            struct err *err)
{
    struct err again = {0};
    if (err->code != ERR_IO ||
        integrity_check(request->server->objects, object, NULL, NULL, &again))
        return false;
    err->is_unreadable = false;
    return true;
}

/* Deletes the row of an unusable part, so that the part counts as missing and the client sends it
 * again. The problem that integrity_report listed for operators is deleted with the row, since the
 * upload is no longer damaged. The role of background jobs may change both tables. */
static enum err_code drop_part(struct request *request, const struct integrity_object *object,
                               struct err *err)
{
    pg_auto connection = NULL;
    struct pg_result *result;
    char text[ERR_MESSAGE_BYTES * 2];
    if (err->code == ERR_IO)
        integrity_report(request->server, object, err);
    log_event(LOG_WARN, "a stored part of an upload was dropped: the client has to send it again",
              "request_id=%s object=%s tenant=%" PRId64 " error=%s", request->id, object->key,
              object->tenant_id, log_quote(err->message, text, sizeof(text)));
    enum err_code code = pg_take(request->server->jobs_database, &connection, err);
    return code ? code
                : pg_query_values(connection, PG_NO_TENANT,
                                  "WITH part AS (DELETE FROM upload_part WHERE upload_id = $1::text"
                                  "  AND object_key = $2::text)"
                                  " DELETE FROM object_problem WHERE object_key = $2::text",
                                  request->arena, &result, err, PG_TEXT(object->row),
                                  PG_TEXT(object->key));
}

/* Copies all parts. Parts after a dropped one are read, too, so that one response names all parts
 * that have to be sent again. */
static enum err_code copy_parts(struct request *request, const struct upload *upload,
                                struct upload_parts *parts, struct object_writer *writer,
                                struct digest_stream *digest, struct err *err)
{
    enum err_code code = ERR_NONE;
    int64_t dropped_count = 0;
    uint8_t *chunk = arena_alloc_raw(request->arena, CHUNK_BYTES, 1);
    for (int64_t part = 0; !code && part < upload->part_count; part++) {
        if (request->is_cancelled && atomic_load(request->is_cancelled))
            return err_set(err, ERR_CANCELLED, "the client no longer waits: complete again");
        code = copy_part(request, &parts->objects[part], writer, digest, chunk, err);
        if (code && is_of_part(err) && !is_readable_now(request, &parts->objects[part], err)) {
            code = drop_part(request, &parts->objects[part], err);
            dropped_count++;
        }
    }
    if (code || dropped_count == 0)
        return code;
    code = read_all_parts(request, upload, parts, err);
    return code ? err_add(err, "stored parts were damaged or lost, and have been dropped")
                : err_set(err, ERR_CONFLICT, "parts were put again meanwhile: complete again");
}

static enum err_code join_parts(struct request *request, const struct upload *upload,
                                struct upload_parts *parts, const char *key,
                                uint8_t ret_sha256[DIGEST_BYTES], struct err *err)
{
    struct object_store *objects = request->server->objects;
    struct object_writer *writer;
    enum err_code code = object_writer_open(objects, key, &writer, err);
    if (code)
        return code;
    struct digest_stream *digest = digest_stream_create();
    code = copy_parts(request, upload, parts, writer, digest, err);
    digest_stream_finish(digest, ret_sha256);
    digest_stream_destroy(digest);
    if (!code && upload->sha256.size &&
        !digest_equal(upload->sha256, span_of(ret_sha256, DIGEST_BYTES)))
        code = err_set(err, ERR_INVALID,
                       "the parts' SHA-256 differs from the announced one: put them again");
    if (code) {
        object_writer_abort(writer);
        return code;
    }
    return object_writer_commit(writer, err);
}

enum err_code upload_assemble_open(struct request *request, const char *key, int *ret_fd,
                                   uint64_t *ret_size, struct err *err)
{
    const enum err_code code = object_open(request->server->objects, key, ret_fd, ret_size, err);
    if (code != ERR_NOT_FOUND)
        return code;
    err_set(err, ERR_BUSY, "object %s was written just now and is not in the object store", key);
    err->public_text = "the object store has lost what was written just now; try again";
    err->retry_after_s = LOST_RETRY_S;
    return ERR_BUSY;
}

void upload_assemble_release(struct request *request, const struct upload *upload)
{
    struct err ignored;
    if (set_claim(request, upload, false, &ignored))
        return; /* the claim expires by itself */
}

enum err_code upload_assemble_join(struct request *request, const struct upload *upload,
                                   const char *key, uint8_t ret_sha256[DIGEST_BYTES],
                                   struct err *err)
{
    struct upload_parts parts;
    /* First without a claim: a request that comes too early neither blocks the upload of parts nor
     * the report of missing parts. */
    enum err_code code = read_all_parts(request, upload, &parts, err);
    if (code)
        return code;
    code = set_claim(request, upload, true, err);
    if (code)
        return code;
    code = read_all_parts(request, upload, &parts, err); /* some may have been put again */
    if (!code)
        code = join_parts(request, upload, &parts, key, ret_sha256, err);
    if (code)
        upload_assemble_release(request, upload);
    return code;
}

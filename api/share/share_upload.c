#include "api/share/share_upload.h"

#include "api/core/server_key.h"
#include "api/identity/quota.h"
#include "api/share/share.h"
#include "api/share/share_settings.h"
#include "api/upload/upload.h"
#include "api/upload/upload_assemble.h"
#include "api/upload/upload_slot.h"
#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/mapped_file.h"
#include "lib/base/os.h"

#include <inttypes.h>

static enum err_code share_object(struct request *request, const struct upload *upload,
                                  const struct share_settings *settings,
                                  struct share_source *source, const char *key,
                                  struct response *response, struct err *err)
{
    fd_auto fd = -1;
    uint64_t size;
    enum err_code code = upload_assemble_open(request, key, &fd, &size, err);
    if (code) {
        err->is_unreadable = false;
        return code;
    }
    if (size != (uint64_t)upload->size_bytes)
        return err_set(err, ERR_CORRUPT, "the joined parts have %" PRIu64 " bytes, not %" PRId64,
                       size, upload->size_bytes);
    mapped_file_auto file = {0};
    code = mapped_file_open(fd, (size_t)size, &file, err);
    if (code)
        return code;
    source->bytes = file.bytes;
    code = share_create(request, settings, source, response, err);
    /* If the mapped file could not be read, that is why the profile seemed to be invalid. */
    return code && mapped_file_check(&file, err) ? err->code : code;
}

/* A failure leaves the parts unchanged, so completing can be repeated. */
static enum err_code join_and_create(struct request *request, const struct upload *upload,
                                     const struct share_settings *settings,
                                     const char *delete_token, struct response *response,
                                     struct err *err)
{
    char id[DIGEST_ID_BYTES], key[SHARE_OBJECT_KEY_BYTES];
    uint8_t sha256[DIGEST_BYTES];
    digest_random_id(id);
    share_object_key(id, key);
    struct share_source source = {.is_stored = true,
                                  .id = id,
                                  .delete_token = delete_token,
                                  .sha256 = sha256,
                                  .upload_id = upload->id};
    enum err_code code = upload_assemble_join(request, upload, key, sha256, err);
    if (code)
        return code;
    code = share_object(request, upload, settings, &source, key, response, err);
    if (code)
        upload_assemble_release(request, upload);
    return code;
}

/* The share's delete token is derived, so that completing again can return it again. */
static enum err_code derive_delete_token(struct request *request, const struct upload *upload,
                                         char ret_token[DIGEST_SECRET_BYTES], struct err *err)
{
    uint8_t signature[DIGEST_BYTES];
    char hex[DIGEST_HEX_BYTES];
    digest_hex(upload->token_hash, hex);
    enum err_code code = server_key_sign(
        request->server,
        span_text(arena_printf(request->arena, "delete token %s %s", upload->id, hex)), signature,
        err);
    if (code)
        return code;
    digest_base62(span_of(signature, sizeof(signature)), DIGEST_SECRET_LENGTH, ret_token);
    return ERR_NONE;
}

static enum err_code complete_upload(struct request *request, struct response *response,
                                     struct err *err)
{
    struct upload upload;
    struct share_settings settings;
    char delete_token[DIGEST_SECRET_BYTES];
    enum err_code code = upload_find_mine(request, request->path_params[0], &upload, err);
    if (code)
        return code;
    code = share_settings_read(request, &settings, err);
    if (code)
        return code;
    code = derive_delete_token(request, &upload, delete_token, err);
    if (code)
        return code;
    if (*upload.share_id)
        return share_create_respond_again(request, upload.share_id, delete_token, response, err);
    if (!*settings.filename)
        settings.filename = upload.filename;
    code = upload_slot_take(request, err);
    if (code)
        return code;
    code = quota_take_completion(request, err);
    return code ? code : join_and_create(request, &upload, &settings, delete_token, response, err);
}

static const struct route routes[] = {
    {HTTP_POST, "/api/v1/uploads/{id}/complete", ACCESS_ANONYMOUS, SCOPE_SHARE,
     ROUTE_LIMIT_404 | ROUTE_STORES, 1024, complete_upload},
};

const struct route_table share_upload_routes = {routes, sizeof(routes) / sizeof(*routes)};

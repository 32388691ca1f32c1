#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/io/object_backend.h"

#include <errno.h>
#include <string.h>

static bool is_key_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == '-';
}

/* A part that starts with a dot could be "..", or a hidden name of the folder. */
bool object_is_key(const char *key)
{
    size_t size = strnlen(key, OBJECT_KEY_MAX_BYTES + 1), part_bytes = 0, part_count = 1;
    if (size > OBJECT_KEY_MAX_BYTES)
        return false;
    for (size_t i = 0; i < size; i++) {
        if (key[i] == '/' && part_bytes > 0) {
            part_bytes = 0;
            part_count++;
        } else if (is_key_byte(key[i]) && !(part_bytes == 0 && key[i] == '.')) {
            part_bytes++;
        } else {
            return false;
        }
    }
    return part_bytes > 0 && part_count <= OBJECT_KEY_MAX_PARTS;
}

static enum err_code check_key(const char *key, struct err *err)
{
    if (object_is_key(key))
        return ERR_NONE;
    return err_set(err, ERR_INVALID, "\"%.*s\" cannot be an object's key", OBJECT_KEY_MAX_BYTES,
                   key);
}

void object_store_close(struct object_store *store)
{
    if (store)
        store->backend->close(store);
}

bool object_store_is_responding(const struct object_store *store)
{
    return !store->backend->is_responding || store->backend->is_responding(store);
}

enum err_code object_put(struct object_store *store, const char *key, struct span bytes,
                         struct err *err)
{
    enum err_code code = check_key(key, err);
    return code ? code : store->backend->put(store, key, bytes, err);
}

enum err_code object_writer_open(struct object_store *store, const char *key,
                                 struct object_writer **ret_writer, struct err *err)
{
    enum err_code code = check_key(key, err);
    return code ? code : store->backend->writer_open(store, key, ret_writer, err);
}

enum err_code object_writer_append(struct object_writer *writer, struct span bytes, struct err *err)
{
    return writer->store->backend->writer_append(writer, bytes, err);
}

enum err_code object_writer_commit(struct object_writer *writer, struct err *err)
{
    return writer->store->backend->writer_commit(writer, err);
}

void object_writer_abort(struct object_writer *writer)
{
    if (writer)
        writer->store->backend->writer_abort(writer);
}

bool object_store_makes_copies(const struct object_store *store)
{
    return store->backend->makes_copies;
}

enum err_code object_open(struct object_store *store, const char *key, int *ret_fd,
                          uint64_t *ret_size, struct err *err)
{
    return object_open_within(store, key, NULL, ret_fd, ret_size, err);
}

enum err_code object_open_within(struct object_store *store, const char *key,
                                 const struct wait_limit *wait_limit, int *ret_fd,
                                 uint64_t *ret_size, struct err *err)
{
    enum err_code code = check_key(key, err);
    return code ? code : store->backend->open(store, key, wait_limit, false, ret_fd, ret_size, err);
}

enum err_code object_open_in_background(struct object_store *store, const char *key, int *ret_fd,
                                        uint64_t *ret_size, struct err *err)
{
    enum err_code code = check_key(key, err);
    return code ? code : store->backend->open(store, key, NULL, true, ret_fd, ret_size, err);
}

enum err_code object_probe(struct object_store *store, const char *key,
                           const struct wait_limit *wait_limit, struct err *err)
{
    enum err_code code = check_key(key, err);
    return code ? code : store->backend->probe(store, key, wait_limit, err);
}

enum err_code object_store_check(struct object_store *store, const char *key, struct err *err)
{
    enum err_code code = check_key(key, err);
    return code || !store->backend->check ? code : store->backend->check(store, key, err);
}

/* Whether an errno concerns one object. Others, such as that for too many open files, concern the
 * whole process. */
static bool is_of_object(int error)
{
    static const int errors[] = {EIO,     EACCES,  EPERM,  ELOOP,     ENOTDIR,
                                 EUCLEAN, EBADMSG, ESTALE, EREMOTEIO, ENODATA};
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i] == error)
            return true;
    }
    return false;
}

enum err_code object_fail_reading(struct err *err, const char *what, const char *name)
{
    const bool is_unreadable = is_of_object(errno);
    err_set_errno(err, ERR_IO, "%s %s", what, name);
    err->is_unreadable = is_unreadable;
    return ERR_IO;
}

enum err_code object_read(struct object_store *store, const char *key, struct buf *buf,
                          struct err *err)
{
    enum err_code code = check_key(key, err);
    return code ? code : store->backend->read(store, key, buf, err);
}

enum err_code object_read_range(struct object_store *store, const char *key, uint64_t offset,
                                size_t size, struct buf *buf, struct err *err)
{
    return object_read_range_within(store, key, offset, size, NULL, buf, err);
}

enum err_code object_read_range_within(struct object_store *store, const char *key, uint64_t offset,
                                       size_t size, const struct wait_limit *wait_limit,
                                       struct buf *buf, struct err *err)
{
    uint64_t end;
    enum err_code code = check_key(key, err);
    if (code || size == 0)
        return code;
    if (__builtin_add_overflow(offset, size, &end) || end > INT64_MAX)
        return err_set(err, ERR_CORRUPT, "object %s ends before the bytes wanted of it", key);
    return store->backend->read_range(store, key, offset, size, wait_limit, buf, err);
}

enum err_code object_delete(struct object_store *store, const char *key, struct err *err)
{
    return object_delete_many(store, &key, 1, err);
}

enum err_code object_delete_many(struct object_store *store, const char *const *keys, size_t count,
                                 struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        enum err_code code = check_key(keys[i], err);
        if (code)
            return code;
    }
    return count ? store->backend->delete_many(store, keys, count, err) : ERR_NONE;
}

enum err_code object_list(struct object_store *store, const char *prefix, object_visit *visit,
                          void *context, struct err *err)
{
    return store->backend->list(store, prefix, visit, context, err);
}

enum err_code object_list_all(struct object_store *store, object_visit *visit, void *context,
                              struct err *err)
{
    const struct object_backend *backend = store->backend;
    return backend->list_all ? backend->list_all(store, visit, context, err)
                             : backend->list(store, "", visit, context, err);
}

enum err_code object_sweep_temporary(struct object_store *store, struct err *err)
{
    return store->backend->sweep(store, err);
}

/*
 * object_backend: the operations that a kind of object store implements. Private to
 * lib/io/object*.c.
 *
 * A backend embeds struct object_store and struct object_writer as its first members. When an
 * operation is called, keys have been checked, and sizes and counts are not 0. object.h defines
 * what each operation guarantees.
 */
#ifndef LIB_IO_OBJECT_BACKEND_H
#define LIB_IO_OBJECT_BACKEND_H

#include "lib/io/object.h"

#include <stdbool.h>

struct buf;

struct object_backend {
    bool makes_copies; /* open returns a copy of the object */
    void (*close)(struct object_store *store);
    enum err_code (*put)(struct object_store *store, const char *key, struct span bytes,
                         struct err *err);
    enum err_code (*writer_open)(struct object_store *store, const char *key,
                                 struct object_writer **ret_writer, struct err *err);
    enum err_code (*writer_append)(struct object_writer *writer, struct span bytes,
                                   struct err *err);
    enum err_code (*writer_commit)(struct object_writer *writer, struct err *err);
    void (*writer_abort)(struct object_writer *writer);
    enum err_code (*open)(struct object_store *store, const char *key,
                          const struct wait_limit *wait_limit, bool is_background, int *ret_fd,
                          uint64_t *ret_size, struct err *err);
    enum err_code (*read)(struct object_store *store, const char *key, struct buf *buf,
                          struct err *err);
    enum err_code (*read_range)(struct object_store *store, const char *key, uint64_t offset,
                                size_t size, const struct wait_limit *wait_limit, struct buf *buf,
                                struct err *err);
    enum err_code (*probe)(struct object_store *store, const char *key,
                           const struct wait_limit *wait_limit, struct err *err);
    enum err_code (*check)(struct object_store *store, const char *key,
                           struct err *err); /* NULL: it can always be used */
    enum err_code (*delete_many)(struct object_store *store, const char *const *keys, size_t count,
                                 struct err *err);
    enum err_code (*list)(struct object_store *store, const char *prefix, object_visit *visit,
                          void *context, struct err *err);
    enum err_code (*list_all)(struct object_store *store, object_visit *visit, void *context,
                              struct err *err); /* NULL: only objects are visible */
    enum err_code (*sweep)(struct object_store *store, struct err *err);
    bool (*is_responding)(const struct object_store *store); /* NULL: always */
};

struct object_store {
    const struct object_backend *backend;
};

struct object_writer {
    struct object_store *store;
};

#endif

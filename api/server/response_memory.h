/*
 * response_memory: counts the memory of responses that peers have not read yet, for each client.
 *
 * All responses together hold at most max_bytes. So that one client cannot hold all of these, a
 * client without credentials (an address, IPv6: its /48) may hold an eighth of them, all clients
 * without credentials together a half, and each tenant a half. There is one exception: the limit of
 * a client, or of all clients without credentials together, does not apply while they hold nothing,
 * so that one response of any size up to the free bytes can be sent.
 *
 * A few clients could still hold a half, or with a team all, for as long as they read slowly. So
 * when little remains free, a response must be read within response_memory_time_to_read_s, or its
 * connection is closed (http_sweep.c). A client that was too slow gets a large response in the next
 * five minutes only while its team, or all clients without credentials, hold less than a quarter of
 * their part. Threads: any.
 */
#ifndef API_SERVER_RESPONSE_MEMORY_H
#define API_SERVER_RESPONSE_MEMORY_H

#include "lib/base/err_code.h"

#include <stddef.h>
#include <stdint.h>

struct request;
struct response_holder;
struct response_memory;

struct response_memory *response_memory_create(size_t max_bytes);
void response_memory_destroy(struct response_memory *memory); /* NULL is a no-op */

/* The bytes of one response. */
struct response_bytes {
    size_t own;
    /* Bytes that other responses may hold too, such as a cached result; 0: none. They count once
     * for each client that holds them, once for all clients without credentials, and once in the
     * total. */
    size_t shared;
    /* Identifies the shared bytes, and is the number of responses that hold them; this module
     * counts it. NULL: there are none. */
    _Atomic uint32_t *readers;
};

/* Counts the bytes for the client of the request. *ret_holder is passed to response_memory_give.
 * Errors: ERR_BUSY with retry_after_s (the message names the limit). */
enum err_code response_memory_take(struct response_memory *memory, const struct request *request,
                                   const struct response_bytes *bytes,
                                   struct response_holder **ret_holder, struct err *err) MUST_USE;
void response_memory_give(struct response_memory *memory, struct response_holder *holder,
                          const struct response_bytes *bytes);

/* The time in s within which a response of the holder must be read, because little of what its
 * team, all clients without credentials, or all responses may hold is free; 0: any time. */
unsigned response_memory_time_to_read_s(struct response_memory *memory,
                                        const struct response_holder *holder);
/* Remembers for five minutes that the client of the request read a response too slowly. The last
 * 1,024 such clients are known: an address, or one with the credentials of one
 * team. */
void response_memory_note_slow(struct response_memory *memory, const struct request *request);

/* Returns the bytes that all responses hold. */
size_t response_memory_bytes(const struct response_memory *memory);

#endif

/*
 * idempotency: a request that makes something, sent again with the same Idempotency-Key (1 to 64
 * visible ASCII characters), makes nothing more and gets the same answer, for a day.
 *
 * A key belongs to its tenant, or for anonymous requests to the address. It goes with path, query
 * and body: another request under the same key is refused. The row is written in the transaction
 * that makes the thing, so either both are there or neither; of two requests at the same time one
 * fails there with ERR_CONFLICT and then finds what the other made. Secrets that the answer tells
 * (delete token, upload token) are derived from the server's key, since only hashes are stored.
 */
#ifndef API_IDENTITY_IDEMPOTENCY_H
#define API_IDENTITY_IDEMPOTENCY_H

#include "lib/base/digest.h"
#include "lib/base/err.h"

#include <stdbool.h>

struct pg_connection;
struct request;

enum { IDEMPOTENCY_KEY_BYTES = 64, IDEMPOTENCY_KEEP_HOURS = 24 };

struct idempotency {
    bool is_wanted;                   /* the request has a key; if not, all else is unset */
    bool is_known;                    /* id was made by an earlier request */
    char id[DIGEST_ID_BYTES];         /* of what was made earlier or is to be made now */
    char secret[DIGEST_SECRET_BYTES]; /* goes with id */
    uint8_t key_hash[DIGEST_BYTES];
    uint8_t request_hash[DIGEST_BYTES];
};

/* What the request's key stands for. Holds no connection meanwhile. Handles: ERR_INVALID (no usable
 * key), ERR_CONFLICT (the key came with another request). */
enum err_code idempotency_find(struct request *request, struct idempotency *ret_idempotency,
                               struct err *err) MUST_USE;

/*
 * To be called with the error of making it. If that was because another request with the same key
 * came first: ERR_NONE, and *idempotency (now is_known) tells what that one made. Otherwise the
 * error as it was, or ERR_CONFLICT with a better text.
 */
enum err_code idempotency_find_winner(struct request *request, enum err_code code,
                                      struct idempotency *idempotency, struct err *err) MUST_USE;

/* Writes the row, if a key is there, in the transaction that makes idempotency->id (pg_queue);
 * ERR_CONFLICT comes from the commit. */
enum err_code idempotency_record(struct pg_connection *connection, struct request *request,
                                 const struct idempotency *idempotency, struct err *err) MUST_USE;

#endif

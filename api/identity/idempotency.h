/*
 * idempotency: a request that creates something and is sent again with the same Idempotency-Key (1
 * to 64 visible ASCII characters) creates nothing more and gets the same response, for a day.
 *
 * A key belongs to a user or a token, or for anonymous requests to the address: the response
 * contains a delete token, which others of the team must not get. It is bound to path, query
 * and body: another request with the same key is refused. The row of the key is written in the
 * transaction that creates the object (a share, an upload), so either both exist or neither. One of
 * two concurrent requests fails there with ERR_CONFLICT and then finds the object that the other
 * created. Secrets in the response (delete token, upload token) are derived from the server's key,
 * since only hashes are stored.
 *
 * Order of calls: idempotency_find; if the key is not known, idempotency_record in the transaction
 * that creates the object; then idempotency_find_winner with the result of that transaction.
 */
#ifndef API_IDENTITY_IDEMPOTENCY_H
#define API_IDENTITY_IDEMPOTENCY_H

#include "lib/base/digest.h"
#include "lib/base/err_code.h"

#include <stdbool.h>

struct pg_connection;
struct request;

enum { IDEMPOTENCY_KEY_BYTES = 64, IDEMPOTENCY_KEEP_HOURS = 24 };

struct idempotency {
    bool is_wanted;           /* the request has a key; if not, the other members are unset */
    bool is_known;            /* an earlier request created the object */
    char id[DIGEST_ID_BYTES]; /* the object's: created by an earlier request, or to be created */
    char secret[DIGEST_SECRET_BYTES]; /* derived from the key, like id */
    uint8_t key_hash[DIGEST_BYTES];
    uint8_t request_hash[DIGEST_BYTES];
};

/* Looks up the request's key. Holds no connection afterwards. Errors: ERR_INVALID (the key is not
 * usable), ERR_CONFLICT (the key came with another request). */
enum err_code idempotency_find(struct request *request, struct idempotency *ret_idempotency,
                               struct err *err) MUST_USE;

/* Call it with the code and the error of the transaction that was to create the object. If another
 * request with the same key has created it meanwhile, returns ERR_NONE and sets *idempotency to
 * that object (is_known is true). Otherwise returns code unchanged, or an error of
 * idempotency_find. */
enum err_code idempotency_find_winner(struct request *request, enum err_code code,
                                      struct idempotency *idempotency, struct err *err) MUST_USE;

/* Writes the row, if the request has a key, in the transaction that creates idempotency->id
 * (pg_queue); ERR_CONFLICT comes from the commit. */
enum err_code idempotency_record(struct pg_connection *connection, struct request *request,
                                 const struct idempotency *idempotency, struct err *err) MUST_USE;

#endif

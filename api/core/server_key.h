/*
 * server_key: the server's durable signing key. It signs the cookies that remember the password of
 * a share and the device of a user. Ids and tokens that must be the same each time are derived from
 * it: short links, delete tokens of uploads in parts, and the secrets of requests with an
 * Idempotency-Key.
 *
 * The key is a row of the database, read by its function server_secret_find at the start, because a
 * request may sign while it holds one of the database connections that its client may use. Threads:
 * any.
 */
#ifndef API_CORE_SERVER_KEY_H
#define API_CORE_SERVER_KEY_H

#include "lib/base/buf.h"
#include "lib/base/digest.h"
#include "lib/base/err_code.h"

struct server;
struct server_key;

struct server_key *server_key_create(void);
/* NULL is a no-op. */
void server_key_destroy(struct server_key *key);

/* Reads the key of server->key from server->database. */
enum err_code server_key_load(struct server *server, struct err *err) MUST_USE;

/* HMAC-SHA-256 of message under the key of server->key, which is read if it is not loaded. Errors:
 * ERR_DATABASE, ERR_BUSY. */
enum err_code server_key_sign(struct server *server, struct span message,
                              uint8_t ret_signature[DIGEST_BYTES], struct err *err) MUST_USE;

#endif

/*
 * server_key: the server's durable signing key: for cookies of passwords and devices, for short
 * links, and for the delete tokens of completed uploads.
 *
 * The key is a row of the database (server_secret_find). It is read for the first signature and
 * then kept. Threads: any.
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

/* HMAC-SHA-256 of message under the key of server->key. Handles: ERR_DATABASE, ERR_BUSY. */
enum err_code server_key_sign(struct server *server, struct span message,
                              uint8_t ret_signature[DIGEST_BYTES], struct err *err) MUST_USE;

#endif

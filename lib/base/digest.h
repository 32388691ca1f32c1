/*
 * digest: hashes, random numbers and their text forms. Wraps OpenSSL's libcrypto.
 *
 * Secrets that the server generates (tokens, delete tokens, invitation links) are random text of
 * 256 bits. Only their SHA-256 is stored, which is enough because such a secret cannot be guessed.
 * Passwords can be guessed, so they are stretched with scrypt; api/identity/password.h limits how
 * many such calls run at once. Random numbers come from the kernel; the process ends when the
 * kernel cannot provide them. Threads: any.
 */
#ifndef LIB_BASE_DIGEST_H
#define LIB_BASE_DIGEST_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DIGEST_BYTES = 32, /* SHA-256 */
    DIGEST_MD5_BYTES = 16,
    DIGEST_HEX_BYTES = 2 * DIGEST_BYTES + 1, /* lower-case hexadecimal, with NUL */
    DIGEST_ID_LENGTH = 22,                   /* 128 bits in base62 */
    DIGEST_ID_BYTES = DIGEST_ID_LENGTH + 1,
    DIGEST_SECRET_LENGTH = 43, /* 256 bits in base62 */
    DIGEST_SECRET_BYTES = DIGEST_SECRET_LENGTH + 1,
    DIGEST_TOKEN_LENGTH = 3 + DIGEST_SECRET_LENGTH, /* "pf_" and a secret */
    DIGEST_TOKEN_BYTES = DIGEST_TOKEN_LENGTH + 1,
    DIGEST_PASSWORD_BYTES = 160, /* a stored password hash, with NUL */
};

void digest_sha256(struct span data, uint8_t ret_hash[DIGEST_BYTES]);
/* MD5, only for Content-MD5, which some protocols require to detect transmission errors. */
void digest_md5(struct span data, uint8_t ret_hash[DIGEST_MD5_BYTES]);
/* Base64 with padding. ret_text has 4 * ((bytes.size + 2) / 3) + 1 bytes. */
void digest_base64(struct span bytes, char *ret_text);
void digest_hmac_sha256(struct span key, struct span data, uint8_t ret_hash[DIGEST_BYTES]);

/* SHA-256 of bytes that arrive in pieces. */
struct digest_stream;
struct digest_stream *digest_stream_create(void);
void digest_stream_destroy(struct digest_stream *stream); /* NULL is a no-op */
void digest_stream_append(struct digest_stream *stream, struct span data);
/* Ends the stream; only digest_stream_destroy may follow. */
void digest_stream_finish(struct digest_stream *stream, uint8_t ret_hash[DIGEST_BYTES]);

void digest_random(void *bytes, size_t size);
/* 128 random bits as 22 characters of 0-9A-Za-z: the id of a share. */
void digest_random_id(char ret_id[DIGEST_ID_BYTES]);
/* 256 random bits as 43 characters: delete tokens, sessions, invitations, login codes. */
void digest_random_secret(char ret_secret[DIGEST_SECRET_BYTES]);
/* "pf_" and a secret: an API token. */
void digest_random_token(char ret_token[DIGEST_TOKEN_BYTES]);

/* Writes big-endian bytes (at most 32) as base62 of exactly length characters. ret_text has
 * length + 1 bytes. The length must suffice for every number of that many bytes: 22 for 16
 * bytes, 43 for 32. */
void digest_base62(struct span bytes, size_t length, char *ret_text);
/* Whether text has the form of an id or of a secret: the exact length, only 0-9A-Za-z. */
bool digest_is_id(struct span text);
bool digest_is_secret(struct span text);

/* Lower-case hexadecimal. ret_text has 2 * bytes.size + 1 bytes. */
void digest_hex(struct span bytes, char *ret_text);
/* Parses exactly 2 * size hexadecimal digits into size bytes; false for any other text. */
bool digest_parse_hex(struct span text, uint8_t *ret_bytes, size_t size);

/* Compares in constant time: the duration depends only on the sizes. */
bool digest_equal(struct span a, struct span b);

/*
 * Hashes a password with scrypt and a new salt, as text that contains the parameters:
 * "$scrypt$ln=14,r=8,p=5$<salt>$<hash>", salt and hash in hexadecimal. Costs 16 MiB and about 0.2
 * CPU seconds; servers call it through api/identity/password.h. Errors: ERR_BUSY (not enough
 * memory).
 */
enum err_code digest_password_hash(struct span password, char ret_text[DIGEST_PASSWORD_BYTES],
                                   struct err *err) MUST_USE;
/* Checks a password against a stored hash. *ret_matches is false also for hashes that are
 * malformed or whose parameters are out of bounds (more than 64 MiB). Errors: ERR_BUSY. */
enum err_code digest_password_verify(struct span password, const char *stored, bool *ret_matches,
                                     struct err *err) MUST_USE;

#endif

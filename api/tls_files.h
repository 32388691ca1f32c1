/*
 * tls_files: the certificates in D/tls: a local CA, the leaf it signs, or copies of the operator's.
 *
 * ca.crt is what clients are told to trust; its key stays with whoever started the supervisor. The
 * CA may sign for this machine's names only (X.509 name constraints), so that trusting it risks
 * little. server.crt and server.key are what the server loads, readable by its group; with
 * --tls-cert and --tls-key they are custom.crt and custom.key. Files appear whole, by rename.
 * For the supervisor's one thread.
 */
#ifndef API_TLS_FILES_H
#define API_TLS_FILES_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { TLS_MAX_NAMES = 16, TLS_FINGERPRINT_BYTES = 32 * 3 };

enum tls_files_change {
    TLS_FILES_KEPT,
    TLS_FILES_LEAF_NEW,    /* server.crt alone: clients notice nothing */
    TLS_FILES_CA_MADE,     /* there was none */
    TLS_FILES_CA_REPLACED, /* clients that trust the old one must fetch ca.crt again */
};

/*
 * Makes the CA and the leaf for names (host names and addresses) unless folder has them and they
 * fit: right names, at least 30 days left. A CA that may not sign for a name is replaced: its
 * constraints are part of what clients trust, and cannot be widened for those who have it.
 * Handles: ERR_IO.
 */
enum err_code tls_files_prepare(const char *folder, gid_t reader_group, const char *const *names,
                                size_t name_count, enum tls_files_change *ret_change,
                                struct err *err) MUST_USE;

/*
 * The SHA-256 fingerprint of folder's ca.crt as openssl-x509(1) writes it, "AB:CD:…". Handles:
 * ERR_IO.
 */
enum err_code tls_files_fingerprint(const char *folder, char ret_text[TLS_FINGERPRINT_BYTES],
                                    struct err *err) MUST_USE;

/*
 * Copies certificate chain and key to custom.crt and custom.key after checking that they belong
 * together. Handles: ERR_INVALID, ERR_IO; the copies that were there are kept then.
 */
enum err_code tls_files_take_custom(const char *folder, gid_t reader_group, const char *certificate,
                                    const char *key, struct err *err) MUST_USE;

#endif

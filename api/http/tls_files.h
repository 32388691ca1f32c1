/*
 * tls_files: the certificates in D/tls: a local CA and the certificate that it signs, or copies of
 * the operator's.
 *
 * ca.crt is the certificate that clients have to trust; its key is readable only by the user who
 * started the supervisor. X.509 name constraints limit the CA to this host's names, so that
 * trusting it risks little. IP addresses are not constrained: BoringSSL (gRPC, Envoy, Bun) does not
 * support constraints on them and rejects each certificate with an address that has to be checked
 * against one, critical or not. The server loads server.crt and server.key, which its group can
 * read. With the options --tls-cert and --tls-key it loads custom.crt and custom.key instead. A
 * file is written under another name and renamed, so readers never see a part of it. Threads: one,
 * the supervisor's.
 */
#ifndef API_HTTP_TLS_FILES_H
#define API_HTTP_TLS_FILES_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { TLS_MAX_NAMES = 16, TLS_FINGERPRINT_BYTES = 32 * 3 };

enum tls_files_change {
    TLS_FILES_KEPT,
    TLS_FILES_LEAF_NEW,    /* only server.crt: clients notice nothing */
    TLS_FILES_CA_MADE,     /* there was none before */
    TLS_FILES_CA_REPLACED, /* clients that trust the old one must fetch ca.crt again */
};

/*
 * Creates the CA and the server's certificate for names (host names and addresses) unless folder
 * has suitable ones: right names, at least 30 days left. A CA that may not sign for a name is
 * replaced: clients trust its constraints, which cannot be widened for them. Errors: ERR_IO.
 */
enum err_code tls_files_prepare(const char *folder, gid_t reader_group, const char *const *names,
                                size_t name_count, enum tls_files_change *ret_change,
                                struct err *err) MUST_USE;

/* The SHA-256 fingerprint of folder's ca.crt in the form of openssl-x509(1), "AB:CD:…". Errors:
 * ERR_IO. */
enum err_code tls_files_fingerprint(const char *folder, char ret_text[TLS_FINGERPRINT_BYTES],
                                    struct err *err) MUST_USE;

/* Copies certificate chain and key to custom.crt and custom.key after checking that they belong
 * together. On failure the earlier copies are kept. Errors: ERR_INVALID, ERR_IO. */
enum err_code tls_files_take_custom(const char *folder, gid_t reader_group, const char *certificate,
                                    const char *key, struct err *err) MUST_USE;

#endif

#include "api/server/http_internal.h"

#include "lib/base/err.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

/* Clients that send no ALPN, or none of these, get HTTP/1.1. */
static const h2o_iovec_t http1_only[] = {{(char *)(uintptr_t) "http/1.1", 8}, {NULL, 0}};
static const h2o_iovec_t http1_and_2[] = {
    {(char *)(uintptr_t) "h2", 2}, {(char *)(uintptr_t) "http/1.1", 8}, {NULL, 0}};

static enum err_code set_tls_error(struct err *err, const char *what, const char *path)
{
    char text[160];
    ERR_error_string_n(ERR_peek_last_error(), text, sizeof(text));
    ERR_clear_error();
    return err_set(err, ERR_INVALID, "%s %s: %s", what, path, text);
}

static enum err_code load_files(SSL_CTX *tls, const struct http_options *options, struct err *err)
{
    if (SSL_CTX_use_certificate_chain_file(tls, options->certificate_path) != 1)
        return set_tls_error(err, "reading the certificate", options->certificate_path);
    if (SSL_CTX_use_PrivateKey_file(tls, options->key_path, SSL_FILETYPE_PEM) != 1)
        return set_tls_error(err, "reading the key", options->key_path);
    if (SSL_CTX_check_private_key(tls) != 1)
        return set_tls_error(err, "the key does not belong to the certificate",
                             options->certificate_path);
    return ERR_NONE;
}

/*
 * OpenSSL also offers finite-field groups (ffdhe8192), for which a client that sends 1,281 bytes
 * and computes nothing makes the server compute for 170 ms (CVE-2022-40735). These two take 0.1 ms.
 * Current browsers and TLS libraries have both; a client that is limited to P-384 is refused.
 */
static enum err_code set_groups(SSL_CTX *tls, struct err *err)
{
    char groups[] = "X25519:P-256"; /* not const, for OpenSSL's macro */
    return SSL_CTX_set1_groups_list(tls, groups) == 1
               ? ERR_NONE
               : set_tls_error(err, "choosing groups for", "TLS");
}

/* A client that changes its keys more often than this is cut off. TLS asks for it after 2^24
 * records, which no connection reaches. */
enum { KEY_UPDATES_MAX = 16 };

/* The BIO of a connection's TLS is that of its h2o socket. */
static struct http_connection *connection_of(const SSL *tls)
{
    const h2o_socket_t *sock = BIO_get_data(SSL_get_rbio(tls));
    return sock->on_close.data;
}

static void note_handshake(const SSL *tls, int where, int value)
{
    (void)value;
    if (where & SSL_CB_HANDSHAKE_DONE)
        connection_of(tls)->has_handshake = true;
}

/*
 * Counts key updates: one has 27 bytes, costs the server 17 us, and is no progress by which a
 * timeout would notice. SSL_RECEIVED_SHUTDOWN makes OpenSSL ignore all that has arrived already.
 */
static void note_message(int is_written, int version, int type, const void *bytes, size_t size,
                         SSL *tls, void *context)
{
    (void)version;
    (void)context;
    if (is_written || type != SSL3_RT_HANDSHAKE || !size ||
        *(const uint8_t *)bytes != SSL3_MT_KEY_UPDATE)
        return;
    struct http_connection *connection = connection_of(tls);
    if (++connection->key_updates <= KEY_UPDATES_MAX)
        return;
    SSL_set_shutdown(tls, SSL_RECEIVED_SHUTDOWN);
    http_connection_cut(connection, REFUSED_KEYS);
}

enum err_code http_tls_load(const struct http_options *options, SSL_CTX **ret_tls, struct err *err)
{
    if (!options->certificate_path || !options->key_path)
        return err_set(err, ERR_INVALID, "a TLS listener needs a certificate and a key");
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    if (!tls)
        return set_tls_error(err, "setting up", "TLS");
    SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);
    SSL_CTX_set_options(tls, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_info_callback(tls, note_handshake);
    SSL_CTX_set_msg_callback(tls, note_message);
    /* Without this an idle connection keeps 34 KB of record buffers. */
    SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS);
    /* Tickets resume sessions; a cache in the server would only grow. */
    SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
    enum err_code code = ERR_NONE;
    if (SSL_CTX_set_cipher_list(tls, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1)
        code = set_tls_error(err, "choosing ciphers for", "TLS 1.2");
    else
        code = set_groups(tls, err);
    if (code == ERR_NONE)
        code = load_files(tls, options, err);
    if (code) {
        SSL_CTX_free(tls);
        return code;
    }
    h2o_ssl_register_alpn_protocols(tls, options->enable_http2 ? http1_and_2 : http1_only);
    *ret_tls = tls;
    return ERR_NONE;
}

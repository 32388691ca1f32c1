#include "api/http/tls_files.h"

#include "lib/base/err.h"
#include "lib/base/os.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    CA_DAYS = 3650,
    LEAF_DAYS = 397, /* the maximum that browsers accept */
    RENEW_DAYS = 30,
    EXTENSION_BYTES = 4096,
    X509_VERSION_3_VALUE = 2,
};

struct tls_names {
    const char *const *names;
    size_t count;
};

/* A certificate and its key; either may be NULL. */
struct identity {
    X509 *certificate;
    EVP_PKEY *key;
};

static void identity_fini(struct identity *identity)
{
    X509_free(identity->certificate);
    EVP_PKEY_free(identity->key);
    *identity = (struct identity){0};
}
#define identity_auto __attribute__((cleanup(identity_fini))) struct identity

static enum err_code openssl_failed(struct err *err, const char *what)
{
    char text[256];
    ERR_error_string_n(ERR_get_error(), text, sizeof(text));
    ERR_clear_error();
    return err_set(err, ERR_INTERNAL, "%s: %s", what, text);
}

static bool is_address(const char *name)
{
    unsigned char bytes[16];
    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

/* "DNS:localhost,IP:127.0.0.1" */
static void list_names(const struct tls_names *names, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < names->count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s:%s", i ? "," : "",
                                 is_address(names->names[i]) ? "IP" : "DNS", names->names[i]);
}

/* "critical,permitted;DNS:localhost,permitted;DNS:…". It always includes localhost: without any
 * host name the CA could sign for all. */
static void list_constraints(const struct tls_names *names, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "critical,permitted;DNS:localhost");
    for (size_t i = 0; i < names->count && used < size; i++) {
        if (!is_address(names->names[i]) && strcmp(names->names[i], "localhost") != 0)
            used +=
                (size_t)snprintf(text + used, size - used, ",permitted;DNS:%s", names->names[i]);
    }
}

static bool add_extension(X509 *certificate, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    bool is_added = extension && X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return is_added;
}

static bool set_subject(X509 *certificate, const char *common_name)
{
    return X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "O", MBSTRING_UTF8,
                                      (const unsigned char *)"Perfolio", -1, -1, 0) == 1 &&
           X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                      (const unsigned char *)common_name, -1, -1, 0) == 1;
}

static bool set_common(X509 *certificate, EVP_PKEY *key, int days)
{
    unsigned char serial[16];
    if (RAND_bytes(serial, sizeof(serial)) != 1)
        return false;
    serial[0] &= 0x7f; /* positive */
    serial[0] |= 0x40; /* and of one length */
    BIGNUM *number = BN_bin2bn(serial, sizeof(serial), NULL);
    bool is_set = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
    BN_free(number);
    /* One hour back, for clients whose clocks are slow. */
    return is_set && X509_set_version(certificate, X509_VERSION_3_VALUE) == 1 &&
           X509_gmtime_adj(X509_getm_notBefore(certificate), -3600) &&
           X509_time_adj_ex(X509_getm_notAfter(certificate), days, 0, NULL) &&
           X509_set_pubkey(certificate, key) == 1;
}

/* The subject is already set. */
static bool fill_ca(const struct identity *ca, const struct tls_names *names)
{
    char constraints[EXTENSION_BYTES];
    list_constraints(names, constraints, sizeof(constraints));
    X509 *certificate = ca->certificate;
    return set_common(certificate, ca->key, CA_DAYS) &&
           X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) == 1 &&
           add_extension(certificate, certificate, NID_basic_constraints,
                         "critical,CA:TRUE,pathlen:0") &&
           add_extension(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign") &&
           add_extension(certificate, certificate, NID_subject_key_identifier, "hash") &&
           add_extension(certificate, certificate, NID_name_constraints, constraints) &&
           X509_sign(certificate, ca->key, EVP_sha256()) > 0;
}

static bool fill_leaf(const struct identity *leaf, const struct identity *ca,
                      const struct tls_names *names)
{
    char alternatives[EXTENSION_BYTES], common_name[64];
    list_names(names, alternatives, sizeof(alternatives));
    snprintf(common_name, sizeof(common_name), "%.63s", names->names[0]);
    X509 *certificate = leaf->certificate;
    return set_common(certificate, leaf->key, LEAF_DAYS) && set_subject(certificate, common_name) &&
           X509_set_issuer_name(certificate, X509_get_subject_name(ca->certificate)) == 1 &&
           add_extension(certificate, ca->certificate, NID_basic_constraints,
                         "critical,CA:FALSE") &&
           add_extension(certificate, ca->certificate, NID_key_usage,
                         "critical,digitalSignature") &&
           add_extension(certificate, ca->certificate, NID_ext_key_usage, "serverAuth") &&
           add_extension(certificate, ca->certificate, NID_subject_key_identifier, "hash") &&
           add_extension(certificate, ca->certificate, NID_authority_key_identifier, "keyid") &&
           add_extension(certificate, ca->certificate, NID_subject_alt_name, alternatives) &&
           X509_sign(certificate, ca->key, EVP_sha256()) > 0;
}

static enum err_code make_identity(struct identity *identity, struct err *err)
{
    identity->key = EVP_EC_gen("P-256");
    identity->certificate = X509_new();
    if (!identity->key || !identity->certificate)
        return openssl_failed(err, "cannot make a key");
    return ERR_NONE;
}

/* Never prompts for a passphrase: a supervisor that waits for a terminal would stop watching its
 * children. */
static int no_password(char *buffer, int size, int is_writing, void *data)
{
    (void)buffer, (void)size, (void)is_writing, (void)data;
    return 0;
}

static void read_identity(const char *certificate_path, const char *key_path,
                          struct identity *identity)
{
    FILE *certificate = fopen(certificate_path, "re"), *key = fopen(key_path, "re");
    if (certificate)
        identity->certificate = PEM_read_X509(certificate, NULL, no_password, NULL);
    if (key)
        identity->key = PEM_read_PrivateKey(key, NULL, no_password, NULL);
    if (certificate)
        fclose(certificate);
    if (key)
        fclose(key);
    ERR_clear_error();
}

static bool is_sound(const struct identity *identity)
{
    time_t soon = time(NULL) + RENEW_DAYS * 86400;
    return identity->certificate && identity->key &&
           X509_check_private_key(identity->certificate, identity->key) == 1 &&
           X509_cmp_time(X509_get0_notAfter(identity->certificate), &soon) > 0;
}

static bool is_leaf_for(const struct identity *leaf, const struct identity *ca,
                        const struct tls_names *names)
{
    if (!is_sound(leaf) || X509_verify(leaf->certificate, ca->key) != 1)
        return false;
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->names[i];
        int matches = is_address(name) ? X509_check_ip_asc(leaf->certificate, name, 0)
                                       : X509_check_host(leaf->certificate, name, 0, 0, NULL);
        if (matches != 1)
            return false;
    }
    return true;
}

static bool may_sign(const struct identity *ca, const struct identity *leaf)
{
    NAME_CONSTRAINTS *constraints =
        X509_get_ext_d2i(ca->certificate, NID_name_constraints, NULL, NULL);
    /* Makes OpenSSL parse the names of a certificate that it has not read itself. */
    X509_check_purpose(leaf->certificate, -1, 0);
    bool may = constraints && NAME_CONSTRAINTS_check(leaf->certificate, constraints) == X509_V_OK;
    NAME_CONSTRAINTS_free(constraints);
    return may;
}

/* Writes name.new and renames it, so that readers see the complete old or new file. */
static enum err_code write_pem(const char *folder, const char *name, mode_t mode, gid_t group,
                               const void *data, size_t size, struct err *err)
{
    char path[PATH_MAX], new_path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    snprintf(new_path, sizeof(new_path), "%s/%s.new", folder, name);
    unlink(new_path);
    fd_auto fd = os_openat(AT_FDCWD, new_path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || (group != getegid() && fchown(fd, (uid_t)-1, group) != 0) ||
        fchmod(fd, mode) != 0 || os_write_all(fd, data, size) != 0 || os_fsync(fd) != 0 ||
        os_renameat(AT_FDCWD, new_path, AT_FDCWD, path) != 0)
        return err_set_errno(err, ERR_IO, "cannot write %s", path);
    return ERR_NONE;
}

static enum err_code write_identity(const char *folder, const char *name,
                                    const struct identity *identity, mode_t key_mode, gid_t group,
                                    struct err *err)
{
    char certificate_name[32], key_name[32];
    snprintf(certificate_name, sizeof(certificate_name), "%s.crt", name);
    snprintf(key_name, sizeof(key_name), "%s.key", name);
    BIO *certificate = BIO_new(BIO_s_mem()), *key = BIO_new(BIO_s_mem());
    enum err_code code = ERR_NONE;
    char *data;
    if (!certificate || !key || PEM_write_bio_X509(certificate, identity->certificate) != 1 ||
        PEM_write_bio_PrivateKey(key, identity->key, NULL, NULL, 0, NULL, NULL) != 1)
        code = openssl_failed(err, "cannot write a certificate");
    if (!code) {
        long size = BIO_get_mem_data(key, &data);
        code = write_pem(folder, key_name, key_mode, group, data, (size_t)size, err);
    }
    if (!code) {
        long size = BIO_get_mem_data(certificate, &data);
        code = write_pem(folder, certificate_name, 0644, group, data, (size_t)size, err);
    }
    BIO_free(certificate);
    BIO_free(key);
    return code;
}

static enum err_code make_ca(const struct tls_names *names, struct identity *ca, struct err *err)
{
    char host[200] = "this machine", common_name[64];
    gethostname(host, sizeof(host) - 1);
    snprintf(common_name, sizeof(common_name), "Perfolio local CA on %.40s", host);
    identity_fini(ca);
    enum err_code code = make_identity(ca, err);
    if (!code && (!set_subject(ca->certificate, common_name) || !fill_ca(ca, names)))
        code = openssl_failed(err, "cannot make the local CA");
    return code;
}

static enum err_code make_leaf(const struct tls_names *names, const struct identity *ca,
                               struct identity *leaf, struct err *err)
{
    identity_fini(leaf);
    enum err_code code = make_identity(leaf, err);
    if (!code && !fill_leaf(leaf, ca, names))
        code = openssl_failed(err, "cannot make the server's certificate");
    return code;
}

enum err_code tls_files_prepare(const char *folder, gid_t reader_group, const char *const *names,
                                size_t name_count, enum tls_files_change *ret_change,
                                struct err *err)
{
    char paths[4][PATH_MAX];
    static const char *const files[] = {"ca.crt", "ca.key", "server.crt", "server.key"};
    const struct tls_names wanted = {.names = names, .count = name_count};
    identity_auto ca = {0}, leaf = {0};
    for (int i = 0; i < 4; i++)
        snprintf(paths[i], sizeof(paths[i]), "%s/%s", folder, files[i]);
    read_identity(paths[0], paths[1], &ca);
    read_identity(paths[2], paths[3], &leaf);
    bool has_ca = is_sound(&ca);
    enum tls_files_change change = TLS_FILES_LEAF_NEW;
    if (has_ca && is_leaf_for(&leaf, &ca, &wanted)) {
        /* The reader's group may have changed, or the file may come from a backup. */
        if ((reader_group != getegid() && chown(paths[3], (uid_t)-1, reader_group) != 0) ||
            chmod(paths[0], 0644) != 0 || chmod(paths[2], 0644) != 0 || chmod(paths[3], 0640) != 0)
            return err_set_errno(err, ERR_IO, "cannot give %s to the server", paths[3]);
        *ret_change = TLS_FILES_KEPT;
        return ERR_NONE;
    }
    enum err_code code = has_ca ? make_leaf(&wanted, &ca, &leaf, err) : ERR_NONE;
    if (code)
        return code;
    if (!has_ca || !may_sign(&ca, &leaf)) {
        /* The CA counts as replaced also if its file is no longer readable, because clients may
         * still trust it. */
        change = access(paths[0], F_OK) == 0 ? TLS_FILES_CA_REPLACED : TLS_FILES_CA_MADE;
        code = make_ca(&wanted, &ca, err);
        if (code)
            return code;
        code = make_leaf(&wanted, &ca, &leaf, err);
    }
    if (code)
        return code;
    if (change != TLS_FILES_LEAF_NEW)
        code = write_identity(folder, "ca", &ca, 0600, getegid(), err);
    if (code)
        return code;
    code = write_identity(folder, "server", &leaf, 0640, reader_group, err);
    if (code)
        return code;
    *ret_change = change;
    return ERR_NONE;
}

enum err_code tls_files_fingerprint(const char *folder, char ret_text[TLS_FINGERPRINT_BYTES],
                                    struct err *err)
{
    char path[PATH_MAX];
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    identity_auto ca = {0};
    snprintf(path, sizeof(path), "%s/ca.crt", folder);
    read_identity(path, "/dev/null", &ca);
    if (!ca.certificate || X509_digest(ca.certificate, EVP_sha256(), hash, &size) != 1 ||
        3 * (size_t)size > TLS_FINGERPRINT_BYTES)
        return err_set(err, ERR_IO, "cannot read %s", path);
    for (unsigned i = 0; i < size; i++)
        snprintf(ret_text + (size_t)3 * i, 4, i + 1 < size ? "%02X:" : "%02X", hash[i]);
    return ERR_NONE;
}

static enum err_code read_file(const char *path, char *data, size_t size, size_t *ret_size,
                               struct err *err)
{
    fd_auto fd = os_openat(AT_FDCWD, path, O_RDONLY, 0);
    ssize_t got = fd < 0 ? -1 : os_pread(fd, data, size, 0);
    if (got < 0)
        return err_set_errno(err, ERR_INVALID, "cannot read %s", path);
    if ((size_t)got == size)
        return err_set(err, ERR_INVALID, "%s is too large for a PEM file", path);
    *ret_size = (size_t)got;
    return ERR_NONE;
}

/* Parses all of it, as the server does: the first certificate is followed by those that signed it.
 */
static bool is_chain(const char *data, size_t size)
{
    BIO *chain = BIO_new_mem_buf(data, (int)size);
    size_t count = 0;
    if (!chain)
        return false;
    ERR_clear_error();
    for (X509 *next; (next = PEM_read_bio_X509(chain, NULL, no_password, NULL)); count++)
        X509_free(next);
    unsigned long reason = ERR_peek_last_error();
    BIO_free(chain);
    ERR_clear_error();
    return count > 0 && ERR_GET_LIB(reason) == ERR_LIB_PEM &&
           ERR_GET_REASON(reason) == PEM_R_NO_START_LINE;
}

enum err_code tls_files_take_custom(const char *folder, gid_t reader_group, const char *certificate,
                                    const char *key, struct err *err)
{
    enum { PEM_MAX_BYTES = 256 * 1024 };
    char certificate_data[PEM_MAX_BYTES], key_data[PEM_MAX_BYTES];
    size_t certificate_bytes, key_bytes;
    identity_auto identity = {0};
    enum err_code code =
        read_file(certificate, certificate_data, sizeof(certificate_data), &certificate_bytes, err);
    if (code)
        return code;
    code = read_file(key, key_data, sizeof(key_data), &key_bytes, err);
    if (code)
        return code;
    read_identity(certificate, key, &identity);
    if (!identity.certificate)
        return err_set(err, ERR_INVALID, "%s has no PEM certificate", certificate);
    if (!is_chain(certificate_data, certificate_bytes))
        return err_set(err, ERR_INVALID, "%s has a certificate that cannot be read", certificate);
    if (!identity.key)
        return err_set(err, ERR_INVALID, "%s has no PEM private key without a password", key);
    if (X509_check_private_key(identity.certificate, identity.key) != 1) {
        ERR_clear_error();
        return err_set(err, ERR_INVALID, "%s is not the key of %s", key, certificate);
    }
    code = write_pem(folder, "custom.key", 0640, reader_group, key_data, key_bytes, err);
    if (!code)
        code = write_pem(folder, "custom.crt", 0644, reader_group, certificate_data,
                         certificate_bytes, err);
    OPENSSL_cleanse(key_data, sizeof(key_data));
    return code;
}

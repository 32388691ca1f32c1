#include "lib/base/digest.h"

#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <assert.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* N = 2^14 and r = 8 need 16 MiB; p = 5 repeats the computation. OWASP's table of scrypt parameters
 * rates this as strong as its first row, which needs 128 MiB. */
enum { SCRYPT_LOG_N = 14, SCRYPT_R = 8, SCRYPT_P = 5, SCRYPT_SALT_BYTES = 16 };
/* Limits for stored parameters, so that a row of the database cannot exhaust memory or time. */
enum { SCRYPT_MAX_LOG_N = 16, SCRYPT_MAX_R = 8, SCRYPT_MAX_P = 16 };

static const char base62_digits[] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
static const char hex_digits[] = "0123456789abcdef";

/*
 * SHA-256, fetched once per process and then never changed. OpenSSL 3 looks algorithms up by name
 * and property, and SHA256() and EVP_sha256() repeat that for each hash. For the few bytes of a
 * token or a series, the lookup takes more than half of the time.
 */
static EVP_MD *fetched_sha256;

static void fetch_sha256(void)
{
    fetched_sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    assert(fetched_sha256 && EVP_MD_get_size(fetched_sha256) == DIGEST_BYTES);
}

static const EVP_MD *get_sha256(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fetch_sha256);
    return fetched_sha256;
}

void digest_sha256(struct span data, uint8_t ret_hash[DIGEST_BYTES])
{
    unsigned size = DIGEST_BYTES;
    int done = EVP_Digest(data.size ? data.data : (const uint8_t *)"", data.size, ret_hash, &size,
                          get_sha256(), NULL);
    assert(done == 1 && size == DIGEST_BYTES);
}

void digest_md5(struct span data, uint8_t ret_hash[DIGEST_MD5_BYTES])
{
    unsigned size = DIGEST_MD5_BYTES;
    int done = EVP_Digest(data.size ? data.data : (const uint8_t *)"", data.size, ret_hash, &size,
                          EVP_md5(), NULL);
    assert(done == 1 && size == DIGEST_MD5_BYTES);
}

void digest_base64(struct span bytes, char *ret_text)
{
    assert(bytes.size <= INT32_MAX / 2);
    EVP_EncodeBlock((unsigned char *)ret_text, bytes.data, (int)bytes.size);
}

void digest_hmac_sha256(struct span key, struct span data, uint8_t ret_hash[DIGEST_BYTES])
{
    assert(key.size <= INT32_MAX);
    unsigned size = DIGEST_BYTES;
    const uint8_t *result = HMAC(EVP_sha256(), key.size ? key.data : (const uint8_t *)"",
                                 (int)key.size, data.data, data.size, ret_hash, &size);
    assert(result && size == DIGEST_BYTES);
}

struct digest_stream {
    EVP_MD_CTX *context;
};

struct digest_stream *digest_stream_create(void)
{
    struct digest_stream *stream = mem_new(struct digest_stream, 1);
    stream->context = EVP_MD_CTX_new();
    int done = stream->context && EVP_DigestInit_ex(stream->context, get_sha256(), NULL);
    assert(done == 1);
    return stream;
}

void digest_stream_destroy(struct digest_stream *stream)
{
    if (!stream)
        return;
    EVP_MD_CTX_free(stream->context);
    mem_free(stream);
}

void digest_stream_append(struct digest_stream *stream, struct span data)
{
    int done = EVP_DigestUpdate(stream->context, data.data, data.size);
    assert(done == 1);
}

void digest_stream_finish(struct digest_stream *stream, uint8_t ret_hash[DIGEST_BYTES])
{
    unsigned size = DIGEST_BYTES;
    int done = EVP_DigestFinal_ex(stream->context, ret_hash, &size);
    assert(done == 1 && size == DIGEST_BYTES);
}

void digest_random(void *bytes, size_t size)
{
    uint8_t *at = bytes;
    while (size) {
        ssize_t got = getrandom(at, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            fputs("level=error msg=\"the kernel gives no random numbers\"\n", stderr);
            abort();
        }
        at += got;
        size -= (size_t)got;
    }
}

void digest_base62(struct span bytes, size_t length, char *ret_text)
{
    uint8_t number[DIGEST_BYTES];
    assert(bytes.size <= sizeof(number));
    memcpy(number, bytes.data, bytes.size);
    /* Long division by 62, least significant digit first. */
    for (size_t i = length; i-- > 0;) {
        unsigned rest = 0;
        for (size_t j = 0; j < bytes.size; j++) {
            unsigned value = rest << 8 | number[j];
            number[j] = (uint8_t)(value / 62);
            rest = value % 62;
        }
        ret_text[i] = base62_digits[rest];
    }
    ret_text[length] = '\0';
    OPENSSL_cleanse(number, sizeof(number));
}

void digest_random_id(char ret_id[DIGEST_ID_BYTES])
{
    uint8_t bytes[16];
    digest_random(bytes, sizeof(bytes));
    digest_base62(span_of(bytes, sizeof(bytes)), DIGEST_ID_LENGTH, ret_id);
}

void digest_random_secret(char ret_secret[DIGEST_SECRET_BYTES])
{
    uint8_t bytes[32];
    digest_random(bytes, sizeof(bytes));
    digest_base62(span_of(bytes, sizeof(bytes)), DIGEST_SECRET_LENGTH, ret_secret);
    OPENSSL_cleanse(bytes, sizeof(bytes));
}

void digest_random_token(char ret_token[DIGEST_TOKEN_BYTES])
{
    memcpy(ret_token, "pf_", 3);
    digest_random_secret(ret_token + 3);
}

static bool is_base62(struct span text, size_t length)
{
    if (text.size != length)
        return false;
    for (size_t i = 0; i < length; i++) {
        uint8_t c = text.data[i];
        bool is_digit = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!is_digit)
            return false;
    }
    return true;
}

bool digest_is_id(struct span text)
{
    return is_base62(text, DIGEST_ID_LENGTH);
}

bool digest_is_secret(struct span text)
{
    return is_base62(text, DIGEST_SECRET_LENGTH);
}

void digest_hex(struct span bytes, char *ret_text)
{
    for (size_t i = 0; i < bytes.size; i++) {
        ret_text[2 * i] = hex_digits[bytes.data[i] >> 4];
        ret_text[2 * i + 1] = hex_digits[bytes.data[i] & 15];
    }
    ret_text[2 * bytes.size] = '\0';
}

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool digest_parse_hex(struct span text, uint8_t *ret_bytes, size_t size)
{
    if (text.size != 2 * size)
        return false;
    for (size_t i = 0; i < text.size; i++)
        if (hex_value(text.data[i]) < 0)
            return false;
    for (size_t i = 0; i < size; i++)
        ret_bytes[i] =
            (uint8_t)(hex_value(text.data[2 * i]) << 4 | hex_value(text.data[2 * i + 1]));
    return true;
}

bool digest_equal(struct span a, struct span b)
{
    return a.size == b.size && (a.size == 0 || CRYPTO_memcmp(a.data, b.data, a.size) == 0);
}

struct scrypt {
    unsigned log_n;
    unsigned r;
    unsigned p;
    uint8_t salt[SCRYPT_SALT_BYTES];
    uint8_t hash[DIGEST_BYTES];
};

static enum err_code derive(const struct scrypt *scrypt, struct span password,
                            uint8_t ret_hash[DIGEST_BYTES], struct err *err)
{
    uint64_t n = UINT64_C(1) << scrypt->log_n;
    uint64_t memory_limit = 128 * scrypt->r * (n + scrypt->p + 8) + (1 << 20);
    int done = EVP_PBE_scrypt(password.size ? (const char *)password.data : "", password.size,
                              scrypt->salt, sizeof(scrypt->salt), n, scrypt->r, scrypt->p,
                              memory_limit, ret_hash, DIGEST_BYTES);
    if (done != 1)
        return err_set(err, ERR_BUSY, "No memory to check a password now; try again");
    return ERR_NONE;
}

enum err_code digest_password_hash(struct span password, char ret_text[DIGEST_PASSWORD_BYTES],
                                   struct err *err)
{
    struct scrypt scrypt = {.log_n = SCRYPT_LOG_N, .r = SCRYPT_R, .p = SCRYPT_P};
    digest_random(scrypt.salt, sizeof(scrypt.salt));
    enum err_code code = derive(&scrypt, password, scrypt.hash, err);
    if (code)
        return code;
    char salt[2 * SCRYPT_SALT_BYTES + 1];
    char hash[DIGEST_HEX_BYTES];
    digest_hex(span_of(scrypt.salt, sizeof(scrypt.salt)), salt);
    digest_hex(span_of(scrypt.hash, sizeof(scrypt.hash)), hash);
    int size = snprintf(ret_text, DIGEST_PASSWORD_BYTES, "$scrypt$ln=%u,r=%u,p=%u$%s$%s",
                        scrypt.log_n, scrypt.r, scrypt.p, salt, hash);
    assert(size > 0 && size < DIGEST_PASSWORD_BYTES);
    return ERR_NONE;
}

static bool parse_stored(const char *stored, struct scrypt *ret_scrypt)
{
    char salt[2 * SCRYPT_SALT_BYTES + 1];
    char hash[DIGEST_HEX_BYTES];
    int end = -1;
    int count = sscanf(stored, "$scrypt$ln=%2u,r=%2u,p=%2u$%32[0-9a-f]$%64[0-9a-f]%n",
                       &ret_scrypt->log_n, &ret_scrypt->r, &ret_scrypt->p, salt, hash, &end);
    if (count != 5 || end < 0 || stored[end] != '\0')
        return false;
    if (ret_scrypt->log_n < 1 || ret_scrypt->log_n > SCRYPT_MAX_LOG_N || ret_scrypt->r < 1 ||
        ret_scrypt->r > SCRYPT_MAX_R || ret_scrypt->p < 1 || ret_scrypt->p > SCRYPT_MAX_P)
        return false;
    return digest_parse_hex(span_text(salt), ret_scrypt->salt, sizeof(ret_scrypt->salt)) &&
           digest_parse_hex(span_text(hash), ret_scrypt->hash, sizeof(ret_scrypt->hash));
}

enum err_code digest_password_verify(struct span password, const char *stored, bool *ret_matches,
                                     struct err *err)
{
    struct scrypt scrypt = {0};
    if (!parse_stored(stored, &scrypt)) {
        *ret_matches = false;
        return ERR_NONE;
    }
    uint8_t hash[DIGEST_BYTES];
    enum err_code code = derive(&scrypt, password, hash, err);
    if (code)
        return code;
    *ret_matches = digest_equal(span_of(hash, sizeof(hash)), span_of(scrypt.hash, sizeof(hash)));
    return ERR_NONE;
}

#include "lib/io/s3_sign.h"

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

enum { DATE_LENGTH = 8, CANONICAL_MAX_BYTES = 64 << 10 };

void s3_sign_time(int64_t wall_ns, char ret_text[S3_SIGN_TIME_BYTES])
{
    time_t seconds = (time_t)(wall_ns / CLOCK_NS_PER_S);
    struct tm utc;
    if (!gmtime_r(&seconds, &utc) ||
        !strftime(ret_text, S3_SIGN_TIME_BYTES, "%Y%m%dT%H%M%SZ", &utc))
        snprintf(ret_text, S3_SIGN_TIME_BYTES, "19700101T000000Z");
}

static void append_signed_names(const struct s3_sign_request *request, struct buf *text)
{
    for (size_t i = 0; i < request->field_count; i++)
        buf_printf(text, "%s%s", i ? ";" : "", request->fields[i].name);
}

static void hash_canonical_request(const struct s3_sign_request *request,
                                   char ret_hex[DIGEST_HEX_BYTES])
{
    uint8_t hash[DIGEST_BYTES];
    buf_auto text;
    buf_init(&text, CANONICAL_MAX_BYTES);
    buf_printf(&text, "%s\n%s\n%s\n", request->method, request->path, request->query);
    for (size_t i = 0; i < request->field_count; i++)
        buf_printf(&text, "%s:%s\n", request->fields[i].name, request->fields[i].value);
    buf_append_byte(&text, '\n');
    append_signed_names(request, &text);
    buf_printf(&text, "\n%s", request->payload_hash);
    assert(!buf_failed(&text)); /* its parts are bounded by the caller: keys, tokens, our queries */
    digest_sha256(buf_span(&text), hash);
    digest_hex(span_of(hash, sizeof(hash)), ret_hex);
}

/* One step of the chain: key = HMAC(key, text). */
static void extend_key(uint8_t key[DIGEST_BYTES], struct span text)
{
    uint8_t next[DIGEST_BYTES];
    digest_hmac_sha256(span_of(key, DIGEST_BYTES), text, next);
    memcpy(key, next, DIGEST_BYTES);
}

static void derive_key(const struct s3_sign_request *request, uint8_t ret_key[DIGEST_BYTES])
{
    buf_auto secret;
    buf_init(&secret, CANONICAL_MAX_BYTES);
    buf_printf(&secret, "AWS4%s", request->secret_key);
    assert(!buf_failed(&secret));
    digest_hmac_sha256(buf_span(&secret), span_of(request->time, DATE_LENGTH), ret_key);
    explicit_bzero(secret.data, secret.size);
    extend_key(ret_key, span_text(request->region));
    extend_key(ret_key, SPAN_LITERAL("s3"));
    extend_key(ret_key, SPAN_LITERAL("aws4_request"));
}

void s3_sign_authorization(const struct s3_sign_request *request, struct buf *text)
{
    char hex[DIGEST_HEX_BYTES];
    uint8_t key[DIGEST_BYTES];
    buf_auto scope, to_sign;
    buf_init(&scope, CANONICAL_MAX_BYTES);
    buf_init(&to_sign, CANONICAL_MAX_BYTES);
    hash_canonical_request(request, hex);
    buf_printf(&scope, "%.*s/%s/s3/aws4_request", DATE_LENGTH, request->time, request->region);
    buf_printf(&to_sign, "AWS4-HMAC-SHA256\n%s\n", request->time);
    buf_append_span(&to_sign, buf_span(&scope));
    buf_printf(&to_sign, "\n%s", hex);
    assert(!buf_failed(&to_sign));

    derive_key(request, key);
    extend_key(key, buf_span(&to_sign));
    digest_hex(span_of(key, sizeof(key)), hex);
    explicit_bzero(key, sizeof(key));
    buf_printf(text, "AWS4-HMAC-SHA256 Credential=%s/%.*s,SignedHeaders=", request->access_key,
               SPAN_PRINT(buf_span(&scope)));
    append_signed_names(request, text);
    buf_printf(text, ",Signature=%s", hex);
}

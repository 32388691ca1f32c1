#include "tests/unit/test.h"

#include "lib/base/digest.h"
#include "lib/base/err.h"

#include <pthread.h>
#include <string.h>

static const char *hex_of(const uint8_t hash[DIGEST_BYTES], char text[DIGEST_HEX_BYTES])
{
    digest_hex(span_of(hash, DIGEST_BYTES), text);
    return text;
}

static void sha256_equals_the_standards_examples(void **state)
{
    (void)state;
    uint8_t hash[DIGEST_BYTES];
    char text[DIGEST_HEX_BYTES];
    digest_sha256(SPAN_LITERAL("abc"), hash);
    assert_string_equal(hex_of(hash, text),
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    digest_sha256((struct span){0}, hash);
    assert_string_equal(hex_of(hash, text),
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void a_stream_in_pieces_equals_the_whole(void **state)
{
    (void)state;
    uint8_t whole[DIGEST_BYTES], pieces[DIGEST_BYTES];
    digest_sha256(SPAN_LITERAL("one two three"), whole);
    struct digest_stream *stream = digest_stream_create();
    digest_stream_append(stream, SPAN_LITERAL("one "));
    digest_stream_append(stream, (struct span){0});
    digest_stream_append(stream, SPAN_LITERAL("two three"));
    digest_stream_finish(stream, pieces);
    digest_stream_destroy(stream);
    digest_stream_destroy(NULL);
    assert_memory_equal(whole, pieces, DIGEST_BYTES);
}

static void *hash_in_thread(void *hash)
{
    digest_sha256(SPAN_LITERAL("abc"), hash);
    return NULL;
}

/* Runs first, when the algorithm has not been fetched yet. */
static void threads_that_hash_first_and_at_once_hash_the_same(void **state)
{
    (void)state;
    enum { THREADS = 16 };
    pthread_t threads[THREADS];
    uint8_t hashes[THREADS][DIGEST_BYTES];
    char text[DIGEST_HEX_BYTES];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hash_in_thread, hashes[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_string_equal(hex_of(hashes[i], text),
                            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}

/* RFC 4231, test case 2. */
static void md5_and_base64_equal_the_rfcs_examples(void **state)
{
    (void)state;
    uint8_t hash[DIGEST_MD5_BYTES];
    char hex[2 * DIGEST_MD5_BYTES + 1], text[32];
    digest_md5(SPAN_LITERAL("message digest"), hash);
    digest_hex(span_of(hash, sizeof(hash)), hex);
    assert_string_equal(hex, "f96b697d7cb7938d525a2f31aaf161d0");
    digest_md5((struct span){0}, hash);
    digest_hex(span_of(hash, sizeof(hash)), hex);
    assert_string_equal(hex, "d41d8cd98f00b204e9800998ecf8427e");
    digest_base64(span_of(hash, sizeof(hash)), text);
    assert_string_equal(text, "1B2M2Y8AsgTpgAmY7PhCfg==");
    digest_base64(SPAN_LITERAL("foobar"), text);
    assert_string_equal(text, "Zm9vYmFy");
}

static void hmac_equals_the_rfcs_example(void **state)
{
    (void)state;
    uint8_t hash[DIGEST_BYTES];
    char text[DIGEST_HEX_BYTES];
    digest_hmac_sha256(SPAN_LITERAL("Jefe"), SPAN_LITERAL("what do ya want for nothing?"), hash);
    assert_string_equal(hex_of(hash, text),
                        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

static void base62_has_a_fixed_length_and_keeps_order(void **state)
{
    (void)state;
    char text[DIGEST_SECRET_BYTES];
    uint8_t number[32] = {0};
    digest_base62(span_of(number, 16), DIGEST_ID_LENGTH, text);
    assert_string_equal(text, "0000000000000000000000");
    number[15] = 61;
    digest_base62(span_of(number, 16), DIGEST_ID_LENGTH, text);
    assert_string_equal(text, "000000000000000000000z");
    number[15] = 62;
    digest_base62(span_of(number, 16), DIGEST_ID_LENGTH, text);
    assert_string_equal(text, "0000000000000000000010");
    memset(number, 0xff, sizeof(number));
    digest_base62(span_of(number, 16), DIGEST_ID_LENGTH, text);
    assert_string_equal(text, "7n42DGM5Tflk9n8mt7Fhc7"); /* 2^128 - 1 */
    digest_base62(span_of(number, 32), DIGEST_SECRET_LENGTH, text);
    assert_int_equal(strlen(text), DIGEST_SECRET_LENGTH);
}

static void random_texts_have_their_form_and_differ(void **state)
{
    (void)state;
    char id[DIGEST_ID_BYTES], other_id[DIGEST_ID_BYTES], token[DIGEST_TOKEN_BYTES];
    digest_random_id(id);
    digest_random_id(other_id);
    digest_random_token(token);
    assert_true(digest_is_id(span_text(id)));
    assert_string_not_equal(id, other_id);
    assert_int_equal(strlen(token), DIGEST_TOKEN_LENGTH);
    assert_memory_equal(token, "pf_", 3);
    assert_true(digest_is_secret(span_text(token + 3)));
    assert_false(digest_is_id(span_text(token)));
    assert_false(digest_is_id(SPAN_LITERAL("0123456789012345678901-")));
    assert_false(digest_is_id(SPAN_LITERAL("012345678901234567890/")));
}

static void hex_is_read_back_and_refuses_other_digits(void **state)
{
    (void)state;
    uint8_t bytes[2];
    assert_true(digest_parse_hex(SPAN_LITERAL("0aFf"), bytes, 2));
    assert_int_equal(bytes[0], 0x0a);
    assert_int_equal(bytes[1], 0xff);
    assert_false(digest_parse_hex(SPAN_LITERAL("0aF"), bytes, 2));
    assert_false(digest_parse_hex(SPAN_LITERAL("0aFg"), bytes, 2));
}

static void equal_compares_sizes_and_bytes(void **state)
{
    (void)state;
    assert_true(digest_equal(SPAN_LITERAL("abc"), SPAN_LITERAL("abc")));
    assert_false(digest_equal(SPAN_LITERAL("abc"), SPAN_LITERAL("abd")));
    assert_false(digest_equal(SPAN_LITERAL("abc"), SPAN_LITERAL("ab")));
    assert_true(digest_equal((struct span){0}, (struct span){0}));
}

static bool fits(const char *password, const char *stored)
{
    struct err err;
    bool matches = true;
    assert_int_equal(digest_password_verify(span_text(password), stored, &matches, &err), ERR_NONE);
    return matches;
}

static void a_password_fits_its_own_hash_only(void **state)
{
    (void)state;
    struct err err;
    char first[DIGEST_PASSWORD_BYTES], second[DIGEST_PASSWORD_BYTES];
    assert_int_equal(digest_password_hash(SPAN_LITERAL("correct horse"), first, &err), ERR_NONE);
    assert_int_equal(digest_password_hash(SPAN_LITERAL("correct horse"), second, &err), ERR_NONE);
    assert_string_not_equal(first, second);
    assert_memory_equal(first, "$scrypt$ln=14,r=8,p=5$", 22);
    assert_true(fits("correct horse", first));
    assert_false(fits("correct horsf", first));
    assert_false(fits("", first));
}

/* hashlib.scrypt(b"password", salt=bytes(range(16)), n=4, r=1, p=1, dklen=32) of CPython. */
static void stored_parameters_are_used(void **state)
{
    (void)state;
    assert_true(fits("password",
                     "$scrypt$ln=2,r=1,p=1$000102030405060708090a0b0c0d0e0f$"
                     "01a416ddc5dec0977425cc451e1e12944419680ba07a8b52579f99718ee487fa"));
}

static void malformed_or_costly_stored_texts_never_match(void **state)
{
    (void)state;
#define SALT "$00000000000000000000000000000000$"
#define HASH "0000000000000000000000000000000000000000000000000000000000000000"
    assert_false(fits("x", ""));
    assert_false(fits("x", "plain"));
    assert_false(fits("x", "$scrypt$ln=2,r=1,p=1" SALT));
    assert_false(fits("x", "$scrypt$ln=2,r=1,p=1" SALT HASH "0"));
    assert_false(fits("x", "$scrypt$ln=0,r=1,p=1" SALT HASH));
    assert_false(fits("x", "$scrypt$ln=30,r=1,p=1" SALT HASH));
    assert_false(fits("x", "$scrypt$ln=14,r=99,p=1" SALT HASH));
    assert_false(fits("x", "$scrypt$ln=2,r=1,p=1" SALT HASH));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_hash_first_and_at_once_hash_the_same),
        cmocka_unit_test(sha256_equals_the_standards_examples),
        cmocka_unit_test(a_stream_in_pieces_equals_the_whole),
        cmocka_unit_test(md5_and_base64_equal_the_rfcs_examples),
        cmocka_unit_test(hmac_equals_the_rfcs_example),
        cmocka_unit_test(base62_has_a_fixed_length_and_keeps_order),
        cmocka_unit_test(random_texts_have_their_form_and_differ),
        cmocka_unit_test(hex_is_read_back_and_refuses_other_digits),
        cmocka_unit_test(equal_compares_sizes_and_bytes),
        cmocka_unit_test(a_password_fits_its_own_hash_only),
        cmocka_unit_test(stored_parameters_are_used),
        cmocka_unit_test(malformed_or_costly_stored_texts_never_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

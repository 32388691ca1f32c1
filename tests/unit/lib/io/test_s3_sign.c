/* The examples of "Authenticating Requests: Using the Authorization Header", Amazon S3 API. */
#include "tests/unit/test.h"

#include "lib/base/buf.h"
#include "lib/io/s3_sign.h"

#include <stdio.h>

#define EMPTY_HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define HOST "examplebucket.s3.amazonaws.com"
#define TIME "20130524T000000Z"
#define CREDENTIAL                                                                                 \
    "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"

static void assert_signed(struct s3_sign_request request, const char *expected)
{
    buf_auto text;
    buf_init(&text, 1024);
    request.time = TIME;
    request.access_key = "AKIAIOSFODNN7EXAMPLE";
    request.secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    request.region = "us-east-1";
    s3_sign_authorization(&request, &text);
    buf_append_byte(&text, 0);
    assert_string_equal((const char *)text.data, expected);
}

static void signs_the_example_of_a_get_with_a_range(void **state)
{
    (void)state;
    const struct s3_sign_field fields[] = {{"host", HOST},
                                           {"range", "bytes=0-9"},
                                           {"x-amz-content-sha256", EMPTY_HASH},
                                           {"x-amz-date", TIME}};
    assert_signed((struct s3_sign_request){.method = "GET",
                                           .path = "/test.txt",
                                           .query = "",
                                           .fields = fields,
                                           .field_count = 4,
                                           .payload_hash = EMPTY_HASH},
                  CREDENTIAL "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature="
                             "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

static void signs_the_example_of_a_put(void **state)
{
    (void)state;
    static const char hash[] = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    const struct s3_sign_field fields[] = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                           {"host", HOST},
                                           {"x-amz-content-sha256", hash},
                                           {"x-amz-date", TIME},
                                           {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
    assert_signed(
        (struct s3_sign_request){.method = "PUT",
                                 .path = "/test%24file.text",
                                 .query = "",
                                 .fields = fields,
                                 .field_count = 5,
                                 .payload_hash = hash},
        CREDENTIAL
        "SignedHeaders=date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class,Signature="
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

static void signs_the_examples_with_a_query(void **state)
{
    (void)state;
    static const struct {
        const char *query, *signature;
    } examples[] = {
        {"lifecycle=", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
        {"max-keys=2&prefix=J", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
    };
    const struct s3_sign_field fields[] = {
        {"host", HOST}, {"x-amz-content-sha256", EMPTY_HASH}, {"x-amz-date", TIME}};
    for (size_t i = 0; i < 2; i++) {
        char expected[512];
        snprintf(expected, sizeof(expected),
                 CREDENTIAL "SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature=%s",
                 examples[i].signature);
        assert_signed((struct s3_sign_request){.method = "GET",
                                               .path = "/",
                                               .query = examples[i].query,
                                               .fields = fields,
                                               .field_count = 3,
                                               .payload_hash = EMPTY_HASH},
                      expected);
    }
}

static void writes_the_time_in_utc(void **state)
{
    (void)state;
    char text[S3_SIGN_TIME_BYTES];
    s3_sign_time(INT64_C(1369353600999999999), text);
    assert_string_equal(text, TIME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signs_the_example_of_a_get_with_a_range),
        cmocka_unit_test(signs_the_example_of_a_put),
        cmocka_unit_test(signs_the_examples_with_a_query),
        cmocka_unit_test(writes_the_time_in_utc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

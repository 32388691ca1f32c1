/* Errors of S3 servers, and the messages with advice that they become. */
#include "tests/unit/test.h"

#include "lib/base/err.h"
#include "lib/io/s3_failure.h"

#include <stdio.h>
#include <string.h>

struct example {
    int status;
    const char *fields, *body;
    enum err_code code;
    const char *words; /* in the message */
};

static void assert_described(const char *method, struct example example)
{
    struct err err;
    struct s3_request request;
    http_client_response_auto response;
    char bucket[] = "profiles", host[] = "s3.example.org", prefix[] = "p/", region[] = "us-east-1";
    const struct s3_settings settings = {
        .bucket = bucket, .host = host, .prefix = prefix, .region = region};
    http_client_response_init(&response);
    s3_request_init(&request, "read", method, "share/a");
    response.status = example.status;
    buf_append_text(&response.fields, example.fields);
    buf_append_text(&response.body, example.body);
    enum err_code code = s3_failure_describe(&settings, &request, &response, &err);
    if (code != example.code || err.code != code || !strstr(err.message, example.words) ||
        !strstr(err.message, "cannot read p/share/a in bucket profiles of s3.example.org"))
        fail_msg("%d %s: %s: %s", example.status, example.body, err_code_name(code), err.message);
}

#define BODY(code) "<?xml version='1.0'?><Error><Code>" code "</Code><Message>m</Message></Error>"

static void explains_each_error_of_a_server(void **state)
{
    (void)state;
    static const struct example examples[] = {
        {404, "", BODY("NoSuchKey"), ERR_NOT_FOUND, "NoSuchKey: m"},
        {404, "", BODY("NoSuchBucket"), ERR_INVALID, "no such bucket"},
        {404, "", BODY("NoSuchUpload"), ERR_GONE, "NoSuchUpload"},
        {416, "", BODY("InvalidRange"), ERR_CORRUPT, "InvalidRange"},
        {403, "", BODY("SignatureDoesNotMatch"), ERR_UNAUTHENTICATED, "check the secret key"},
        {403, "", BODY("InvalidAccessKeyId"), ERR_UNAUTHENTICATED, "access key"},
        {403, "", BODY("AccessDenied"), ERR_FORBIDDEN, "may not read there; allow it s3:List"},
        {403, "", BODY("InvalidObjectState"), ERR_FORBIDDEN, "HTTP 403 InvalidObjectState"},
        {403, "Date: Tue, 01 Jan 2030 00:00:00 GMT\r\n", BODY("RequestTimeTooSkewed"),
         ERR_UNAUTHENTICATED, "at the server Tue, 01 Jan 2030"},
        {400, "", "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-1</Region></Error>",
         ERR_INVALID, "set the region to eu-1"},
        {301, "x-amz-bucket-region: eu-2\r\n", "", ERR_INVALID, "set the region to eu-2"},
        {307, "", BODY("TemporaryRedirect"), ERR_INVALID, "check the endpoint"},
        {503, "", BODY("SlowDown"), ERR_BUSY, "HTTP 503 SlowDown: m"},
        {500, "", BODY("NeverHeardOf"), ERR_BUSY, "NeverHeardOf"},
        {200, "", BODY("InternalError"), ERR_BUSY, "InternalError"},
        {400, "", BODY("RequestTimeout"), ERR_TIMEOUT, "RequestTimeout"},
        {400, "", BODY("NeverHeardOf"), ERR_IO, "HTTP 400 NeverHeardOf"},
        {429, "", "too many", ERR_BUSY, "HTTP 429"},
        {501, "", "", ERR_UNSUPPORTED, "HTTP 501"},
    };
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++)
        assert_described("GET", examples[i]);
}

/* A page of a web server instead of S3 does not mean that an object does not exist. */
static void only_s3_can_report_that_an_object_does_not_exist(void **state)
{
    (void)state;
    assert_described("GET", (struct example){404, "", "<html>no</html>", ERR_NETWORK, "HTTP 404"});
    assert_described("GET", (struct example){404, "", "", ERR_NETWORK, "HTTP 404"});
    assert_described(
        "GET", (struct example){404, "", "<Error><Code>NoSuchKey</Code>", ERR_NETWORK, "HTTP 404"});
    assert_described("HEAD", (struct example){404, "", "", ERR_NOT_FOUND, "HTTP 404"});
}

static void repeats_no_terminal_controls(void **state)
{
    (void)state;
    assert_described("GET", (struct example){400, "",
                                             "<Error><Code>Odd</Code><Message>a&#x9b;2J&#10;b"
                                             "</Message></Error>",
                                             ERR_IO, "Odd: a??2J?b"});
    /* An escape byte is not well-formed XML, so only the status is described. */
    assert_described("GET", (struct example){400, "",
                                             "<Error><Code>Odd</Code><Message>a\x1b[2J"
                                             "</Message></Error>",
                                             ERR_IO, "HTTP 400"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explains_each_error_of_a_server),
        cmocka_unit_test(only_s3_can_report_that_an_object_does_not_exist),
        cmocka_unit_test(repeats_no_terminal_controls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

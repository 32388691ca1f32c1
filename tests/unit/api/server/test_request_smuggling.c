#include "tests/unit/test.h"

#include "api/server/request_smuggling.h"

static const char *check(const char *head)
{
    return request_smuggling_check(span_text(head));
}

static void lets_ordinary_heads_pass(void **state)
{
    (void)state;
    assert_null(check("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert_null(check("GET / HTTP/1.0\r\n\r\n"));
    assert_null(check("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert_null(check("POST / HTTP/1.1\r\nhOsT: a\r\nContent-Length: 3\r\n\r\nabc\n\n"));
    assert_null(check("POST / HTTP/1.1\r\nHost:a\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n"));
}

static void reads_nothing_after_the_head(void **state)
{
    (void)state;
    assert_null(check("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"
                      "Host: b\r\nContent-Length: 1\n"));
}

static void refuses_ambiguous_requests(void **state)
{
    (void)state;
    static const struct {
        const char *head, *word;
    } heads[] = {
        {"GET / HTTP/1.1\r\n\r\n", "Host"},
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "Host"},
        {"GET / HTTP/1.1\nHost: a\r\n\r\n", "CR"},
        {"GET / HTTP/1.1\r\nHost: a\n\r\n", "CR"},
        {"GET / HTTP/1.1\r\nHost: a\r\n\n", "CR"},
        {"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", "continued"},
        {"GET / HTTP/1.1\r\nHost: a\r\n\tb\r\n\r\n", "continued"},
        {"GET / HTTP/1.1\r\nHost a\r\n\r\n", "colon"},
        {"GET / HTTP/1.2\r\nHost: a\r\n\r\n", "HTTP/1.1"},
        {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "HTTP/1.1"},
        {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "malformed"},
        {"GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n", "control"},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\n",
         "Content-Length"},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
         "exclude"},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
         "Transfer-Encoding: chunked\r\n\r\n",
         "Transfer-Encoding"},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", "chunked"},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0"},
        {"GET / HTTP/1.1\r\nHost: a\r\n", "short"},
        {"", "short"},
        {"\r\n", "short"},
    };
    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
        const char *problem = check(heads[i].head);
        assert_non_null(problem);
        assert_non_null(strstr(problem, heads[i].word));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lets_ordinary_heads_pass),
        cmocka_unit_test(reads_nothing_after_the_head),
        cmocka_unit_test(refuses_ambiguous_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

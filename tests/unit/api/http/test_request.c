#include "tests/unit/test.h"

#include "api/http/request.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

static int set_up(void **state)
{
    *state = arena_create();
    return 0;
}

static int tear_down(void **state)
{
    arena_destroy(*state);
    return 0;
}

static struct request with_query(struct arena *arena, const char *query)
{
    return (struct request){.arena = arena, .query = span_text(query)};
}

static struct request with_field(struct arena *arena, const char *name, const char *value)
{
    struct http_field *field = arena_new(arena, struct http_field, 1);
    *field = (struct http_field){.name = span_text(name), .value = span_text(value)};
    return (struct request){.arena = arena, .fields = field, .field_count = 1};
}

static void finds_and_decodes_parameters(void **state)
{
    struct request request =
        with_query(*state, "a=1&b=x%20y+z&a=2&empty=&bare&%63=%zz%4&&=none&d=%00");
    struct span value;
    assert_true(request_query(&request, "a", &value) && span_equal_text(value, "1"));
    assert_true(request_query_nth(&request, "a", 1, &value) && span_equal_text(value, "2"));
    assert_false(request_query_nth(&request, "a", 2, &value));
    assert_true(request_query(&request, "b", &value) && span_equal_text(value, "x y z"));
    assert_true(request_query(&request, "empty", &value) && value.size == 0);
    assert_true(request_query(&request, "bare", &value) && value.size == 0);
    assert_true(request_query(&request, "c", &value) && span_equal_text(value, "%zz%4"));
    assert_true(request_query(&request, "d", &value) && value.size == 1 && value.data[0] == 0);
    assert_false(request_query(&request, "absent", &value));
}

static void a_query_is_limited_before_it_is_read(void **state)
{
    enum { MOST = REQUEST_MAX_PARAMETERS };
    char query[3 * (MOST + 1) + 1];
    struct err err;
    for (int i = 0; i <= MOST; i++)
        memcpy(query + 3 * (size_t)i, "lb&", 4);
    struct request request = with_query(*state, query);
    assert_int_equal(request_check_query_size(&request, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "parameters"));
    request.query.size -= 4;
    assert_int_equal(request_check_query_size(&request, &err), ERR_NONE);
    const size_t before = arena_bytes(*state);
    struct span value;
    assert_false(request_query_nth(&request, "other", 0, &value));
    assert_false(request_query_nth(&request, "lb", MOST, &value));
    assert_int_equal(arena_bytes(*state), before);
    char *text = arena_alloc(*state, REQUEST_MAX_QUERY_BYTES + 2, 1);
    memset(text, 'a', REQUEST_MAX_QUERY_BYTES + 1);
    request = with_query(*state, text);
    assert_int_equal(request_check_query_size(&request, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "bytes"));
}

static void reads_numbers_within_their_range(void **state)
{
    struct request request = with_query(*state, "n=7&low=-1&word=x&big=99999999999999999999");
    struct err err;
    int64_t number;
    assert_int_equal(request_query_i64(&request, "n", 0, 10, 3, &number, &err), ERR_NONE);
    assert_int_equal(number, 7);
    assert_int_equal(request_query_i64(&request, "absent", 0, 10, 3, &number, &err), ERR_NONE);
    assert_int_equal(number, 3);
    static const char *const wrong[] = {"low", "word", "big"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(request_query_i64(&request, wrong[i], 0, 10, 3, &number, &err),
                         ERR_INVALID);
        assert_non_null(strstr(err.message, wrong[i]));
    }
}

static void names_an_unknown_parameter(void **state)
{
    static const char *const known[] = {"focus", "limit", NULL};
    struct err err;
    struct request good = with_query(*state, "limit=1&focus=a%2f");
    assert_int_equal(request_check_query(&good, known, &err), ERR_NONE);
    struct request bad = with_query(*state, "limit=1&f%6fcsu%0a=a");
    assert_int_equal(request_check_query(&bad, known, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "\"focsu?\""));
}

static void names_a_repeated_parameter(void **state)
{
    static const char *const single[] = {"limit", "a", NULL}, *const several[] = {"focus", NULL};
    struct err err;
    struct request good = with_query(*state, "focus=x&limit=1&focus=x&a=1");
    assert_int_equal(request_check_parameters(&good, single, several, &err), ERR_NONE);
    static const char *const twice[] = {"limit=1&a=1&limit=2", "limit&limit", "limit=1&l%69mit=1"};
    for (size_t i = 0; i < sizeof(twice) / sizeof(*twice); i++) {
        struct request bad = with_query(*state, twice[i]);
        assert_int_equal(request_check_parameters(&bad, single, several, &err), ERR_INVALID);
        assert_non_null(strstr(err.message, "limit is given more than once"));
        assert_int_equal(request_check_parameters(&bad, single, NULL, &err), ERR_INVALID);
    }
}

static void names_a_parameter_with_an_invalid_escape(void **state)
{
    static const char *const single[] = {"limit", NULL}, *const several[] = {"focus", NULL};
    static const char *const broken[] = {"%", "%z", "%zz", "a%4", "%4g", "%2525%", "%%41"};
    struct err err;
    for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
        struct request bad =
            with_query(*state, arena_printf(*state, "focus=a&focus=%s&limit=1", broken[i]));
        assert_int_equal(request_check_parameters(&bad, single, several, &err), ERR_INVALID);
        assert_non_null(strstr(err.message, "focus"));
    }
    struct request good = with_query(*state, "focus=%25zz&limit=%31");
    assert_int_equal(request_check_parameters(&good, single, several, &err), ERR_NONE);
}

static void accepts_unknown_parameters_if_allowed(void **state)
{
    static const char *const single[] = {"url", NULL};
    struct err err;
    struct request request = with_query(*state, "url=a&utm=%zz&utm=1");
    assert_int_equal(request_check_parameters(&request, single, NULL, &err), ERR_NONE);
}

static void finds_cookies_by_whole_name(void **state)
{
    struct request request =
        with_field(*state, "cookie", "xid=1; id=two ;  other = 3;id=late; novalue");
    assert_true(span_equal_text(request_cookie(&request, "id"), "two"));
    assert_true(span_equal_text(request_cookie(&request, "other"), "3"));
    assert_int_equal(request_cookie(&request, "i").size, 0);
    assert_int_equal(request_cookie(&request, "novalue").size, 0);
}

static void respects_refused_codings(void **state)
{
    struct request request =
        with_field(*state, "accept-encoding", "GZIP ; q=0.5, br;q=0, zstd;q=0.000,identity");
    assert_true(request_accepts_encoding(&request, "gzip"));
    assert_false(request_accepts_encoding(&request, "br"));
    assert_false(request_accepts_encoding(&request, "zstd"));
    assert_false(request_accepts_encoding(&request, "zst"));
    struct request none = {.arena = *state};
    assert_false(request_accepts_encoding(&none, "gzip"));
}

static void responds_304_when_a_tag_matches(void **state)
{
    static const struct {
        const char *wanted;
        bool is_cached;
    } cases[] = {{"\"abc\"", true},   {"W/\"abc\"", true}, {"\"x\", W/\"abc\"", true}, {"*", true},
                 {"\"abcd\"", false}, {"abc", false},      {"\"x\" , \"abc\"", true},  {"", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct request request = with_field(*state, "if-none-match", cases[i].wanted);
        struct response response = {.status = 200};
        assert_int_equal(response_is_cached(&request, &response, "\"abc\"", "no-cache"),
                         cases[i].is_cached);
        assert_int_equal(response.status, cases[i].is_cached ? 304 : 200);
        assert_int_equal(response.field_count, 2);
    }
    struct request post = with_field(*state, "if-none-match", "*");
    post.method = HTTP_POST;
    struct response response = {.status = 200};
    assert_false(response_is_cached(&post, &response, "\"abc\"", "no-cache"));
}

static void keeps_many_response_fields(void **state)
{
    struct request request = {.arena = *state};
    struct response response = {0};
    for (int i = 0; i < 50; i++)
        response_add(&request, &response, arena_printf(*state, "x-%d", i), "value");
    assert_int_equal(response.field_count, 50);
    assert_true(span_equal_text(response.fields[0].name, "x-0"));
    assert_true(span_equal_text(response.fields[49].name, "x-49"));
}

static void refuses_a_response_that_did_not_fit(void **state)
{
    struct request request = {.arena = *state};
    struct response response = {0};
    struct err err;
    buf_auto buf;
    buf_init(&buf, 4);
    buf_append_text(&buf, "too long");
    assert_int_equal(response_buf(&request, &response, 200, "text/plain", &buf, &err),
                     ERR_TOO_LARGE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(finds_and_decodes_parameters),
        TEST(a_query_is_limited_before_it_is_read),
        TEST(reads_numbers_within_their_range),
        TEST(names_an_unknown_parameter),
        TEST(names_a_repeated_parameter),
        TEST(names_a_parameter_with_an_invalid_escape),
        TEST(accepts_unknown_parameters_if_allowed),
        TEST(finds_cookies_by_whole_name),
        TEST(respects_refused_codings),
        TEST(responds_304_when_a_tag_matches),
        TEST(keeps_many_response_fields),
        TEST(refuses_a_response_that_did_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

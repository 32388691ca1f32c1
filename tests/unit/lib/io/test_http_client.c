/* Requests to a server in a thread that accepts one connection at a time and responds from a
 * script. */
#include "tests/unit/test.h"

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/io/http_client.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_SEEN_BYTES = 1 << 20 };

struct script {
    int listener;
    int port;
    pthread_t thread;
    const char *const *responses; /* one per request, NULL-terminated; "" closes */
    int connection_count;
    char seen[MAX_SEEN_BYTES]; /* all requests */
    size_t seen_size;
};

/* Reads head and body of a request; false when the peer closes. */
static bool read_request(struct script *script, int fd)
{
    size_t start = script->seen_size;
    for (;;) {
        ssize_t taken = recv(fd, script->seen + script->seen_size,
                             sizeof(script->seen) - 1 - script->seen_size, 0);
        if (taken <= 0)
            return false;
        script->seen_size += (size_t)taken;
        script->seen[script->seen_size] = '\0';
        const char *head = script->seen + start, *end = strstr(head, "\r\n\r\n");
        if (!end)
            continue;
        const char *length = strcasestr(head, "\r\nContent-Length:");
        size_t body = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
        if (script->seen_size >= (size_t)(end + 4 - script->seen) + body)
            return true;
    }
}

static void *serve(void *context)
{
    struct script *script = context;
    const char *const *response = script->responses;
    while (*response) {
        int fd = accept(script->listener, NULL, NULL);
        if (fd < 0)
            break;
        script->connection_count++;
        while (*response && read_request(script, fd)) {
            const char *text = *response++;
            if (!text[0] || send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
                break;
        }
        close(fd);
    }
    return NULL;
}

static void start(struct script *script, const char *const *responses)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    script->responses = responses;
    script->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(script->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(script->listener, 8), 0);
    assert_int_equal(getsockname(script->listener, (struct sockaddr *)&address, &size), 0);
    script->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&script->thread, NULL, serve, script), 0);
}

static void stop(struct script *script)
{
    shutdown(script->listener, SHUT_RDWR);
    pthread_join(script->thread, NULL);
    close(script->listener);
    mem_free(script);
}

struct fixture {
    struct script *script;
    struct http_client *client;
    struct http_client_request request;
    struct http_client_response response;
    struct err err;
    char url[64];
};

static void begin(struct fixture *fixture, const char *method, const char *const *responses,
                  const struct http_client_settings *settings)
{
    const struct http_client_settings usual = {.stall_timeout_s = 2};
    fixture->script = mem_new(struct script, 1);
    start(fixture->script, responses);
    snprintf(fixture->url, sizeof(fixture->url), "http://127.0.0.1:%d/path", fixture->script->port);
    assert_int_equal(
        http_client_create(settings ? settings : &usual, &fixture->client, &fixture->err),
        ERR_NONE);
    http_client_request_init(&fixture->request, method, fixture->url);
    http_client_response_init(&fixture->response);
}

static enum err_code send_it(struct fixture *fixture)
{
    return http_client_send(fixture->client, &fixture->request, &fixture->response, &fixture->err);
}

static void end(struct fixture *fixture)
{
    http_client_destroy(fixture->client);
    http_client_response_fini(&fixture->response);
    stop(fixture->script);
}

#define OK_ABC "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-Thing:  a value \r\n\r\nabc"

static void keeps_the_connection(void **state)
{
    (void)state;
    static const char *const responses[] = {OK_ABC, OK_ABC, NULL};
    struct fixture fixture;
    begin(&fixture, "GET", responses, NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(send_it(&fixture), ERR_NONE);
        assert_int_equal(fixture.response.status, 200);
        assert_string_equal((char *)fixture.response.body.data, "abc");
        assert_int_equal(fixture.response.body.size, 3);
        assert_true(fixture.response.was_sent);
    }
    assert_true(
        span_equal_text(http_client_response_field(&fixture.response, "x-thing"), "a value"));
    assert_int_equal(http_client_response_field(&fixture.response, "x-thin").size, 0);
    assert_int_equal(fixture.script->connection_count, 1);
    end(&fixture);
}

static void sends_bodies_from_memory_and_from_a_part_of_a_file(void **state)
{
    (void)state;
    static const char *const responses[] = {OK_ABC, OK_ABC, OK_ABC, NULL};
    struct fixture fixture;
    FILE *file = tmpfile();
    fputs("0123456789", file);
    fflush(file);
    begin(&fixture, "POST", responses, NULL);
    const struct http_client_field fields[] = {{"Content-Type", "text/x"}, {"X-Empty", ""}};
    fixture.request.fields = fields;
    fixture.request.field_count = 2;
    fixture.request.body_kind = HTTP_CLIENT_BODY_BYTES;
    fixture.request.body = SPAN_LITERAL("memory");
    assert_int_equal(send_it(&fixture), ERR_NONE);
    fixture.request.method = "PUT";
    fixture.request.body_kind = HTTP_CLIENT_BODY_FILE;
    fixture.request.body_fd = fileno(file);
    fixture.request.body_offset = 3;
    fixture.request.body_bytes = 4;
    assert_int_equal(send_it(&fixture), ERR_NONE);
    fixture.request.method = "POST";
    fixture.request.body_kind = HTTP_CLIENT_BODY_NONE;
    assert_int_equal(send_it(&fixture), ERR_NONE);
    const char *seen = fixture.script->seen;
    assert_non_null(strstr(seen, "POST /path HTTP/1.1\r\n"));
    assert_non_null(strstr(seen, "Content-Type: text/x\r\n"));
    assert_non_null(strstr(seen, "X-Empty:\r\n"));
    assert_non_null(strstr(seen, "\r\n\r\nmemoryPUT /path HTTP/1.1\r\n"));
    assert_non_null(strstr(seen, "\r\n\r\n3456POST /path HTTP/1.1\r\n"));
    assert_non_null(strstr(strstr(seen, "3456POST"), "Content-Length: 0\r\n"));
    end(&fixture);
    fclose(file);
}

static void a_file_that_became_shorter_fails(void **state)
{
    (void)state;
    static const char *const responses[] = {OK_ABC, NULL};
    struct fixture fixture;
    FILE *file = tmpfile();
    fputs("short", file);
    fflush(file);
    begin(&fixture, "PUT", responses, NULL);
    fixture.request.body_kind = HTTP_CLIENT_BODY_FILE;
    fixture.request.body_fd = fileno(file);
    fixture.request.body_bytes = 10;
    assert_int_equal(send_it(&fixture), ERR_IO);
    end(&fixture);
    fclose(file);
}

static void responses_have_a_maximum_size(void **state)
{
    (void)state;
    static const char *const responses[] = {OK_ABC, OK_ABC, NULL};
    struct fixture fixture;
    begin(&fixture, "GET", responses, NULL);
    fixture.request.max_response_bytes = 3;
    assert_int_equal(send_it(&fixture), ERR_NONE);
    assert_string_equal((char *)fixture.response.body.data, "abc");
    fixture.request.max_response_bytes = 2;
    assert_int_equal(send_it(&fixture), ERR_TOO_LARGE);
    assert_true(fixture.response.was_too_large);
    end(&fixture);
}

static void successful_responses_are_written_to_the_file(void **state)
{
    (void)state;
    static const char *const responses[] = {
        "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\nRetry-After: 7\r\n\r\nbusy", OK_ABC, NULL};
    struct fixture fixture;
    FILE *file = tmpfile();
    char text[8] = "";
    begin(&fixture, "GET", responses, NULL);
    fixture.request.response_fd = fileno(file);
    assert_int_equal(send_it(&fixture), ERR_NONE);
    assert_int_equal(fixture.response.status, 503);
    assert_int_equal(fixture.response.retry_after_s, 7);
    assert_string_equal((char *)fixture.response.body.data, "busy");
    assert_int_equal(send_it(&fixture), ERR_NONE);
    assert_int_equal(fixture.response.retry_after_s, 0);
    assert_int_equal(fixture.response.body.size, 0);
    assert_int_equal(pread(fileno(file), text, sizeof(text), 0), 3);
    assert_string_equal(text, "abc");
    end(&fixture);
    fclose(file);
}

static void errors_state_whether_the_request_was_sent(void **state)
{
    (void)state;
    static const char *const responses[] = {"", NULL};
    struct fixture fixture;
    begin(&fixture, "GET", responses, NULL);
    assert_int_equal(send_it(&fixture), ERR_NETWORK);
    assert_int_equal(fixture.response.status, 0);
    assert_true(fixture.response.was_sent);
    fixture.request.url = "http://127.0.0.1:1/"; /* no server listens on port 1 */
    assert_int_equal(send_it(&fixture), ERR_NETWORK);
    assert_false(fixture.response.was_sent);
    assert_non_null(strstr(fixture.err.message, "http://127.0.0.1:1"));
    end(&fixture);
}

static void a_silent_peer_causes_a_timeout(void **state)
{
    (void)state;
    /* The second response blocks the script's thread, which waits on the open connection. */
    static const char *const responses[] = {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na", OK_ABC,
                                            NULL};
    const struct http_client_settings settings = {.stall_timeout_s = 1};
    struct fixture fixture;
    begin(&fixture, "GET", responses, &settings);
    assert_int_equal(send_it(&fixture), ERR_TIMEOUT);
    assert_true(fixture.response.was_sent);
    end(&fixture);
}

static void a_request_may_have_a_deadline(void **state)
{
    (void)state;
    static const char *const responses[] = {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na", OK_ABC,
                                            NULL};
    const struct http_client_settings settings = {.stall_timeout_s = 600};
    struct fixture fixture;
    begin(&fixture, "GET", responses, &settings);
    fixture.request.deadline_ms = 200;
    assert_int_equal(send_it(&fixture), ERR_TIMEOUT);
    end(&fixture);
}

static void leaves_out_a_field_and_reads_the_date(void **state)
{
    (void)state;
    static const char *const responses[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nDate: Fri, 24 May 2013 00:00:00 GMT\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nDate: never\r\n\r\n", OK_ABC, NULL};
    const struct http_client_field fields[] = {{"Accept", NULL}};
    static const int64_t expected[] = {1369353600, 0, 0};
    struct fixture fixture;
    begin(&fixture, "GET", responses, NULL);
    fixture.request.fields = fields;
    fixture.request.field_count = 1;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(send_it(&fixture), ERR_NONE);
        assert_int_equal(http_client_response_date(&fixture.response), expected[i]);
    }
    assert_null(strcasestr(fixture.script->seen, "\r\nAccept:"));
    end(&fixture);
}

static bool refuse(void *context, const struct sockaddr *address)
{
    *(int *)context = address->sa_family;
    return false;
}

static void addresses_can_be_refused(void **state)
{
    (void)state;
    static const char *const responses[] = {OK_ABC, NULL};
    int family = 0;
    const struct http_client_settings settings = {.may_connect = refuse,
                                                  .may_connect_context = &family};
    struct fixture fixture;
    begin(&fixture, "GET", responses, &settings);
    assert_int_equal(send_it(&fixture), ERR_FORBIDDEN);
    assert_int_equal(family, AF_INET);
    assert_false(fixture.response.was_sent);
    end(&fixture);
}

static bool cancel(void *context, uint64_t sent, uint64_t send_total, uint64_t received,
                   uint64_t receive_total)
{
    (void)context, (void)sent, (void)send_total, (void)received, (void)receive_total;
    return false;
}

static void invalid_requests_differ_from_canceled_ones(void **state)
{
    (void)state;
    static const char *const responses[] = {OK_ABC, NULL};
    const struct http_client_field field = {"X-Name", "a\r\nX-Injected: b"};
    struct fixture fixture;
    begin(&fixture, "GET", responses, NULL);
    fixture.request.fields = &field;
    fixture.request.field_count = 1;
    assert_int_equal(send_it(&fixture), ERR_INVALID);
    fixture.request.field_count = 0;
    fixture.request.url = "file:///etc/passwd";
    assert_int_equal(send_it(&fixture), ERR_INVALID);
    fixture.request.url = "not a url";
    assert_int_equal(send_it(&fixture), ERR_INVALID);
    fixture.request.url = fixture.url;
    fixture.request.progress = cancel;
    assert_int_equal(send_it(&fixture), ERR_CANCELLED);
    end(&fixture);
}

static void redirects_are_followed_only_when_allowed(void **state)
{
    (void)state;
    static const char *const responses[] = {
        "HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n", OK_ABC, NULL};
    struct fixture fixture;
    begin(&fixture, "GET", responses, NULL);
    assert_int_equal(send_it(&fixture), ERR_NONE);
    assert_int_equal(fixture.response.status, 302);
    end(&fixture);
    const struct http_client_settings settings = {.max_redirects = 2};
    begin(&fixture, "GET", responses, &settings);
    assert_int_equal(send_it(&fixture), ERR_NONE);
    assert_int_equal(fixture.response.status, 200);
    assert_non_null(strstr(fixture.script->seen, "GET /other HTTP/1.1\r\n"));
    assert_true(span_equal_text(http_client_response_field(&fixture.response, "location"), ""));
    end(&fixture);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void a_ca_file_is_added_to_the_bundle_of_the_system(void **state)
{
    (void)state;
    char folder[] = "/tmp/perfolio-cas-XXXXXX", bundle[64], own[64];
    struct err err;
    assert_non_null(mkdtemp(folder));
    snprintf(bundle, sizeof(bundle), "%s/bundle.pem", folder);
    snprintf(own, sizeof(own), "%s/own.pem", folder);
    write_file(bundle, "public CAs");
    write_file(own, "own CA\n");
    buf_auto cas;
    buf_init(&cas, 1 << 20);
    assert_int_equal(http_client_join_cas(bundle, own, &cas, &err), ERR_NONE);
    assert_true(span_equal_text(buf_span(&cas), "public CAs\nown CA\n"));
    const char *const absent[] = {NULL, "/no/such.pem"};
    for (int i = 0; i < 2; i++) {
        buf_clear(&cas);
        assert_int_equal(http_client_join_cas(absent[i], own, &cas, &err), ERR_NONE);
        assert_true(span_equal_text(buf_span(&cas), "own CA\n"));
    }
    assert_int_equal(http_client_join_cas(bundle, "/no/such.pem", &cas, &err), ERR_NOT_FOUND);
    unlink(bundle);
    unlink(own);
    rmdir(folder);
}

static void a_missing_ca_file_is_named(void **state)
{
    (void)state;
    struct http_client *client = NULL;
    struct err err;
    assert_int_equal(http_client_create(&(struct http_client_settings){.ca_file = "/no/such.pem"},
                                        &client, &err),
                     ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "/no/such.pem"));
    assert_null(client);
}

int main(void)
{
    /* These tests do not use a proxy from the environment. */
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    unsetenv("ALL_PROXY");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_connection),
        cmocka_unit_test(sends_bodies_from_memory_and_from_a_part_of_a_file),
        cmocka_unit_test(a_file_that_became_shorter_fails),
        cmocka_unit_test(responses_have_a_maximum_size),
        cmocka_unit_test(successful_responses_are_written_to_the_file),
        cmocka_unit_test(errors_state_whether_the_request_was_sent),
        cmocka_unit_test(a_silent_peer_causes_a_timeout),
        cmocka_unit_test(a_request_may_have_a_deadline),
        cmocka_unit_test(leaves_out_a_field_and_reads_the_date),
        cmocka_unit_test(addresses_can_be_refused),
        cmocka_unit_test(invalid_requests_differ_from_canceled_ones),
        cmocka_unit_test(redirects_are_followed_only_when_allowed),
        cmocka_unit_test(a_missing_ca_file_is_named),
        cmocka_unit_test(a_ca_file_is_added_to_the_bundle_of_the_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

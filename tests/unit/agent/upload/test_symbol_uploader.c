/* Uploads to a server in a thread that accepts one connection at a time and follows a script. */
#include "tests/unit/test.h"

#include "agent/upload/symbol_uploader.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define READY_BODY "{\"state\":\"ready\"}"
#define READY "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 17\r\n\r\n" READY_BODY

enum { HURRY = 10000, PATIENCE_MS = 60000 };

struct script {
    int listener;
    int port;
    pthread_t thread;
    const char *const *responses; /* one per request; the last one before NULL is repeated */
    atomic_uint request_count;
};

static void *serve(void *context)
{
    struct script *script = context;
    const char *const *response = script->responses;
    char seen[4096];
    int fd;
    while ((fd = accept(script->listener, NULL, NULL)) >= 0) {
        if (recv(fd, seen, sizeof(seen), 0) > 0)
            (void)send(fd, *response, strlen(*response), MSG_NOSIGNAL);
        close(fd);
        response += response[1] != NULL;
        atomic_fetch_add(&script->request_count, 1);
    }
    return NULL;
}

static void begin(struct script *script, const char *const *responses)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    *script = (struct script){.responses = responses};
    script->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(script->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(script->listener, 8), 0);
    assert_int_equal(getsockname(script->listener, (struct sockaddr *)&address, &size), 0);
    script->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&script->thread, NULL, serve, script), 0);
}

static void end(struct script *script)
{
    shutdown(script->listener, SHUT_RDWR);
    pthread_join(script->thread, NULL);
    close(script->listener);
}

static void give(struct symbol_uploader *uploader, const char *build_id)
{
    if (symbol_uploader_wants(uploader, build_id) != SYMBOL_WANT_NOW)
        return;
    symbol_uploader_give(uploader, build_id, "/usr/bin/program",
                         open("/proc/self/exe", O_RDONLY | O_CLOEXEC), -1);
}

/* Offers a binary, a second one after the first response, and each again when it is due, until the
 * server knows both. */
static void expect_that_both_are_known(const char *const *responses)
{
    struct script script;
    struct symbol_uploader *uploader;
    struct symbol_uploader_counts counts = {0};
    struct err err;
    char url[64];
    begin(&script, responses);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", script.port);
    const struct server_config access = {.server = url, .proxy = ""};
    const struct symbol_uploader_options options = {.access = &access,
                                                    .policy = SYMBOL_POLICY_MISSING,
                                                    .work_folder = "/tmp",
                                                    .pauses_divided_by = HURRY};
    assert_int_equal(symbol_uploader_start(&options, &uploader, &err), ERR_NONE);
    give(uploader, "aa");
    const int64_t end_ns = clock_monotonic_ns() + PATIENCE_MS * CLOCK_NS_PER_MS;
    while (atomic_load(&script.request_count) == 0 && clock_monotonic_ns() < end_ns)
        clock_sleep_ms(1);
    give(uploader, "bb");
    while (counts.known < 2 && clock_monotonic_ns() < end_ns) {
        if (symbol_uploader_has_forgotten(uploader) || !counts.queried)
            give(uploader, "bb");
        clock_sleep_ms(1);
        symbol_uploader_count(uploader, &counts);
    }
    symbol_uploader_stop(uploader);
    end(&script);
    assert_int_equal(counts.known, 2);
    assert_int_equal(counts.failed, 0);
}

static void a_server_without_symbol_tables_is_queried_again(void **state)
{
    (void)state;
    const char *const responses[] = {
        "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\n<html>", READY, NULL};
    expect_that_both_are_known(responses);
}

static void an_invalid_response_is_retried(void **state)
{
    (void)state;
    const char *const responses[] = {
        "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        "220 mail.example.com ESMTP\r\n", READY, NULL};
    expect_that_both_are_known(responses);
}

static int count_open_files(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void files_are_closed_if_the_server_has_no_symbol_tables(void **state)
{
    (void)state;
    struct script script;
    struct symbol_uploader *uploader;
    struct symbol_uploader_counts counts = {.waiting = 20};
    struct err err;
    char url[64], build_id[8];
    begin(&script,
          (const char *const[]){
              "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", NULL});
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", script.port);
    const struct server_config access = {.server = url, .proxy = ""};
    const struct symbol_uploader_options options = {
        .access = &access, .policy = SYMBOL_POLICY_MISSING, .work_folder = "/tmp"};
    const int before = count_open_files();
    assert_int_equal(symbol_uploader_start(&options, &uploader, &err), ERR_NONE);
    symbol_uploader_pause(uploader, true);
    for (int i = 10; i < 30; i++) {
        snprintf(build_id, sizeof(build_id), "%d", i);
        give(uploader, build_id);
    }
    assert_in_range(count_open_files(), before + 20, before + 30);
    symbol_uploader_pause(uploader, false);
    const int64_t end_ns = clock_monotonic_ns() + PATIENCE_MS * CLOCK_NS_PER_MS;
    while (counts.waiting > 1 && clock_monotonic_ns() < end_ns) {
        clock_sleep_ms(1);
        symbol_uploader_count(uploader, &counts);
    }
    assert_int_equal(counts.waiting, 1); /* it is included in the next request */
    assert_in_range(count_open_files(), before, before + 10);
    assert_int_equal(symbol_uploader_wants(uploader, "99"), SYMBOL_WANT_LATER);
    assert_false(symbol_uploader_has_forgotten(
        uploader)); /* reported only when the binary may be offered again */
    symbol_uploader_stop(uploader);
    end(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_without_symbol_tables_is_queried_again),
        cmocka_unit_test(files_are_closed_if_the_server_has_no_symbol_tables),
        cmocka_unit_test(an_invalid_response_is_retried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * fetch_debuginfo FOLDER KIND BUILD_ID MAX_BYTES AT_ONCE [--allow HOST]... [--ca FILE] URL [--auth
 * LINE]... queries debuginfod servers as perfoliod does, but with short timeouts. Sends AT_ONCE
 * requests for the same file at a time, and again for each line on standard input, until its end.
 * KIND is "debuginfo", "executable" or the name of a section. Prints a line of JSON for each
 * request: outcome, bytes, sum of the file's bytes, upstream (index of the URL), retry_after_s,
 * later_s (the delay before a second attempt), reason; or, for an error, outcome (the name of the
 * error code) and reason.
 */
#include "lib/base/buf.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/io/debuginfod_client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_AT_ONCE = 64, MAX_HOSTS = 8 };

static struct debuginfod_client *client;
static struct debuginfod_request request;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t sum_file(int fd)
{
    unsigned char bytes[65536];
    uint64_t sum = 0, at = 0;
    ssize_t count;
    while ((count = pread(fd, bytes, sizeof(bytes), (off_t)at)) > 0) {
        for (ssize_t i = 0; i < count; i++)
            sum += bytes[i];
        at += (uint64_t)count;
    }
    close(fd);
    return sum;
}

static void *fetch_one(void *context)
{
    static const char *const outcomes[] = {"found", "absent", "unreachable", "refused"};
    struct debuginfod_response response;
    struct err err;
    struct buf line;
    (void)context;
    buf_init(&line, 1 << 20);
    enum err_code code = debuginfod_fetch(client, &request, &response, &err);
    if (code) {
        buf_printf(&line, "{\"outcome\": \"%s\", \"reason\": ", err_code_name(code));
        buf_append_json(&line, span_text(err.message));
        buf_append_text(&line, "}\n");
    } else {
        uint64_t sum = response.outcome == DEBUGINFOD_FOUND ? sum_file(response.fd) : 0;
        buf_printf(&line,
                   "{\"outcome\": \"%s\", \"bytes\": %llu, \"sum\": %llu, \"upstream\": %zu, "
                   "\"retry_after_s\": %d, \"later_s\": %lld, \"reason\": ",
                   outcomes[response.outcome], (unsigned long long)response.bytes,
                   (unsigned long long)sum, response.upstream, response.retry_after_s,
                   (long long)debuginfod_later_s(response.outcome, 1, response.retry_after_s));
        buf_append_json(&line, span_text(response.reason));
        buf_append_text(&line, "}\n");
    }
    pthread_mutex_lock(&lock);
    fwrite(line.data, 1, line.size, stdout);
    fflush(stdout);
    pthread_mutex_unlock(&lock);
    buf_fini(&line);
    return NULL;
}

static void fetch_at_once(int count)
{
    pthread_t threads[MAX_AT_ONCE];
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, fetch_one, NULL))
            exit(1);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    static struct debuginfod_upstream upstreams[DEBUGINFOD_MAX_URLS];
    static const char *hosts[MAX_HOSTS];
    static uint8_t id[256];
    struct debuginfod_client_settings settings = {.allowed_hosts = hosts,
                                                  .user_agent = "perfolio/test",
                                                  .connect_ms = 1000,
                                                  .first_byte_ms = 1000,
                                                  .window_ms = 1000,
                                                  .window_bytes = 1000,
                                                  .total_ms = 20000,
                                                  .pause_unit_ms = 20};
    struct err err;
    if (argc < 6)
        return 2;
    settings.folder = argv[1];
    request.kind = strcmp(argv[2], "debuginfo") == 0    ? DEBUGINFOD_DEBUGINFO
                   : strcmp(argv[2], "executable") == 0 ? DEBUGINFOD_EXECUTABLE
                                                        : DEBUGINFOD_SECTION;
    request.section = argv[2];
    request.build_id = span_of(id, strlen(argv[3]) / 2);
    request.max_bytes = strtoull(argv[4], NULL, 10);
    int at_once = atoi(argv[5]);
    if (request.build_id.size > sizeof(id) || at_once > MAX_AT_ONCE ||
        !digest_parse_hex(span_text(argv[3]), id, request.build_id.size))
        return 2;
    for (int i = 6; i < argc; i++) {
        if (strcmp(argv[i], "--allow") == 0 && settings.allowed_host_count < MAX_HOSTS)
            hosts[settings.allowed_host_count++] = argv[++i];
        else if (strcmp(argv[i], "--ca") == 0)
            settings.ca_file = argv[++i];
        else if (strcmp(argv[i], "--auth") == 0)
            upstreams[request.upstream_count - 1].auth = argv[++i];
        else
            upstreams[request.upstream_count++].url = argv[i];
    }
    request.upstreams = upstreams;
    if (debuginfod_client_create(&settings, &client, &err))
        return 1;
    char line[16];
    do {
        fetch_at_once(at_once);
    } while (fgets(line, sizeof(line), stdin));
    debuginfod_client_destroy(client);
    return 0;
}

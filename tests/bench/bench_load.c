/*
 * bench_load: N clients on kept-alive TLS connections that upload profiles for a while.
 *
 *   bench_load --url URL --ca FILE [--token-file FILE] [--clients N] [--seconds S] [--count N]
 *              [--ids FILE] PROFILE…
 *
 * Each client posts the profiles one after the other, one request at a time. A client that gets 429
 * or 503 waits for the time in Retry-After. Prints a CSV header and one line; --ids writes the ids
 * of the accepted shares, so that the caller can check that each of them exists.
 */
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_CLIENTS = 1000, JSON_RESPONSE_MAX_BYTES = 64 * 1024, MAX_FILE_BYTES = 64 << 20 };

struct options {
    const char *url;
    const char *ca_file;
    const char *token_file;
    const char *ids_file;
    long client_count;
    double seconds;
    long request_count; /* of all clients together; 0: until the time is over */
};

struct client {
    CURL *easy;
    struct buf response;
    size_t next_file;
    int64_t start_ns;
    int64_t not_before_ns; /* after a Retry-After */
    bool is_busy;
};

struct load {
    struct options options;
    struct buf *files;
    size_t file_count;
    CURLM *multi;
    struct client *clients;
    FILE *ids;
    long started;
    long busy;
    long accepted;
    long limited;     /* 429 or 503 with Retry-After */
    long unexplained; /* 429 or 503 without it */
    long other_status;
    long transport_errors;
    uint64_t accepted_bytes;
    double *latencies_ms;
    size_t latency_count;
    size_t latency_capacity;
};

static void die(const char *message)
{
    fprintf(stderr, "bench_load: %s\n", message);
    exit(1);
}

static void read_file(const char *path, struct buf *buf)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        die(path);
    buf_init(buf, MAX_FILE_BYTES);
    for (;;) {
        uint8_t *free_bytes = buf_reserve(buf, 65536);
        ssize_t size = free_bytes ? read(fd, free_bytes, 65536) : -1;
        if (size < 0)
            die(path);
        if (size == 0)
            break;
        buf_commit(buf, (size_t)size);
    }
    close(fd);
}

static size_t take_response(char *data, size_t size, size_t count, void *context)
{
    buf_append(context, data, size * count);
    return size * count;
}

static struct curl_slist *make_headers(const struct options *options)
{
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/octet-stream");
    headers = curl_slist_append(headers, "Expect:");
    if (options->token_file) {
        struct buf token;
        read_file(options->token_file, &token);
        char line[512];
        snprintf(line, sizeof(line), "Authorization: Bearer %.*s",
                 SPAN_PRINT(span_trim(buf_span(&token))));
        headers = curl_slist_append(headers, line);
        buf_fini(&token);
    }
    return headers;
}

static void open_client(struct client *client, const struct options *options,
                        struct curl_slist *headers)
{
    char url[512];
    snprintf(url, sizeof(url), "%s/api/v1/shares", options->url);
    buf_init(&client->response, JSON_RESPONSE_MAX_BYTES);
    client->easy = curl_easy_init();
    curl_easy_setopt(client->easy, CURLOPT_URL, url);
    curl_easy_setopt(client->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(client->easy, CURLOPT_HTTPHEADER, headers);
    if (options->ca_file)
        curl_easy_setopt(client->easy, CURLOPT_CAINFO, options->ca_file);
    curl_easy_setopt(client->easy, CURLOPT_WRITEFUNCTION, take_response);
    curl_easy_setopt(client->easy, CURLOPT_WRITEDATA, &client->response);
    curl_easy_setopt(client->easy, CURLOPT_PRIVATE, client);
    curl_easy_setopt(client->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(client->easy, CURLOPT_TIMEOUT, 120L);
}

static void start_request(struct load *load, struct client *client, int64_t now_ns)
{
    struct span body = buf_span(&load->files[client->next_file++ % load->file_count]);
    buf_clear(&client->response);
    curl_easy_setopt(client->easy, CURLOPT_POSTFIELDS, body.data);
    curl_easy_setopt(client->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.size);
    client->start_ns = now_ns;
    client->is_busy = true;
    load->busy++;
    load->started++;
    curl_multi_add_handle(load->multi, client->easy);
}

static void keep_latency(struct load *load, double latency_ms)
{
    if (load->latency_count == load->latency_capacity) {
        load->latency_capacity = load->latency_capacity ? load->latency_capacity * 2 : 1024;
        load->latencies_ms = mem_resize(load->latencies_ms, load->latency_capacity, sizeof(double));
    }
    load->latencies_ms[load->latency_count++] = latency_ms;
}

static void keep_id(const struct load *load, struct client *client)
{
    buf_append_byte(&client->response, '\0');
    const char *at = load->ids ? strstr((const char *)client->response.data, "\"id\":") : NULL;
    const char *start = at ? strchr(at + 5, '"') : NULL;
    if (start)
        fprintf(load->ids, "%.22s\n", start + 1);
}

static void finish_request(struct load *load, struct client *client, CURLcode code)
{
    long status = 0;
    curl_off_t retry_after_s = 0, sent = 0;
    int64_t now_ns = clock_monotonic_ns();
    curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(client->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    curl_easy_getinfo(client->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    client->is_busy = false;
    load->busy--;
    if (code != CURLE_OK) {
        load->transport_errors++;
        fprintf(stderr, "bench_load: %s\n", curl_easy_strerror(code));
    } else if (status == 201) {
        load->accepted++;
        load->accepted_bytes += (uint64_t)sent;
        keep_latency(load, (double)(now_ns - client->start_ns) / 1e6);
        keep_id(load, client);
    } else if (status == 429 || status == 503) {
        load->limited += retry_after_s > 0;
        load->unexplained += retry_after_s <= 0;
        client->not_before_ns = now_ns + (retry_after_s > 0 ? retry_after_s : 1) * CLOCK_NS_PER_S;
    } else {
        load->other_status++;
        fprintf(stderr, "bench_load: status %ld: %.*s\n", status,
                SPAN_PRINT(buf_span(&client->response)));
    }
}

static void start_idle_clients(struct load *load, int64_t now_ns)
{
    for (long i = 0; i < load->options.client_count; i++) {
        if (load->options.request_count && load->started >= load->options.request_count)
            return;
        struct client *client = &load->clients[i];
        if (!client->is_busy && client->not_before_ns <= now_ns)
            start_request(load, client, now_ns);
    }
}

static bool finish_done_requests(struct load *load)
{
    bool any = false;
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(load->multi, &left));) {
        struct client *client;
        CURL *easy = message->easy_handle;
        CURLcode code = message->data.result;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &client);
        curl_multi_remove_handle(load->multi, easy);
        finish_request(load, client, code);
        any = true;
    }
    return any;
}

static void run_load(struct load *load)
{
    int64_t end_ns = clock_monotonic_ns() + (int64_t)(load->options.seconds * 1e9);
    for (;;) {
        int64_t now_ns = clock_monotonic_ns();
        bool is_over = now_ns >= end_ns || (load->options.request_count &&
                                            load->started >= load->options.request_count);
        if (is_over && load->busy == 0)
            return;
        if (!is_over)
            start_idle_clients(load, now_ns);
        int running;
        curl_multi_perform(load->multi, &running);
        if (!finish_done_requests(load))
            curl_multi_poll(load->multi, NULL, 0, 20, NULL);
    }
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double percentile(const struct load *load, double share)
{
    if (load->latency_count == 0)
        return 0;
    return load->latencies_ms[(size_t)(share * (double)(load->latency_count - 1))];
}

static void print_load(struct load *load, double seconds)
{
    if (load->latency_count)
        qsort(load->latencies_ms, load->latency_count, sizeof(double), compare_doubles);
    printf("clients,seconds,accepted,accepted_per_s,accepted_mb_per_s,limited,unexplained,"
           "other_status,transport_errors,p50_ms,p99_ms,max_ms\n");
    printf("%ld,%.1f,%ld,%.1f,%.2f,%ld,%ld,%ld,%ld,%.2f,%.2f,%.2f\n", load->options.client_count,
           seconds, load->accepted, (double)load->accepted / seconds,
           (double)load->accepted_bytes / 1e6 / seconds, load->limited, load->unexplained,
           load->other_status, load->transport_errors, percentile(load, 0.5),
           percentile(load, 0.99), percentile(load, 1.0));
}

static void parse_options(struct options *options, int argc, char **argv)
{
    static const struct option longs[] = {
        {"url", required_argument, NULL, 'u'},        {"ca", required_argument, NULL, 'c'},
        {"token-file", required_argument, NULL, 't'}, {"clients", required_argument, NULL, 'n'},
        {"seconds", required_argument, NULL, 's'},    {"count", required_argument, NULL, 'k'},
        {"ids", required_argument, NULL, 'i'},        {0},
    };
    *options = (struct options){.client_count = 1, .seconds = 10};
    for (int option; (option = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        if (option == 'u')
            options->url = optarg;
        else if (option == 'c')
            options->ca_file = optarg;
        else if (option == 't')
            options->token_file = optarg;
        else if (option == 'n')
            options->client_count = strtol(optarg, NULL, 10);
        else if (option == 's')
            options->seconds = strtod(optarg, NULL);
        else if (option == 'k')
            options->request_count = strtol(optarg, NULL, 10);
        else if (option == 'i')
            options->ids_file = optarg;
        else
            exit(2);
    }
    bool has_clients = options->client_count >= 1 && options->client_count <= MAX_CLIENTS;
    if (!options->url || optind == argc || !has_clients)
        die("give --url, --clients 1 to 1000 and at least one profile");
}

int main(int argc, char **argv)
{
    struct load load = {0};
    parse_options(&load.options, argc, argv);
    load.file_count = (size_t)(argc - optind);
    load.files = mem_new(struct buf, load.file_count);
    for (size_t i = 0; i < load.file_count; i++)
        read_file(argv[(size_t)optind + i], &load.files[i]);
    if (load.options.ids_file && !(load.ids = fopen(load.options.ids_file, "w")))
        die(load.options.ids_file);

    curl_global_init(CURL_GLOBAL_DEFAULT);
    load.multi = curl_multi_init();
    curl_multi_setopt(load.multi, CURLMOPT_MAXCONNECTS, load.options.client_count);
    struct curl_slist *headers = make_headers(&load.options);
    load.clients = mem_new(struct client, (size_t)load.options.client_count);
    for (long i = 0; i < load.options.client_count; i++) {
        open_client(&load.clients[i], &load.options, headers);
        load.clients[i].next_file = (size_t)i;
    }
    int64_t start_ns = clock_monotonic_ns();
    run_load(&load);
    print_load(&load, (double)(clock_monotonic_ns() - start_ns) / 1e9);
    if (load.ids)
        fclose(load.ids);
    return load.transport_errors || load.other_status || load.unexplained ? 1 : 0;
}

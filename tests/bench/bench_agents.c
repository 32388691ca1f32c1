/*
 * bench_agents: agents that send OTLP every 10 s and users who query, for some time, on one thread.
 *
 *    bench_agents --url URL --ca FILE --token-file FILE --log FILE
 *                [--agents N] [--seconds S] [--samples N] [--queries N per second]
 *
 * Each agent has its own TLS connection, address (127.1.x.x) and name and profiles four of the
 * fleet's twenty programs. --samples is the number of samples of a batch; 85 % of them have
 * different stacks, drawn from the 5,000 stacks of a program, and 3 % have a stack that occurs only
 * once. Half of the agents use gzip, half zstd. A batch that is refused with Retry-After, or whose
 * response was lost, is sent again with the same Perfolio-Batch-Id. A query starts when it is due,
 * even if others still run.
 *
 * The log has a line per profile: host,service,time_ns,total,is_acknowledged. The output is CSV:
 * kind,count,p50_ms,p99_ms,max_ms for "ack", "query" and each kind of query, then lines of
 * name,number.
 */
#include "lib/base/clock.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "tests/bench/otlp_maker.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    AGENTS_MAX = 5000,
    /* Connections for queries; a query that is due while all are busy is skipped. */
    QUERY_CLIENTS = 200,
    PROGRAMS = 20,
    PROGRAMS_OF_AGENT = 4,
    STACKS_OF_PROGRAM = 5000,
    SHARING = 24, /* as in bench_otlp.c, which compares it with recorded profiles */
    INTERVAL_S = 10,
    DRAIN_S = 60, /* time for requests that are running at the end; also limit of a request */
    MESSAGES_MAX = 10,
    TEXT_MAX = 512
};
static const int64_t INTERVAL_NS = INTERVAL_S * CLOCK_NS_PER_S;

struct options {
    const char *url;
    const char *ca_file;
    const char *token_file;
    const char *log_file;
    long agent_count;
    long sample_count;
    double seconds;
    double queries_per_s;
};

/* The queries, which are sent in turn; "now" in them is the time of the server's clock. */
struct query_text {
    const char *kind;
    const char *path; /* %s: a program */
};
static const struct query_text queries[] = {
    {"flame of a service, 15 min",
     "query?start=now-15m&query=process_cpu%%3Acpu%%7Bservice_name%%3D%%22%s%%22%%7D"},
    {"values over time, 1 h", "query_range?start=now-1h&step=30s&query=process_cpu%%3Acpu%%"
                              "7Bservice_name%%3D%%22%s%%22%%7D"},
    {"top of a service, 15 min",
     "query?start=now-15m&report=top&query=process_cpu%%3Acpu%%7Bservice_name%%3D%%22%s%%22%%7D"},
    {"values of a label", "label/service_name/values?start=now-1h&match[]="
                          "%%7Bservice_name%%3D%%22%s%%22%%7D"},
    {"flame of a service, 5 min",
     "query?start=now-5m&query=process_cpu%%3Acpu%%7Bservice_name%%3D%%22%s%%22%%7D"},
    {"series of a service", "series?start=now-15m&match[]=%%7Bservice_name%%3D%%22%s%%22%%7D"},
    {"flame of all but one, 5 min",
     "query?start=now-5m&query=process_cpu%%3Acpu%%7Bservice_name%%21%%3D%%22%s%%22%%7D"},
    {"single profiles",
     "profiles?limit=50&query=process_cpu%%3Acpu%%7Bservice_name%%3D%%22%s%%22%%7D"},
    {"values by host, 15 min", "query_range?start=now-15m&step=15s&group_by=host_name&limit=1000&"
                               "query=process_cpu%%3Acpu%%7Bservice_name%%3D%%22%s%%22%%7D"},
    {"values of a function, 5 min",
     "query_range?start=now-5m&step=15s&focus=package7&query=process_cpu%%3Acpu%%7Bservice_name%%3D"
     "%%22%s%%22%%7D"},
};
enum { QUERIES = sizeof(queries) / sizeof(queries[0]), LATENCIES = QUERIES + 2 };
enum { OF_ACKS = QUERIES, OF_QUERIES };

struct latencies {
    double *ms;
    size_t count;
    size_t capacity;
};

struct client {
    CURL *easy;
    struct curl_slist *headers;
    bool is_busy;
    bool is_agent;
    long number;
    int64_t due_ns;
    /* agents */
    struct buf body; /* of the unacknowledged batch */
    int64_t begin_ns;
    uint64_t totals[PROGRAMS_OF_AGENT];
    uint64_t random;
    unsigned sequence;
    /* users */
    unsigned query;
};

struct bench {
    struct options options;
    CURLM *multi;
    FILE *log;
    struct client *clients; /* agents, then users */
    long client_count;
    struct maker maker;
    struct buf request;
    struct buf samples;
    struct latencies latencies[LATENCIES];
    char authorization[TEXT_MAX];
    unsigned sent_queries;
    long busy;
    long batches, samples_sent, bytes_sent;
    long acknowledged, resent, limited, refused, transport_errors, query_errors, late, not_sent;
};

static void die(const char *message)
{
    fprintf(stderr, "bench_agents: %s\n", message);
    exit(1);
}

/* ---- batches ---- */

static void name_program(char text[TEXT_MAX], uint32_t program)
{
    snprintf(text, TEXT_MAX, "service-%02u", program);
}

static uint32_t program_of(const struct client *agent, uint32_t index)
{
    return (uint32_t)((unsigned long)agent->number * 7 + index * 5) % PROGRAMS;
}

static void add_one_stack(struct maker *maker, struct client *agent, uint32_t program)
{
    const bool is_new = random_below(&agent->random, 100) < 3;
    const uint64_t number =
        is_new ? (uint64_t)agent->random >> 13 : random_below(&agent->random, STACKS_OF_PROGRAM);
    uint64_t random = (number * PROGRAMS + program + 1) * UINT64_C(0x9e3779b97f4a7c15);
    add_stack(maker, &random, program);
}

static uint32_t add_program(struct bench *bench, struct client *agent, uint32_t index,
                            uint32_t first_stack, const char *host)
{
    const uint32_t program = program_of(agent, index);
    const uint32_t count = (uint32_t)bench->options.sample_count / PROGRAMS_OF_AGENT;
    uint32_t stacks = 0;
    char service[TEXT_MAX];
    agent->totals[index] = 0;
    buf_clear(&bench->samples);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t stack = stacks;
        if (i == 0 || i % 100 < 85)
            add_one_stack(&bench->maker, agent, program), stacks++;
        else
            stack = random_below(&agent->random, stacks);
        agent->totals[index] +=
            add_sample(&bench->maker, &bench->samples, first_stack + stack, agent->begin_ns);
    }
    agent->totals[index] *= MAKER_PERIOD_NS;
    name_program(service, program);
    add_resource(&bench->maker, &bench->request, service, host, buf_span(&bench->samples),
                 agent->begin_ns);
    return stacks;
}

static void make_batch(struct bench *bench, struct client *agent)
{
    struct maker *maker = &bench->maker;
    struct err err;
    char host[TEXT_MAX];
    snprintf(host, sizeof(host), "host-%04ld", agent->number);
    agent->begin_ns = clock_wall_ns() - INTERVAL_NS;
    agent->sequence++;
    buf_clear(&maker->dictionary);
    buf_clear(&bench->request);
    memset(maker->location_of, 0, MAKER_FUNCTIONS * sizeof(*maker->location_of));
    begin_dictionary(maker);
    for (uint32_t i = 0, stacks = 1; i < PROGRAMS_OF_AGENT; i++)
        stacks += add_program(bench, agent, i, stacks, host);
    put_message(&bench->request, 2, &maker->dictionary);
    buf_clear(&agent->body);
    if (agent->number % 2
            ? compress_zstd(buf_span(&bench->request), COMPRESS_ZSTD_FAST, &agent->body, &err)
            : compress_gzip(buf_span(&bench->request), COMPRESS_GZIP_FAST, &agent->body, &err))
        die(err.message);
    bench->batches++;
    bench->samples_sent += bench->options.sample_count;
    bench->bytes_sent += (long)agent->body.size;
}

static void log_batch(const struct bench *bench, const struct client *agent, bool is_acknowledged)
{
    char service[TEXT_MAX];
    for (uint32_t i = 0; i < PROGRAMS_OF_AGENT; i++) {
        name_program(service, program_of(agent, i));
        fprintf(bench->log, "host-%04ld,%s,%lld,%llu,%d\n", agent->number, service,
                (long long)agent->begin_ns, (unsigned long long)agent->totals[i], is_acknowledged);
    }
}

/* ---- requests ---- */

static void start(struct bench *bench, struct client *client)
{
    client->is_busy = true;
    bench->busy++;
    curl_multi_add_handle(bench->multi, client->easy);
}

static void send_batch(struct bench *bench, struct client *agent)
{
    char line[TEXT_MAX];
    curl_slist_free_all(agent->headers);
    agent->headers = curl_slist_append(NULL, bench->authorization);
    agent->headers = curl_slist_append(agent->headers, "Content-Type: application/x-protobuf");
    agent->headers = curl_slist_append(agent->headers, "Expect:");
    agent->headers = curl_slist_append(
        agent->headers, agent->number % 2 ? "Content-Encoding: zstd" : "Content-Encoding: gzip");
    snprintf(line, sizeof(line), "Perfolio-Batch-Id: agent-%ld-%u", agent->number, agent->sequence);
    agent->headers = curl_slist_append(agent->headers, line);
    curl_easy_setopt(agent->easy, CURLOPT_HTTPHEADER, agent->headers);
    curl_easy_setopt(agent->easy, CURLOPT_POSTFIELDS, agent->body.data);
    curl_easy_setopt(agent->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)agent->body.size);
    start(bench, agent);
}

static void send_query(struct bench *bench)
{
    struct client *reader = NULL;
    for (long i = bench->options.agent_count; i < bench->client_count && !reader; i++)
        reader = bench->clients[i].is_busy ? NULL : &bench->clients[i];
    const unsigned number = bench->sent_queries++;
    if (!reader) {
        bench->not_sent++;
        return;
    }
    char service[TEXT_MAX], path[2 * TEXT_MAX], url[4 * TEXT_MAX];
    name_program(service, number / QUERIES % PROGRAMS);
    reader->query = number % QUERIES;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(path, sizeof(path), queries[reader->query].path, service);
#pragma GCC diagnostic pop
    snprintf(url, sizeof(url), "%s/api/v1/%s", bench->options.url, path);
    curl_easy_setopt(reader->easy, CURLOPT_URL, url);
    start(bench, reader);
}

static void keep_latency(struct latencies *latencies, double ms)
{
    if (latencies->count == latencies->capacity) {
        latencies->capacity = latencies->capacity ? latencies->capacity * 2 : 1024;
        latencies->ms = mem_resize(latencies->ms, latencies->capacity, sizeof(double));
    }
    latencies->ms[latencies->count++] = ms;
}

static void finish_batch(struct bench *bench, struct client *agent, CURLcode code, long status)
{
    curl_off_t retry_after_s = 0;
    curl_easy_getinfo(agent->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    if (code || ((status == 429 || status == 503) && retry_after_s > 0)) {
        bench->resent++;
        bench->transport_errors += code != CURLE_OK;
        bench->limited += !code;
        agent->due_ns = clock_monotonic_ns() + (code ? 1 : retry_after_s) * CLOCK_NS_PER_S;
        return;
    }
    bench->acknowledged += status == 200;
    bench->refused += status != 200;
    log_batch(bench, agent, status == 200);
    buf_clear(&agent->body);
    agent->due_ns += (1 + (clock_monotonic_ns() - agent->due_ns) / INTERVAL_NS) * INTERVAL_NS;
    if (status != 200 && bench->refused <= MESSAGES_MAX)
        fprintf(stderr, "bench_agents: a batch was responded to with %ld\n", status);
}

static void finish(struct bench *bench, struct client *client, CURLcode code)
{
    long status = 0;
    curl_off_t taken_us = 0;
    curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(client->easy, CURLINFO_TOTAL_TIME_T, &taken_us);
    const bool is_good = code == CURLE_OK && status == 200;
    client->is_busy = false;
    bench->busy--;
    if (is_good)
        keep_latency(&bench->latencies[client->is_agent ? OF_ACKS : OF_QUERIES],
                     (double)taken_us / 1e3);
    if (client->is_agent) {
        finish_batch(bench, client, code, status);
        return;
    }
    if (is_good)
        keep_latency(&bench->latencies[client->query], (double)taken_us / 1e3);
    else if (bench->query_errors++ < MESSAGES_MAX)
        fprintf(stderr, "bench_agents: \"%s\" was responded to with %ld (%s)\n",
                queries[client->query].kind, status, curl_easy_strerror(code));
}

/* ---- the loop ---- */

/* Sends the batches that are due. After the end of the run, only batches that were refused before
 * are sent again. */
static void start_agents(struct bench *bench, int64_t now_ns, bool is_over)
{
    for (long i = 0; i < bench->options.agent_count; i++) {
        struct client *agent = &bench->clients[i];
        if (agent->is_busy || agent->due_ns > now_ns || (is_over && !agent->body.size))
            continue;
        if (!agent->body.size) {
            bench->late += now_ns - agent->due_ns > CLOCK_NS_PER_S;
            make_batch(bench, agent);
        }
        send_batch(bench, agent);
    }
}

/* Whether a batch is not acknowledged yet or a query runs. */
static bool is_unfinished(const struct bench *bench)
{
    for (long i = 0; i < bench->options.agent_count; i++) {
        if (bench->clients[i].body.size)
            return true;
    }
    return bench->busy > 0;
}

static void finish_done(struct bench *bench)
{
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(bench->multi, &left));) {
        struct client *client;
        CURL *easy = message->easy_handle;
        const CURLcode code = message->data.result;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &client);
        curl_multi_remove_handle(bench->multi, easy);
        finish(bench, client, code);
    }
}

static void run(struct bench *bench)
{
    const int64_t begin_ns = clock_monotonic_ns();
    const int64_t end_ns = begin_ns + (int64_t)(bench->options.seconds * 1e9);
    for (;;) {
        const int64_t now_ns = clock_monotonic_ns();
        const bool is_over = now_ns >= end_ns;
        if (is_over && (!is_unfinished(bench) || now_ns >= end_ns + DRAIN_S * CLOCK_NS_PER_S))
            return;
        start_agents(bench, now_ns, is_over);
        const double due = (double)(now_ns - begin_ns) / 1e9 * bench->options.queries_per_s;
        while (!is_over && bench->sent_queries < (unsigned)due)
            send_query(bench);
        int running;
        curl_multi_perform(bench->multi, &running);
        finish_done(bench);
        curl_multi_poll(bench->multi, NULL, 0, 5, NULL);
    }
}

/* ---- begin and end ---- */

static size_t drop_response(char *data, size_t size, size_t count, void *context)
{
    (void)data;
    (void)context;
    return size * count;
}

static void open_client(struct bench *bench, long number)
{
    struct client *client = &bench->clients[number];
    char url[TEXT_MAX];
    client->number = number;
    client->is_agent = number < bench->options.agent_count;
    client->random = (uint64_t)number + 1;
    /* Agents start at different times. */
    client->due_ns = clock_monotonic_ns() + number * INTERVAL_NS / bench->options.agent_count;
    client->easy = curl_easy_init();
    buf_init(&client->body, MAKER_MAX_BYTES);
    snprintf(url, sizeof(url), "%s/v1development/profiles", bench->options.url);
    curl_easy_setopt(client->easy, CURLOPT_URL, url);
    curl_easy_setopt(client->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(client->easy, CURLOPT_CAINFO, bench->options.ca_file);
    curl_easy_setopt(client->easy, CURLOPT_WRITEFUNCTION, drop_response);
    curl_easy_setopt(client->easy, CURLOPT_PRIVATE, client);
    curl_easy_setopt(client->easy, CURLOPT_TIMEOUT, (long)DRAIN_S);
    if (client->is_agent) {
        /* libcurl does not reuse connections from other local addresses. */
        char address[TEXT_MAX];
        snprintf(address, sizeof(address), "127.1.%ld.%ld", number / 250, number % 250 + 1);
        curl_easy_setopt(client->easy, CURLOPT_INTERFACE, address);
        curl_easy_setopt(client->easy, CURLOPT_IPRESOLVE, (long)CURL_IPRESOLVE_V4);
        return;
    }
    client->headers = curl_slist_append(NULL, bench->authorization);
    curl_easy_setopt(client->easy, CURLOPT_HTTPHEADER, client->headers);
}

static void read_token(struct bench *bench)
{
    char token[TEXT_MAX / 2] = "";
    FILE *file = fopen(bench->options.token_file, "r");
    if (!file || !fgets(token, sizeof(token), file))
        die("the token cannot be read");
    fclose(file);
    token[strcspn(token, "\n")] = 0;
    snprintf(bench->authorization, sizeof(bench->authorization), "Authorization: Bearer %s", token);
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void print_latencies(const char *kind, struct latencies *latencies)
{
    const size_t count = latencies->count;
    if (!count)
        return;
    qsort(latencies->ms, count, sizeof(double), compare_doubles);
    printf("\"%s\",%zu,%.1f,%.1f,%.1f\n", kind, count, latencies->ms[(count - 1) / 2],
           latencies->ms[(count - 1) * 99 / 100], latencies->ms[count - 1]);
}

static void print_results(struct bench *bench)
{
    const struct {
        const char *name;
        long number;
    } numbers[] = {{"batches", bench->batches},
                   {"samples", bench->samples_sent},
                   {"bytes", bench->bytes_sent},
                   {"acknowledged", bench->acknowledged},
                   {"sent again", bench->resent},
                   {"refused with Retry-After", bench->limited},
                   {"refused for good", bench->refused},
                   {"transport errors", bench->transport_errors},
                   {"queries that failed", bench->query_errors},
                   {"queries skipped (all connections busy)", bench->not_sent},
                   {"batches made late", bench->late}};
    printf("kind,count,p50_ms,p99_ms,max_ms\n");
    print_latencies("ack", &bench->latencies[OF_ACKS]);
    print_latencies("query", &bench->latencies[OF_QUERIES]);
    for (unsigned i = 0; i < QUERIES; i++)
        print_latencies(queries[i].kind, &bench->latencies[i]);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        printf("%s,%ld\n", numbers[i].name, numbers[i].number);
}

static void parse_options(struct options *options, int argc, char **argv)
{
    static const struct option longs[] = {
        {"url", required_argument, NULL, 'u'},
        {"ca", required_argument, NULL, 'c'},
        {"token-file", required_argument, NULL, 't'},
        {"log", required_argument, NULL, 'l'},
        {"agents", required_argument, NULL, 'a'},
        {"samples", required_argument, NULL, 'n'},
        {"seconds", required_argument, NULL, 's'},
        {"queries", required_argument, NULL, 'q'},
        {0},
    };
    *options = (struct options){
        .agent_count = 500, .sample_count = 320, .seconds = 600, .queries_per_s = 20};
    for (int option; (option = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        if (option == 'u')
            options->url = optarg;
        else if (option == 'c')
            options->ca_file = optarg;
        else if (option == 't')
            options->token_file = optarg;
        else if (option == 'l')
            options->log_file = optarg;
        else if (option == 'a')
            options->agent_count = strtol(optarg, NULL, 10);
        else if (option == 'n')
            options->sample_count = strtol(optarg, NULL, 10);
        else if (option == 's')
            options->seconds = strtod(optarg, NULL);
        else if (option == 'q')
            options->queries_per_s = strtod(optarg, NULL);
        else
            exit(2);
    }
    if (!options->url || !options->ca_file || !options->token_file || !options->log_file ||
        options->agent_count < 1 || options->agent_count > AGENTS_MAX ||
        options->sample_count < PROGRAMS_OF_AGENT)
        die("give --url, --ca, --token-file and --log");
}

int main(int argc, char **argv)
{
    struct bench bench = {0};
    parse_options(&bench.options, argc, argv);
    read_token(&bench);
    bench.log = fopen(bench.options.log_file, "w");
    if (!bench.log)
        die("the log cannot be written");
    maker_init(&bench.maker, SHARING, 1);
    buf_init(&bench.request, MAKER_MAX_BYTES);
    buf_init(&bench.samples, MAKER_MAX_BYTES);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    bench.multi = curl_multi_init();
    bench.client_count = bench.options.agent_count + QUERY_CLIENTS;
    curl_multi_setopt(bench.multi, CURLMOPT_MAXCONNECTS, bench.client_count);
    bench.clients = mem_new(struct client, (size_t)bench.client_count);
    for (long i = 0; i < bench.client_count; i++)
        open_client(&bench, i);
    run(&bench);
    for (long i = 0; i < bench.options.agent_count; i++) {
        if (bench.clients[i].body.size)
            log_batch(&bench, &bench.clients[i], false);
    }
    fclose(bench.log);
    print_results(&bench);
    maker_fini(&bench.maker);
    return 0;
}

/*
 * bench_feed: sends the fleet's profiles (tests/bench/fleet.h) to a server over TLS as fast as the
 * server accepts them, and writes the same samples to a Parquet file for other databases.
 *
 *    bench_feed --url URL --ca FILE --token TOKEN --kind otlp|pprof --minutes M --begin-s S
 *              [--unique PERMILLE] [--connections N] [--paced] [--rows FILE] [--stacks FILE]
 *
 * Requests are generated before they are sent, some hundred megabytes at a time: generating them
 * while others are in flight would make the server wait. otlp: a request is what an agent sees on a
 * host in 10 s: 20 pods, one of each service, each sample with its own stack, in the layout of OTLP
 * 1.10, not compressed. pprof: a request is one gzip profile. --unique: this many of 1,000 samples
 * have a stack that occurs only once. --paced: the profiles of 10 s are sent 10 s after those
 * before. --rows: the Parquet file, with columns service, pod, stack, time_ns, value. --stacks: a
 * text file whose line N, from 0, is the stack with number N, names from the root on with ";"
 * between them.
 *
 * Prints a header and a line of CSV at the end:
 * rows,requests,protobuf_bytes,seconds,generator_cpu_s,distinct; seconds: those in which requests
 * were sent; distinct: distinct stacks of the profiles divided by rows.
 */
#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/io/parquet.h"
#include "lib/profile/pprof/pprof.h"
#include "tests/bench/fleet.h"

#include <curl/curl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    REQUEST_MAX = 64 << 20,
    AHEAD_BYTES = 256 << 20,
    AHEAD_MAX = 1 << 14,
    CONNECTIONS_MAX = 64,
    SKEW = 24,         /* of fleet_init */
    UNIQUE_DEPTH = 12, /* frames of a stack that occurs only once */
    REFUSALS_MAX = 10000
};

struct options {
    const char *url;
    const char *ca_file;
    const char *token;
    const char *kind;
    const char *rows_file;
    const char *stacks_file;
    uint32_t minutes;
    uint32_t unique_permille;
    uint32_t connections;
    bool is_paced;
    int64_t begin_s;
};

struct connection {
    CURL *easy;
    struct buf response;
    bool is_busy;
};

/* Requests that are generated and not sent yet, one after another. */
struct ahead {
    struct buf bytes;
    size_t ends[AHEAD_MAX];
    uint32_t targets[AHEAD_MAX];
    uint32_t count;
};

struct feed {
    struct options options;
    struct ahead ahead;
    int64_t sending_ns; /* the time spent in send_ahead */
    struct fleet fleet;
    CURLM *multi;
    struct connection connections[CONNECTIONS_MAX];
    struct parquet_writer *table;
    FILE *rows;
    FILE *stacks;
    uint32_t next_unique; /* number of the next stack that occurs only once */
    uint32_t unique[UNIQUE_DEPTH];
    uint64_t row_count;
    uint64_t distinct_count; /* sum over all profiles of their stacks */
    uint64_t request_count;
    uint64_t protobuf_bytes;
    uint64_t failure_count;
    uint64_t refusal_count; /* responses with Retry-After */
    /* The current request: */
    struct buf dictionary;
    struct buf message;
    struct buf inner;
    uint32_t *location_of; /* function to location of the request, 0: none yet */
    uint32_t *touched;     /* functions with a location */
    uint32_t touched_count;
    uint32_t string_count;
    uint32_t stack_count;
};

static void die(const char *message)
{
    fprintf(stderr, "bench_feed: %s\n", message);
    exit(1);
}

/* ---- the table ---- */

enum { COLUMN_SERVICE, COLUMN_POD, COLUMN_STACK, COLUMN_TIME, COLUMN_VALUE, COLUMN_COUNT };

static enum err_code append_file(void *file, struct span bytes, struct err *err)
{
    if (fwrite(bytes.data, 1, bytes.size, file) != bytes.size)
        return err_set(err, ERR_IO, "writing the rows");
    return ERR_NONE;
}

static void open_table(struct feed *feed)
{
    static const char *const names[COLUMN_COUNT] = {"service", "pod", "stack", "time_ns", "value"};
    struct parquet_column columns[COLUMN_COUNT];
    if (!feed->options.rows_file)
        return;
    for (int i = 0; i < COLUMN_COUNT; i++)
        columns[i] = (struct parquet_column){.name = span_text(names[i]),
                                             .shape = PARQUET_ONE,
                                             .fields = {{"", PARQUET_I64}},
                                             .field_count = 1};
    feed->rows = fopen(feed->options.rows_file, "wb");
    if (!feed->rows)
        die(feed->options.rows_file);
    feed->table =
        parquet_writer_create(columns, COLUMN_COUNT, (struct parquet_limits){0},
                              (struct parquet_sink){.append = append_file, .context = feed->rows});
}

static void add_to_table(struct feed *feed, uint32_t target, int64_t time_ns, uint32_t stack,
                         int64_t value)
{
    const int64_t numbers[COLUMN_COUNT] = {target / PODS, target, stack, time_ns, value};
    struct err err;
    feed->row_count++;
    if (!feed->table)
        return;
    for (uint32_t i = 0; i < COLUMN_COUNT; i++) {
        const uint32_t entry =
            parquet_add(feed->table, i, &(struct parquet_value){.number = numbers[i]});
        parquet_append(feed->table, i, &entry, 1);
    }
    if (parquet_end_row(feed->table, &err))
        die(err.message);
}

static void write_stack(struct feed *feed, const uint32_t *frames, uint32_t count)
{
    const struct profile *tables = feed->fleet.tables;
    for (uint32_t i = count; feed->stacks && i-- > 0;) {
        const struct span name = tables->strings[tables->functions[frames[i]].name];
        fprintf(feed->stacks, "%.*s%c", SPAN_PRINT(name), i ? ';' : '\n');
    }
}

static void write_stacks(struct feed *feed)
{
    const struct fleet *fleet = &feed->fleet;
    if (!feed->options.stacks_file)
        return;
    feed->stacks = fopen(feed->options.stacks_file, "w");
    if (!feed->stacks)
        die(feed->options.stacks_file);
    for (uint32_t i = 0; i < STACKS; i++)
        write_stack(feed, fleet->stack + fleet->stack_start[i],
                    (uint32_t)(fleet->stack_start[i + 1] - fleet->stack_start[i]));
}

/* ---- samples ---- */

struct frames {
    const uint32_t *frames; /* leaf first; locations of the fleet's tables */
    uint32_t count;
    uint32_t number;
};

/* A stack of the fleet, or in unique_permille of 1,000 cases a new one: the callers of that stack
 * with 4 random frames below them. A new one is valid until the next call. */
static struct frames find_frames(struct feed *feed, uint32_t stack)
{
    const struct fleet *fleet = &feed->fleet;
    const uint32_t *known = fleet->stack + fleet->stack_start[stack];
    const uint32_t count = (uint32_t)(fleet->stack_start[stack + 1] - fleet->stack_start[stack]);
    if (!feed->options.unique_permille ||
        fleet_random(&feed->fleet) % 1000 >= feed->options.unique_permille)
        return (struct frames){known, count, stack};
    const uint32_t own = 4;
    const uint32_t shared = count < UNIQUE_DEPTH - own ? count : UNIQUE_DEPTH - own;
    for (uint32_t i = 0; i < own; i++)
        feed->unique[i] = (uint32_t)(fleet_random(&feed->fleet) % FUNCTIONS);
    for (uint32_t i = 0; i < shared; i++)
        feed->unique[own + i] = known[count - shared + i];
    write_stack(feed, feed->unique, own + shared);
    return (struct frames){feed->unique, own + shared, feed->next_unique++};
}

static int64_t tick_time_ns(struct feed *feed, uint32_t tick)
{
    const int64_t jitter_ns = (int64_t)(fleet_random(&feed->fleet) % 1000) * 1000000;
    return (feed->options.begin_s + (int64_t)tick * INTERVAL_S) * CLOCK_NS_PER_S + jitter_ns;
}

/* ---- OTLP ---- */

static void put_varint(struct buf *buf, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        buf_append_byte(buf, (uint8_t)(number | 0x80));
    buf_append_byte(buf, (uint8_t)number);
}

static void put_number(struct buf *buf, uint32_t field, uint64_t number)
{
    put_varint(buf, field << 3);
    put_varint(buf, number);
}

static void put_bytes(struct buf *buf, uint32_t field, struct span bytes)
{
    put_varint(buf, field << 3 | 2);
    put_varint(buf, bytes.size);
    buf_append_span(buf, bytes);
}

static void put_message(struct buf *buf, uint32_t field, struct buf *message)
{
    put_bytes(buf, field, buf_span(message));
    buf_clear(message);
}

static void begin_dictionary(struct feed *feed)
{
    static const char *const strings[] = {"", "cpu", "nanoseconds"};
    struct buf *dictionary = &feed->dictionary;
    for (uint32_t i = 0; i < feed->touched_count; i++)
        feed->location_of[feed->touched[i]] = 0;
    feed->touched_count = 0;
    buf_clear(dictionary);
    for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); i++)
        put_bytes(dictionary, 5, span_text(strings[i]));
    feed->string_count = sizeof(strings) / sizeof(*strings);
    for (uint32_t field = 1; field <= 7; field++) { /* entry 0 of each table is empty */
        if (field != 4 && field != 5)
            put_bytes(dictionary, field, SPAN_LITERAL(""));
    }
    feed->stack_count = 1;
}

static uint32_t take_location(struct feed *feed, uint32_t function)
{
    if (feed->location_of[function])
        return feed->location_of[function];
    const struct profile *tables = feed->fleet.tables;
    const uint32_t number = feed->touched_count + 1;
    put_bytes(&feed->dictionary, 5, tables->strings[tables->functions[function].name]);
    put_number(&feed->message, 1, feed->string_count++);
    put_message(&feed->dictionary, 3, &feed->message);
    put_number(&feed->message, 2, tables->locations[function].address);
    put_number(&feed->inner, 1, number);
    put_number(&feed->inner, 2, (uint64_t)tables->lines[function].line + 1);
    put_message(&feed->message, 3, &feed->inner);
    put_message(&feed->dictionary, 2, &feed->message);
    feed->touched[feed->touched_count++] = function;
    return feed->location_of[function] = number;
}

static uint32_t add_stack(struct feed *feed, const struct frames *frames)
{
    uint32_t locations[64];
    for (uint32_t i = 0; i < frames->count; i++)
        locations[i] = take_location(feed, frames->frames[i]);
    for (uint32_t i = 0; i < frames->count; i++)
        put_varint(&feed->inner, locations[i]);
    put_message(&feed->message, 1, &feed->inner);
    put_message(&feed->dictionary, 7, &feed->message);
    return feed->stack_count++;
}

static void put_attribute(struct feed *feed, struct buf *attributes, const char *key,
                          const char *text)
{
    put_bytes(&feed->inner, 1, span_text(text));
    put_bytes(&feed->message, 1, span_text(key));
    put_message(&feed->message, 2, &feed->inner);
    put_message(attributes, 1, &feed->message);
}

static void put_profile(struct feed *feed, uint32_t target, uint32_t tick, struct buf *profile)
{
    struct batch_sample samples[STACKS_OF_SERVICE];
    const int64_t time_ns = tick_time_ns(feed, tick);
    const uint32_t count = fleet_draw(&feed->fleet, target, tick, samples);
    put_number(&feed->message, 1, 1);
    put_number(&feed->message, 2, 2);
    put_message(profile, 1, &feed->message);
    for (uint32_t i = 0; i < count; i++) {
        const struct frames frames = find_frames(feed, samples[i].stack);
        const uint32_t stack = add_stack(feed, &frames);
        put_number(&feed->message, 1, stack);
        put_varint(&feed->inner, (uint64_t)samples[i].value);
        put_message(&feed->message, 4, &feed->inner);
        put_message(profile, 2, &feed->message);
        add_to_table(feed, target, time_ns, frames.number, samples[i].value);
    }
    feed->distinct_count += count;
    put_varint(profile, 3 << 3 | 1);
    buf_append_u64(profile, (uint64_t)time_ns);
    put_number(profile, 4, (uint64_t)INTERVAL_S * CLOCK_NS_PER_S);
    put_number(&feed->message, 1, 1);
    put_number(&feed->message, 2, 2);
    put_message(profile, 5, &feed->message);
    put_number(profile, 6, 10000000);
}

static void put_resource(struct feed *feed, uint32_t target, uint32_t tick, struct buf *request)
{
    char text[32];
    buf_auto attributes, profile, scope, resource;
    buf_init(&attributes, REQUEST_MAX);
    buf_init(&profile, REQUEST_MAX);
    buf_init(&scope, REQUEST_MAX);
    buf_init(&resource, REQUEST_MAX);
    snprintf(text, sizeof(text), "service-%u", target / PODS);
    put_attribute(feed, &attributes, "service.name", text);
    snprintf(text, sizeof(text), "pod-%u", target);
    put_attribute(feed, &attributes, "pod", text);
    put_message(&resource, 1, &attributes);
    put_profile(feed, target, tick, &profile);
    put_message(&scope, 2, &profile);
    put_message(&resource, 2, &scope);
    put_message(request, 1, &resource);
}

static void make_otlp(struct feed *feed, uint32_t tick, uint32_t host, struct buf *request)
{
    begin_dictionary(feed);
    for (uint32_t service = 0; service < SERVICES; service++)
        put_resource(feed, service * PODS + host, tick, request);
    put_message(request, 2, &feed->dictionary);
}

/* ---- pprof ---- */

enum { STRING_CPU = 1, STRING_NANOSECONDS, STRINGS_FIXED };

static void make_pprof(struct feed *feed, uint32_t tick, uint32_t target, struct buf *request)
{
    arena_auto arena = arena_create();
    struct batch_sample samples[STACKS_OF_SERVICE];
    const struct profile *all = feed->fleet.tables;
    const int64_t time_ns = tick_time_ns(feed, tick);
    const uint32_t count = fleet_draw(&feed->fleet, target, tick, samples);
    struct profile profile = *all;
    uint64_t *starts = arena_new(arena, uint64_t, count + (size_t)1);
    uint32_t *stack = arena_new(arena, uint32_t, (size_t)count * 64);
    int64_t *values = arena_new(arena, int64_t, count);
    /* Contains only what the profile uses, like those of runtimes. */
    struct profile_location *locations = arena_new(arena, struct profile_location, FUNCTIONS);
    struct profile_function *functions = arena_new(arena, struct profile_function, FUNCTIONS);
    struct profile_line *lines = arena_new(arena, struct profile_line, FUNCTIONS);
    struct span *strings = arena_new(arena, struct span, FUNCTIONS + STRINGS_FIXED);
    feed->distinct_count += count;
    begin_dictionary(feed);
    for (uint32_t i = 0; i < count; i++) {
        const struct frames frames = find_frames(feed, samples[i].stack);
        starts[i + 1] = starts[i] + frames.count;
        for (uint32_t j = 0; j < frames.count; j++)
            stack[starts[i] + j] = take_location(feed, frames.frames[j]) - 1;
        values[i] = samples[i].value;
        add_to_table(feed, target, time_ns, frames.number, samples[i].value);
    }
    for (uint32_t i = 0; i < feed->touched_count; i++) {
        const uint32_t name = STRINGS_FIXED + i;
        strings[name] = all->strings[all->functions[feed->touched[i]].name];
        functions[i] = (struct profile_function){.name = name, .system_name = name};
        lines[i] = (struct profile_line){i, all->lines[feed->touched[i]].line + 1, 0};
        locations[i] = all->locations[feed->touched[i]];
        locations[i].first_line = i;
    }
    strings[0] = SPAN_LITERAL("");
    strings[STRING_CPU] = SPAN_LITERAL("cpu");
    strings[STRING_NANOSECONDS] = SPAN_LITERAL("nanoseconds");
    profile.strings = strings;
    profile.string_count = STRINGS_FIXED + feed->touched_count;
    struct profile_value_type *type = arena_new(arena, struct profile_value_type, 1);
    *type = (struct profile_value_type){.type = STRING_CPU, .unit = STRING_NANOSECONDS};
    profile.value_types = type;
    profile.value_type_count = 1;
    profile.locations = locations;
    profile.functions = functions;
    profile.lines = lines;
    profile.location_count = profile.function_count = profile.line_count = feed->touched_count;
    profile.sample_count = count;
    profile.stack_start = starts;
    profile.stack = stack;
    profile.values = values;
    profile.label_start = arena_new(arena, uint32_t, count + (size_t)1);
    profile.period_type = *type;
    profile.period = 10000000;
    profile.time_ns = time_ns;
    profile.duration_ns = (int64_t)INTERVAL_S * CLOCK_NS_PER_S;
    struct err err;
    buf_auto flat;
    buf_init(&flat, REQUEST_MAX);
    if (pprof_encode(&profile, &flat, &err) ||
        compress_gzip(buf_span(&flat), COMPRESS_GZIP_FAST, request, &err))
        die(err.message);
}

/* ---- sending ---- */

static size_t take_response(char *data, size_t size, size_t count, void *context)
{
    buf_append(context, data, size * count);
    return size * count;
}

static void open_connections(struct feed *feed)
{
    char line[512];
    const bool is_otlp = strcmp(feed->options.kind, "otlp") == 0;
    struct curl_slist *headers =
        curl_slist_append(NULL, is_otlp ? "Content-Type: application/x-protobuf"
                                        : "Content-Type: application/octet-stream");
    headers = curl_slist_append(headers, "Expect:");
    snprintf(line, sizeof(line), "Authorization: Bearer %s", feed->options.token);
    headers = curl_slist_append(headers, line);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    feed->multi = curl_multi_init();
    for (uint32_t i = 0; i < feed->options.connections; i++) {
        struct connection *connection = &feed->connections[i];
        buf_init(&connection->response, REQUEST_MAX);
        connection->easy = curl_easy_init();
        curl_easy_setopt(connection->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        curl_easy_setopt(connection->easy, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(connection->easy, CURLOPT_CAINFO, feed->options.ca_file);
        curl_easy_setopt(connection->easy, CURLOPT_WRITEFUNCTION, take_response);
        curl_easy_setopt(connection->easy, CURLOPT_WRITEDATA, &connection->response);
        curl_easy_setopt(connection->easy, CURLOPT_PRIVATE, connection);
        curl_easy_setopt(connection->easy, CURLOPT_POST, 1L);
    }
}

static void finish_requests(struct feed *feed)
{
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(feed->multi, &left));) {
        struct connection *connection;
        long status = 0;
        CURL *easy = message->easy_handle;
        const CURLcode code = message->data.result;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &connection);
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        curl_multi_remove_handle(feed->multi, easy);
        if (code == CURLE_OK && (status == 429 || status == 503)) { /* again */
            if (feed->refusal_count++ == 0)
                fprintf(stderr, "bench_feed: the first refusal: %.*s\n",
                        SPAN_PRINT(buf_span(&connection->response)));
            if (feed->refusal_count > REFUSALS_MAX)
                die("too many refusals");
            buf_clear(&connection->response);
            curl_multi_add_handle(feed->multi, easy);
            continue;
        }
        if (code != CURLE_OK || status != 200) {
            fprintf(stderr, "bench_feed: %s, status %ld: %.*s\n", curl_easy_strerror(code), status,
                    SPAN_PRINT(buf_span(&connection->response)));
            feed->failure_count++;
        }
        connection->is_busy = false;
    }
}

static struct connection *take_connection(struct feed *feed)
{
    for (;;) {
        int running;
        curl_multi_perform(feed->multi, &running);
        finish_requests(feed);
        for (uint32_t i = 0; i < feed->options.connections; i++) {
            if (!feed->connections[i].is_busy)
                return &feed->connections[i];
        }
        curl_multi_poll(feed->multi, NULL, 0, 100, NULL);
    }
}

static bool is_busy(const struct feed *feed)
{
    for (uint32_t i = 0; i < feed->options.connections; i++) {
        if (feed->connections[i].is_busy)
            return true;
    }
    return false;
}

static void send_request(struct feed *feed, struct span body, uint32_t target)
{
    struct connection *connection = take_connection(feed);
    char url[512];
    if (strcmp(feed->options.kind, "otlp") == 0)
        snprintf(url, sizeof(url), "%s/v1development/profiles", feed->options.url);
    else
        snprintf(url, sizeof(url),
                 "%s/api/v1/profiles?label=service_name%%3Dservice-%u&label=pod%%3Dpod-%u",
                 feed->options.url, target / PODS, target);
    buf_clear(&connection->response);
    curl_easy_setopt(connection->easy, CURLOPT_URL, url);
    curl_easy_setopt(connection->easy, CURLOPT_POSTFIELDS, body.data);
    curl_easy_setopt(connection->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.size);
    connection->is_busy = true;
    feed->request_count++;
    feed->protobuf_bytes += body.size;
    curl_multi_add_handle(feed->multi, connection->easy);
}

static void wait_for(int64_t until_ns)
{
    const int64_t left_ns = until_ns - clock_monotonic_ns();
    if (left_ns > 0)
        nanosleep(&(struct timespec){.tv_sec = left_ns / CLOCK_NS_PER_S,
                                     .tv_nsec = left_ns % CLOCK_NS_PER_S},
                  NULL);
}

static void send_ahead(struct feed *feed)
{
    struct ahead *ahead = &feed->ahead;
    const int64_t start_ns = clock_monotonic_ns();
    for (uint32_t i = 0; i < ahead->count; i++) {
        const size_t begin = i ? ahead->ends[i - 1] : 0;
        const struct span body = span_of(ahead->bytes.data + begin, ahead->ends[i] - begin);
        send_request(feed, body, ahead->targets[i]);
    }
    while (is_busy(feed)) {
        int running;
        curl_multi_perform(feed->multi, &running);
        finish_requests(feed);
        curl_multi_poll(feed->multi, NULL, 0, 20, NULL);
    }
    feed->sending_ns += clock_monotonic_ns() - start_ns;
    buf_clear(&ahead->bytes);
    ahead->count = 0;
}

static void make_ahead(struct feed *feed, uint32_t tick, uint32_t target, bool is_otlp)
{
    struct ahead *ahead = &feed->ahead;
    if (is_otlp)
        make_otlp(feed, tick, target, &ahead->bytes);
    else
        make_pprof(feed, tick, target, &ahead->bytes);
    if (buf_failed(&ahead->bytes))
        die("a request is too large");
    ahead->ends[ahead->count] = ahead->bytes.size;
    ahead->targets[ahead->count++] = target;
}

/* Sends whenever AHEAD_BYTES are generated; with --paced, also when the requests of a tick are due.
 */
static void feed_all(struct feed *feed)
{
    const int64_t start_ns = clock_monotonic_ns();
    const bool is_otlp = strcmp(feed->options.kind, "otlp") == 0;
    const uint32_t ticks = feed->options.minutes * 60 / INTERVAL_S;
    for (uint32_t tick = 0; tick < ticks; tick++) {
        for (uint32_t i = 0; i < (is_otlp ? (uint32_t)PODS : (uint32_t)TARGETS); i++) {
            make_ahead(feed, tick, i, is_otlp);
            if (feed->ahead.bytes.size > AHEAD_BYTES || feed->ahead.count == AHEAD_MAX)
                send_ahead(feed);
        }
        if (feed->options.is_paced) {
            wait_for(start_ns + tick * INTERVAL_S * CLOCK_NS_PER_S);
            send_ahead(feed);
        }
    }
    send_ahead(feed);
}

static void parse_options(struct options *options, int argc, char **argv)
{
    static const struct option longs[] = {
        {"url", required_argument, NULL, 'u'},     {"ca", required_argument, NULL, 'c'},
        {"token", required_argument, NULL, 't'},   {"kind", required_argument, NULL, 'k'},
        {"minutes", required_argument, NULL, 'm'}, {"begin-s", required_argument, NULL, 'b'},
        {"unique", required_argument, NULL, 'q'},  {"connections", required_argument, NULL, 'n'},
        {"paced", no_argument, NULL, 'p'},         {"rows", required_argument, NULL, 'r'},
        {"stacks", required_argument, NULL, 's'},  {0},
    };
    *options = (struct options){.connections = 8, .minutes = 10, .kind = ""};
    for (int option; (option = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        const char **const texts[] = {
            ['u'] = &options->url,  ['c'] = &options->ca_file,   ['t'] = &options->token,
            ['k'] = &options->kind, ['r'] = &options->rows_file, ['s'] = &options->stacks_file};
        if (option == 'p')
            options->is_paced = true;
        else if (option == 'm')
            options->minutes = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 'b')
            options->begin_s = strtoll(optarg, NULL, 10);
        else if (option == 'q')
            options->unique_permille = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 'n')
            options->connections = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option != '?' && texts[option])
            *texts[option] = optarg;
        else
            exit(2);
    }
    if (!options->url || !options->token || !options->connections ||
        options->connections > CONNECTIONS_MAX ||
        (strcmp(options->kind, "otlp") != 0 && strcmp(options->kind, "pprof") != 0))
        die("give --url, --token, --kind otlp or pprof, and 1 to 64 connections");
}

int main(int argc, char **argv)
{
    struct feed *feed = mem_new(struct feed, 1);
    struct err err;
    parse_options(&feed->options, argc, argv);
    fleet_init(&feed->fleet, SKEW);
    feed->next_unique = STACKS;
    feed->location_of = mem_new(uint32_t, FUNCTIONS);
    feed->touched = mem_new(uint32_t, FUNCTIONS);
    buf_init(&feed->dictionary, REQUEST_MAX);
    buf_init(&feed->message, REQUEST_MAX);
    buf_init(&feed->inner, REQUEST_MAX);
    buf_init(&feed->ahead.bytes, (size_t)AHEAD_BYTES + REQUEST_MAX);
    open_table(feed);
    write_stacks(feed);
    open_connections(feed);
    const int64_t start_cpu_ns = clock_thread_cpu_ns();
    feed_all(feed);
    const double cpu_s = (double)(clock_thread_cpu_ns() - start_cpu_ns) / 1e9;
    if (feed->table && parquet_finish(feed->table, NULL, 0, &err))
        die(err.message);
    if ((feed->rows && fclose(feed->rows)) || (feed->stacks && fclose(feed->stacks)))
        die("writing the files");
    printf("rows,requests,protobuf_bytes,seconds,generator_cpu_s,distinct\n");
    printf("%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.3f,%.3f,%.4f\n", feed->row_count,
           feed->request_count, feed->protobuf_bytes, (double)feed->sending_ns / 1e9, cpu_s,
           (double)feed->distinct_count / (double)(feed->row_count ? feed->row_count : 1));
    return feed->failure_count ? 1 : 0;
}

/*
 * bench_otlp [FILE …]: what one core does with OTLP requests, in samples ("rows") per CPU second:
 * decoding alone, and decoding and writing the batch as a block of level 0. Prints rows of
 * tests/bench/run.py: name,figure,unit,goal,met.
 *
 * Without a file the request is made here, as an eBPF agent would send it for ten seconds of a busy
 * host: 3,000 samples of 20 processes, of which four fifths have a stack of their own; stacks of 21
 * frames on average, which share their callers; a third of the locations with function and file,
 * the others with an address only; threads, processors and moments with every sample. In the first
 * request leaves meet in the same libraries, 5,900 locations in all, as in recorded profiles of
 * that size (1,900 at 650 samples, 8,200 at 12,000); in the second hardly a leaf is met twice.
 */
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/profile/otlp.h"
#include "store/block_write.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    RUNS = 200,
    SAMPLES = 3000,
    STACKS = 2400,
    PROCESSES = 20,
    FUNCTIONS = 50000, /* of the programs that run; a request holds what was met of them */
    MAPPINGS = 60,
    THREADS = 300,
    PROCESSORS = 32,
    DEPTH_MIN = 6,
    DEPTH_MAX = 36,
    SHARING = 24,
    REQUEST_MAX = 64 << 20
};
static const int64_t START_NS = INT64_C(1700000000000000000);

static uint64_t random_state = 42;

static uint32_t random_below(uint32_t limit)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (uint32_t)((random_state * UINT64_C(2685821657736338717)) >> 33) % limit;
}

/* ---- the wire ---- */

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

static void put_text(struct buf *buf, uint32_t field, const char *text)
{
    put_bytes(buf, field, span_text(text));
}

/* Appends message as field of buf and empties it. */
static void put_message(struct buf *buf, uint32_t field, struct buf *message)
{
    put_bytes(buf, field, buf_span(message));
    buf_clear(message);
}

/* ---- the dictionary ---- */

struct maker {
    struct buf dictionary;
    struct buf message;
    struct buf inner;
    uint32_t strings;
    uint32_t functions;
    uint32_t locations;
    uint32_t attributes;
    uint32_t sharing;      /* 1: none */
    uint32_t *location_of; /* function to location, 0: not met yet */
};

static uint32_t add_string(struct maker *maker, const char *text)
{
    put_text(&maker->dictionary, 5, text);
    return maker->strings++;
}

static uint32_t add_attribute(struct maker *maker, uint32_t key, const char *text, int64_t number)
{
    if (text)
        put_text(&maker->inner, 1, text);
    else
        put_number(&maker->inner, 3, (uint64_t)number);
    put_number(&maker->message, 1, key);
    put_message(&maker->message, 2, &maker->inner);
    put_message(&maker->dictionary, 6, &maker->message);
    return maker->attributes++;
}

static uint32_t add_function(struct maker *maker, uint32_t function)
{
    char text[160];
    snprintf(text, sizeof(text), "example.org/service/internal/package%u.(*Type%u).Method%u",
             function % 97, function % 1009, function);
    const uint32_t name = add_string(maker, text);
    put_number(&maker->message, 1, name);
    if (function % 4 == 0) {
        snprintf(text, sizeof(text), "/src/service/internal/package%u/file%u.go", function % 97,
                 function);
        put_number(&maker->message, 3, add_string(maker, text));
    }
    put_message(&maker->dictionary, 3, &maker->message);
    return maker->functions++;
}

static uint32_t take_location(struct maker *maker, uint32_t function)
{
    if (maker->location_of[function])
        return maker->location_of[function];
    const bool has_function = function % 3 == 0;
    const uint32_t index = has_function ? add_function(maker, function) : 0;
    put_number(&maker->message, 1, 1 + function % (MAPPINGS - 1));
    put_number(&maker->message, 2, 0x400000 + (uint64_t)function * 48);
    if (has_function) {
        put_number(&maker->inner, 1, index);
        put_number(&maker->inner, 2, function % 900 + 1);
        put_message(&maker->message, 3, &maker->inner);
    }
    put_message(&maker->dictionary, 2, &maker->message);
    return maker->location_of[function] = maker->locations++;
}

/* Callers are few and near the root, callees many: a walk down a tree whose branches are numbers.
 */
static void add_stack(struct maker *maker)
{
    const uint32_t depth = DEPTH_MIN + random_below(DEPTH_MAX - DEPTH_MIN + 1);
    uint32_t frames[DEPTH_MAX];
    uint64_t state = random_below(PROCESSES);
    for (uint32_t i = 0; i < depth; i++) {
        const uint32_t branch = random_below(i < depth / 2 ? 2 : 6);
        state = (state * 6 + branch + 1) * UINT64_C(0x9e3779b97f4a7c15);
        state ^= state >> 29;
        /* The power makes few functions frequent and many rare. */
        double place = (double)(state >> 11) / 0x1p53;
        for (uint32_t j = 1; j < maker->sharing; j++)
            place *= (double)(state >> 11) / 0x1p53;
        frames[i] = take_location(maker, (uint32_t)(place * FUNCTIONS));
    }
    for (uint32_t i = depth; i-- > 0;)
        put_varint(&maker->inner, frames[i]);
    put_message(&maker->message, 1, &maker->inner);
    put_message(&maker->dictionary, 7, &maker->message);
}

static void add_mappings(struct maker *maker, uint32_t build_id_key)
{
    char text[80];
    put_text(&maker->dictionary, 1, "");
    for (uint32_t i = 1; i < MAPPINGS; i++) {
        snprintf(text, sizeof(text), "%016x%016x%08x", i * 7919, i * 104729, i);
        const uint32_t build_id = add_attribute(maker, build_id_key, text, 0);
        snprintf(text, sizeof(text), "/usr/lib/x86_64-linux-gnu/library%u.so.%u", i, i % 7);
        put_number(&maker->message, 1, 0x400000);
        put_number(&maker->message, 2, 0x4000000);
        put_number(&maker->message, 4, add_string(maker, text));
        put_varint(&maker->inner, build_id);
        put_message(&maker->message, 5, &maker->inner);
        put_message(&maker->dictionary, 1, &maker->message);
    }
}

/* ---- samples ---- */

static void add_sample(struct maker *maker, struct buf *profile, uint32_t sample)
{
    static const uint32_t first_attribute = MAPPINGS;
    const uint32_t thread = random_below(THREADS);
    const uint32_t stack = 1 + (sample < STACKS ? sample : random_below(STACKS));
    put_number(&maker->message, 1, stack);
    put_varint(&maker->inner, first_attribute + 2 * thread);
    put_varint(&maker->inner, first_attribute + 2 * thread + 1);
    put_varint(&maker->inner, first_attribute + 2 * THREADS + random_below(PROCESSORS));
    put_message(&maker->message, 2, &maker->inner);
    for (uint32_t i = 1 + random_below(2); i > 0; i--)
        buf_append_u64(&maker->inner, (uint64_t)START_NS + (uint64_t)random_below(1000000) * 10000);
    put_message(&maker->message, 5, &maker->inner);
    put_message(profile, 2, &maker->message);
}

static void add_resource(struct maker *maker, struct buf *request, uint32_t process)
{
    char text[64];
    buf_auto profile, scope, resource, attributes;
    buf_init(&profile, REQUEST_MAX);
    buf_init(&scope, REQUEST_MAX);
    buf_init(&resource, REQUEST_MAX);
    buf_init(&attributes, REQUEST_MAX);
    const char *const names[] = {"service.name", "container.id", "process.executable.name",
                                 "host.name"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(text, sizeof(text), "%s-of-process-%u", names[i], i < 3 ? process : 0);
        put_text(&maker->inner, 1, text);
        put_text(&maker->message, 1, names[i]);
        put_message(&maker->message, 2, &maker->inner);
        put_message(&attributes, 1, &maker->message);
    }
    put_message(&resource, 1, &attributes);
    put_number(&maker->message, 1, 1);
    put_number(&maker->message, 2, 2);
    put_message(&profile, 1, &maker->message);
    for (uint32_t i = process; i < SAMPLES; i += PROCESSES)
        add_sample(maker, &profile, i);
    put_varint(&profile, 3 << 3 | 1);
    buf_append_u64(&profile, (uint64_t)START_NS);
    put_number(&profile, 4, UINT64_C(10000000000));
    put_number(&maker->message, 1, 3);
    put_number(&maker->message, 2, 4);
    put_message(&profile, 5, &maker->message);
    put_number(&profile, 6, 50000000);
    put_message(&scope, 2, &profile);
    put_message(&resource, 2, &scope);
    put_message(request, 1, &resource);
}

static void make_dictionary(struct maker *maker)
{
    static const char *const strings[] = {"",
                                          "samples",
                                          "count",
                                          "cpu",
                                          "nanoseconds",
                                          "process.executable.build_id.gnu",
                                          "thread.name",
                                          "thread.id",
                                          "cpu.logical_number"};
    char text[64];
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
        (void)add_string(maker, strings[i]);
    put_text(&maker->dictionary, 2, "");
    put_text(&maker->dictionary, 3, "");
    put_text(&maker->dictionary, 6, "");
    put_text(&maker->dictionary, 7, "");
    maker->locations = maker->functions = maker->attributes = 1;
    add_mappings(maker, 5);
    for (uint32_t i = 0; i < THREADS; i++) {
        snprintf(text, sizeof(text), "worker-%u", i % 40);
        (void)add_attribute(maker, 6, text, 0);
        (void)add_attribute(maker, 7, NULL, 1000 + i);
    }
    for (uint32_t i = 0; i < PROCESSORS; i++)
        (void)add_attribute(maker, 8, NULL, i);
    for (uint32_t i = 0; i < STACKS; i++)
        add_stack(maker);
}

static void make_request(struct buf *request, uint32_t sharing)
{
    struct maker maker = {.sharing = sharing};
    buf_init(&maker.dictionary, REQUEST_MAX);
    buf_init(&maker.message, REQUEST_MAX);
    buf_init(&maker.inner, REQUEST_MAX);
    maker.location_of = mem_new(uint32_t, FUNCTIONS);
    make_dictionary(&maker);
    for (uint32_t i = 0; i < PROCESSES; i++)
        add_resource(&maker, request, i);
    put_message(request, 2, &maker.dictionary);
    mem_free(maker.location_of);
    buf_fini(&maker.dictionary);
    buf_fini(&maker.message);
    buf_fini(&maker.inner);
}

/* ---- measuring ---- */

static int compare_ns(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

struct times {
    int64_t decode[RUNS];
    int64_t both[RUNS];
    uint32_t row_count;
    uint64_t block_bytes;
};

static enum err_code run_once(struct span raw, struct times *times, int run, struct err *err)
{
    struct batch *batch;
    struct otlp_result result;
    struct block_summary summary;
    buf_auto block;
    buf_init(&block, REQUEST_MAX);
    const int64_t start = clock_thread_cpu_ns();
    enum err_code code = otlp_decode(raw, OTLP_PROTOBUF, NULL, &batch, &result, err);
    if (code)
        return code;
    times->decode[run] = clock_thread_cpu_ns() - start;
    code = block_write_batch(batch, 1, 0, &block, &summary, err);
    times->row_count = batch->sample_count;
    times->block_bytes = block.size;
    if (run == 0)
        fprintf(stderr,
                "%zu bytes: %u profiles (%u rejected: %s), %u samples, %u stacks of %.1f frames, "
                "%u locations, %u functions, %u strings, %u series, %u label sets\n",
                raw.size, result.profile_count, result.rejected_profiles, result.message,
                batch->sample_count, batch->stack_count,
                (double)batch->stack_start[batch->stack_count] / batch->stack_count,
                batch->tables->location_count, batch->tables->function_count,
                batch->tables->string_count, batch->series_count, batch->label_set_count);
    batch_destroy(batch);
    times->both[run] = clock_thread_cpu_ns() - start;
    return code;
}

static bool bench(const char *name, struct span raw)
{
    static struct times times;
    struct err err;
    for (int run = 0; run < RUNS; run++) {
        if (run_once(raw, &times, run, &err)) {
            fprintf(stderr, "%s: %s\n", name, err.message);
            return false;
        }
    }
    qsort(times.decode, RUNS, sizeof(times.decode[0]), compare_ns);
    qsort(times.both, RUNS, sizeof(times.both[0]), compare_ns);
    const double rows = times.row_count / 1e6 * 1e9;
    const double both = rows / (double)times.both[RUNS / 2];
    printf("\"OTLP decode %s, median\",%.2f,M rows/s/core,,\n", name,
           rows / (double)times.decode[RUNS / 2]);
    printf("\"OTLP decode %s and block of level 0, median\",%.2f,M rows/s/core,at least 1.5,%s\n",
           name, both, both >= 1.5 ? "yes" : "no");
    printf("\"OTLP block of %s\",%.1f,bytes/row,,\n", name,
           (double)times.block_bytes / times.row_count);
    return true;
}

static bool bench_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t block[1 << 16];
    buf_auto raw;
    buf_init(&raw, REQUEST_MAX);
    if (!file)
        return false;
    for (size_t size; (size = fread(block, 1, sizeof(block), file)) > 0;)
        buf_append(&raw, block, size);
    fclose(file);
    return bench(strrchr(path, '/') ? strrchr(path, '/') + 1 : path, buf_span(&raw));
}

int main(int count, char **paths)
{
    bool is_good = true;
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    for (int i = 1; i < count; i++)
        is_good &= bench_file(paths[i]);
    for (uint32_t i = 0; count == 1 && i < 2; i++) {
        buf_auto request;
        buf_init(&request, REQUEST_MAX);
        make_request(&request, i == 0 ? SHARING : 1);
        is_good &= bench(i == 0 ? "3,000 samples" : "3,000 samples without common leaves",
                         buf_span(&request));
    }
    return is_good ? 0 : 1;
}

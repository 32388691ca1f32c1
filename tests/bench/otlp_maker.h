/*
 * otlp_maker: builds OTLP requests (layout 1.10) step by step, for benchmarks: maker_init,
 * begin_dictionary, then add_stack for each stack, add_sample for the samples of a process,
 * add_resource for the process, and put_message for the finished dictionary.
 *
 * A maker contains the dictionary of the request. Functions are numbers below MAKER_FUNCTIONS: a
 * third of them have a name, a quarter of these also a file, all others only an address. A maker
 * belongs to one thread.
 */
#ifndef TESTS_BENCH_OTLP_MAKER_H
#define TESTS_BENCH_OTLP_MAKER_H

#include "lib/base/buf.h"
#include "lib/base/mem.h"

#include <stdio.h>

enum {
    MAKER_FUNCTIONS = 50000, /* of all programs; a request contains those of its stacks */
    MAKER_MAPPINGS = 60,
    MAKER_THREADS = 300,
    MAKER_PROCESSORS = 32,
    MAKER_DEPTH_MIN = 6,
    MAKER_DEPTH_MAX = 36,
    MAKER_PERIOD_NS = 50000000, /* 20 samples per second of CPU time */
    MAKER_MAX_BYTES = 64 << 20
};

static inline uint32_t random_below(uint64_t *random, uint32_t limit)
{
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    return (uint32_t)((*random * UINT64_C(2685821657736338717)) >> 33) % limit;
}

/* ---- the wire ---- */

static inline void put_varint(struct buf *buf, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        buf_append_byte(buf, (uint8_t)(number | 0x80));
    buf_append_byte(buf, (uint8_t)number);
}

static inline void put_number(struct buf *buf, uint32_t field, uint64_t number)
{
    put_varint(buf, field << 3);
    put_varint(buf, number);
}

static inline void put_bytes(struct buf *buf, uint32_t field, struct span bytes)
{
    put_varint(buf, field << 3 | 2);
    put_varint(buf, bytes.size);
    buf_append_span(buf, bytes);
}

static inline void put_text(struct buf *buf, uint32_t field, const char *text)
{
    put_bytes(buf, field, span_text(text));
}

/* Appends message as a field of buf and clears message. */
static inline void put_message(struct buf *buf, uint32_t field, struct buf *message)
{
    put_bytes(buf, field, buf_span(message));
    buf_clear(message);
}

/* ---- the dictionary ---- */

struct maker {
    struct buf dictionary;
    struct buf message; /* the message that is being built, and one within it */
    struct buf inner;
    uint32_t strings; /* number of entries in the dictionary's table, also of the next three */
    uint32_t functions;
    uint32_t locations;
    uint32_t attributes;
    uint32_t sharing; /* exponent of the choice of functions (add_stack): 1: all are as frequent,
                       * so leaves hardly occur twice; more: many stacks share their leaves */
    uint64_t random;
    uint32_t *location_of; /* function to location, 0: none yet */
};

static inline uint32_t add_string(struct maker *maker, const char *text)
{
    put_text(&maker->dictionary, 5, text);
    return maker->strings++;
}

static inline uint32_t add_attribute(struct maker *maker, uint32_t key, const char *text,
                                     int64_t number)
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

static inline uint32_t add_function(struct maker *maker, uint32_t function)
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

static inline uint32_t take_location(struct maker *maker, uint32_t function)
{
    if (maker->location_of[function])
        return maker->location_of[function];
    const bool has_function = function % 3 == 0;
    const uint32_t index = has_function ? add_function(maker, function) : 0;
    put_number(&maker->message, 1, 1 + function % (MAKER_MAPPINGS - 1));
    put_number(&maker->message, 2, 0x400000 + (uint64_t)function * 48);
    if (has_function) {
        put_number(&maker->inner, 1, index);
        put_number(&maker->inner, 2, function % 900 + 1);
        put_message(&maker->message, 3, &maker->inner);
    }
    put_message(&maker->dictionary, 2, &maker->message);
    return maker->location_of[function] = maker->locations++;
}

static inline void add_mappings(struct maker *maker, uint32_t build_id_key)
{
    char text[80];
    put_text(&maker->dictionary, 1, "");
    for (uint32_t i = 1; i < MAKER_MAPPINGS; i++) {
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

/*
 * Adds a stack to the dictionary: a random path from the root of the program's call tree. A node of
 * the tree is a hash of its parent and the number of a branch, 2 branches in the upper half of the
 * path and 6 in the lower half, so that stacks share callers.
 */
static inline void add_stack(struct maker *maker, uint64_t *random, uint32_t program)
{
    const uint32_t depth =
        MAKER_DEPTH_MIN + random_below(random, MAKER_DEPTH_MAX - MAKER_DEPTH_MIN + 1);
    uint32_t frames[MAKER_DEPTH_MAX];
    uint64_t state = program;
    for (uint32_t i = 0; i < depth; i++) {
        const uint32_t branch = random_below(random, i < depth / 2 ? 2 : 6);
        state = (state * 6 + branch + 1) * UINT64_C(0x9e3779b97f4a7c15);
        state ^= state >> 29;
        /* The power makes few functions frequent and many rare. */
        double position = (double)(state >> 11) / 0x1p53;
        for (uint32_t j = 1; j < maker->sharing; j++)
            position *= (double)(state >> 11) / 0x1p53;
        frames[i] = take_location(maker, (uint32_t)(position * MAKER_FUNCTIONS));
    }
    for (uint32_t i = depth; i-- > 0;)
        put_varint(&maker->inner, frames[i]);
    put_message(&maker->message, 1, &maker->inner);
    put_message(&maker->dictionary, 7, &maker->message);
}

/* The common start of all requests; the caller has cleared the dictionary. Attributes 1 to
 * MAKER_MAPPINGS - 1 are build ids of the mappings; then follow those of threads and processors. */
static inline void begin_dictionary(struct maker *maker)
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
        put_text(&maker->dictionary, 5, strings[i]);
    put_text(&maker->dictionary, 2, "");
    put_text(&maker->dictionary, 3, "");
    put_text(&maker->dictionary, 6, "");
    put_text(&maker->dictionary, 7, "");
    maker->locations = maker->functions = maker->attributes = 1;
    maker->strings = sizeof(strings) / sizeof(strings[0]);
    add_mappings(maker, 5);
    for (uint32_t i = 0; i < MAKER_THREADS; i++) {
        snprintf(text, sizeof(text), "worker-%u", i % 40);
        (void)add_attribute(maker, 6, text, 0);
        (void)add_attribute(maker, 7, NULL, 1000 + i);
    }
    for (uint32_t i = 0; i < MAKER_PROCESSORS; i++)
        (void)add_attribute(maker, 8, NULL, i);
}

/* ---- samples ---- */

/* Appends to samples one stack of a random thread, with one or two timestamps in the 10 s from
 * start_ns on; returns how many. */
static inline uint32_t add_sample(struct maker *maker, struct buf *samples, uint32_t stack,
                                  int64_t start_ns)
{
    const uint32_t threads = MAKER_MAPPINGS, processors = threads + 2 * MAKER_THREADS;
    const uint32_t thread = random_below(&maker->random, MAKER_THREADS);
    const uint32_t timestamps = 1 + random_below(&maker->random, 2);
    put_number(&maker->message, 1, stack);
    put_varint(&maker->inner, threads + 2 * thread);
    put_varint(&maker->inner, threads + 2 * thread + 1);
    put_varint(&maker->inner, processors + random_below(&maker->random, MAKER_PROCESSORS));
    put_message(&maker->message, 2, &maker->inner);
    for (uint32_t i = 0; i < timestamps; i++)
        buf_append_u64(&maker->inner, (uint64_t)start_ns +
                                          (uint64_t)random_below(&maker->random, 1000000) * 10000);
    put_message(&maker->message, 5, &maker->inner);
    put_message(samples, 2, &maker->message);
    return timestamps;
}

static inline void add_resource_attributes(struct maker *maker, struct buf *resource,
                                           const char *service, const char *host)
{
    char container[160];
    buf_auto attributes;
    buf_init(&attributes, MAKER_MAX_BYTES);
    snprintf(container, sizeof(container), "%s-on-%s", service, host);
    const char *const pairs[][2] = {{"service.name", service},
                                    {"container.id", container},
                                    {"process.executable.name", service},
                                    {"host.name", host}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        put_text(&maker->inner, 1, pairs[i][1]);
        put_text(&maker->message, 1, pairs[i][0]);
        put_message(&maker->message, 2, &maker->inner);
        put_message(&attributes, 1, &maker->message);
    }
    put_message(resource, 1, &attributes);
}

/* Appends to request a process with one profile of the samples; its type is samples:count, and its
 * period is MAKER_PERIOD_NS of CPU time. */
static inline void add_resource(struct maker *maker, struct buf *request, const char *service,
                                const char *host, struct span samples, int64_t start_ns)
{
    buf_auto profile, scope, resource;
    buf_init(&profile, MAKER_MAX_BYTES);
    buf_init(&scope, MAKER_MAX_BYTES);
    buf_init(&resource, MAKER_MAX_BYTES);
    add_resource_attributes(maker, &resource, service, host);
    put_number(&maker->message, 1, 1);
    put_number(&maker->message, 2, 2);
    put_message(&profile, 1, &maker->message);
    buf_append_span(&profile, samples);
    put_varint(&profile, 3 << 3 | 1);
    buf_append_u64(&profile, (uint64_t)start_ns);
    put_number(&profile, 4, UINT64_C(10000000000));
    put_number(&maker->message, 1, 3);
    put_number(&maker->message, 2, 4);
    put_message(&profile, 5, &maker->message);
    put_number(&profile, 6, MAKER_PERIOD_NS);
    put_message(&scope, 2, &profile);
    put_message(&resource, 2, &scope);
    put_message(request, 1, &resource);
}

static inline void maker_init(struct maker *maker, uint32_t sharing, uint64_t random)
{
    *maker = (struct maker){.sharing = sharing, .random = random};
    buf_init(&maker->dictionary, MAKER_MAX_BYTES);
    buf_init(&maker->message, MAKER_MAX_BYTES);
    buf_init(&maker->inner, MAKER_MAX_BYTES);
    maker->location_of = mem_new(uint32_t, MAKER_FUNCTIONS);
}

static inline void maker_fini(struct maker *maker)
{
    mem_free(maker->location_of);
    buf_fini(&maker->dictionary);
    buf_fini(&maker->message);
    buf_fini(&maker->inner);
}

#endif

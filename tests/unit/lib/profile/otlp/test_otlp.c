#include "lib/base/err.h"
#include "tests/unit/lib/profile/batches.h"
#include "tests/unit/lib/profile/protobuf.h"

#include "lib/profile/otlp/otlp.h"

/* ---- requests, built by hand ---- */

enum layout { OTLP_1_8, OTLP_1_9, OTLP_1_10, OTLP_1_11, LAYOUTS };
enum { REQUEST_MAX = 1 << 20 };

/* The strings of the dictionary. */
enum {
    S_EMPTY,
    S_SAMPLES,
    S_COUNT,
    S_CPU,
    S_NANOSECONDS,
    S_MAIN,
    S_LEAF,
    S_FILE,
    S_APP,
    S_GNU,
    S_GO,
    S_THREAD,
    S_NUMBER,
    S_SERVICE,
    S_BYTES,
    S_CHECKOUT,
    S_REGION,
    S_SPACE,
    S_STRINGS
};
static const char *const strings[S_STRINGS] = {"",
                                               "samples",
                                               "count",
                                               "cpu",
                                               "nanoseconds",
                                               "main",
                                               "leaf",
                                               "main.c",
                                               "/bin/app",
                                               "process.executable.build_id.gnu",
                                               "process.executable.build_id.go",
                                               "thread.name",
                                               "cpu.logical_number",
                                               "service.name",
                                               "bytes",
                                               "checkout",
                                               "region",
                                               "inuse_space"};

/* Appends message as a field of buf and clears message. */
static void put(struct buf *buf, uint32_t field, struct buf *message)
{
    protobuf_bytes(buf, field, message->data, message->size);
    buf_clear(message);
}

static void put_packed(struct buf *buf, uint32_t field, const int64_t *numbers, size_t count)
{
    buf_auto packed;
    buf_init(&packed, REQUEST_MAX);
    for (size_t i = 0; i < count; i++)
        protobuf_varint(&packed, (uint64_t)numbers[i]);
    put(buf, field, &packed);
}
#define PACKED(buf, field, ...)                                                                    \
    put_packed((buf), (field), (const int64_t[]){__VA_ARGS__},                                     \
               sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static void put_fixed64(struct buf *buf, uint32_t field, uint64_t number)
{
    protobuf_varint(buf, (uint64_t)field << 3 | 1);
    buf_append_u64(buf, number);
}

/* Adds an entry of the attribute table: a text, or a number with a unit. */
static void put_attribute(struct buf *dictionary, int64_t key, const char *text, int64_t number)
{
    buf_auto value, attribute;
    buf_init(&value, REQUEST_MAX);
    buf_init(&attribute, REQUEST_MAX);
    if (text)
        protobuf_text(&value, 1, text);
    else
        protobuf_number(&value, 3, number);
    protobuf_number(&attribute, 1, key);
    put(&attribute, 2, &value);
    if (!text)
        protobuf_number(&attribute, 3, S_BYTES);
    put(dictionary, 6, &attribute);
}

static void put_location(struct buf *dictionary, int64_t mapping, int64_t address, int64_t function)
{
    buf_auto location;
    buf_init(&location, REQUEST_MAX);
    protobuf_number(&location, 1, mapping);
    protobuf_number(&location, 2, address);
    WIRE(&location, 3, 1, function, 2, 12, 3, 7);
    put(dictionary, 2, &location);
}

static void put_stack_of(struct buf *dictionary, const int64_t *locations, size_t count)
{
    buf_auto stack;
    buf_init(&stack, REQUEST_MAX);
    if (count)
        put_packed(&stack, 1, locations, count);
    put(dictionary, 7, &stack);
}
#define STACK(dictionary, ...)                                                                     \
    put_stack_of((dictionary), (const int64_t[]){__VA_ARGS__},                                     \
                 sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* Attributes 1: GNU id, 2: Go id, 3: thread, 4: number, 5: service, 6: region. Stacks 1: main;leaf,
 * 2: main. */
static void put_dictionary(struct buf *dictionary)
{
    buf_auto message;
    buf_init(&message, REQUEST_MAX);
    for (size_t i = 0; i < S_STRINGS; i++)
        protobuf_text(dictionary, 5, strings[i]);
    for (uint32_t table = 1; table < 8; table++)
        if (table != 5)
            put(dictionary, table, &message);
    put_attribute(dictionary, S_GNU, "abcdef", 0);
    put_attribute(dictionary, S_GO, "go-id", 0);
    put_attribute(dictionary, S_THREAD, "worker", 0);
    put_attribute(dictionary, S_NUMBER, NULL, -3);
    put_attribute(dictionary, S_SERVICE, "of-sample", 0);
    put_attribute(dictionary, S_REGION, "north", 0);
    protobuf_number(&message, 1, 0x1000);
    protobuf_number(&message, 2, 0x2000);
    protobuf_number(&message, 3, 0x40);
    protobuf_number(&message, 4, S_APP);
    PACKED(&message, 5, 2, 1);
    put(dictionary, 1, &message);
    WIRE(dictionary, 3, 1, S_MAIN, 3, S_FILE, 4, 10);
    WIRE(dictionary, 3, 1, S_LEAF, 2, S_LEAF);
    put_location(dictionary, 1, 0x1010, 1);
    put_location(dictionary, 1, 0x1020, 2);
    protobuf_bytes(&message, 1, "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20", 16);
    protobuf_bytes(&message, 2, "\21\22\23\24\25\26\27\30", 8);
    put(dictionary, 4, &message);
    STACK(dictionary, 2, 1);
    STACK(dictionary, 1);
}

struct sample {
    int64_t stack;
    int64_t link;
    int64_t attributes[4]; /* this and the next two: up to 4 numbers, terminated by 0 */
    int64_t values[4];
    int64_t times[4];
};

static size_t count_of(const int64_t numbers[4])
{
    size_t count = 0;
    while (count < 4 && numbers[count])
        count++;
    return count;
}

/* How put_numbers encodes a list, which a sender may choose for each list: packed, number by
 * number, or a part in each way. */
enum packing { PACKED_LISTS, SINGLE_NUMBERS, BOTH, PACKINGS };
static enum packing packing = PACKED_LISTS;

static void put_numbers(struct buf *buf, uint32_t field, const int64_t *numbers, size_t count)
{
    const size_t single_count = packing == PACKED_LISTS ? 0 : packing == BOTH ? count / 2 : count;
    for (size_t i = 0; i < single_count; i++)
        protobuf_number(buf, field, numbers[i]);
    if (single_count < count)
        put_packed(buf, field, numbers + single_count, count - single_count);
}

static void put_sample(struct buf *profile, enum layout layout, const struct sample *sample)
{
    const bool is_old = layout < OTLP_1_10;
    buf_auto message, times;
    buf_init(&message, REQUEST_MAX);
    buf_init(&times, REQUEST_MAX);
    if (sample->stack)
        protobuf_number(&message, 1, sample->stack);
    if (sample->attributes[0])
        put_numbers(&message, is_old ? 3 : 2, sample->attributes, count_of(sample->attributes));
    if (sample->link)
        protobuf_number(&message, is_old ? 4 : 3, sample->link);
    if (sample->values[0])
        put_numbers(&message, is_old ? 2 : 4, sample->values, count_of(sample->values));
    for (size_t i = 0; i < count_of(sample->times); i++)
        buf_append_u64(&times, (uint64_t)sample->times[i]);
    if (times.size)
        put(&message, 5, &times);
    put(profile, 2, &message);
}

static const struct sample plain_samples[] = {
    {.stack = 1, .attributes = {3, 4}, .values = {2, 3}, .link = 1, .times = {70, 60}},
    {.stack = 2, .values = {5}},
    {.stack = 2, .attributes = {3, 4}, .times = {80, 90, 91}},
    {.stack = 0, .values = {4}},
};

static void put_profile(struct buf *scope, enum layout layout, const struct sample *samples,
                        size_t count)
{
    buf_auto profile;
    buf_init(&profile, REQUEST_MAX);
    if (layout == OTLP_1_8)
        WIRE(&profile, 1, 1, S_SAMPLES, 2, S_COUNT, 3, 1);
    else
        WIRE(&profile, 1, 1, S_SAMPLES, 2, S_COUNT);
    for (size_t i = 0; i < count; i++)
        put_sample(&profile, layout, &samples[i]);
    put_fixed64(&profile, 3, 50);
    protobuf_number(&profile, 4, 1000);
    WIRE(&profile, 5, 1, S_CPU, 2, S_NANOSECONDS);
    protobuf_number(&profile, 6, 10);
    protobuf_bytes(&profile, layout == OTLP_1_8 ? 8 : 7, "0123456789abcdef", 16);
    if (layout == OTLP_1_8)
        protobuf_number(&profile, 9, 1);
    else
        protobuf_number(&profile, 8, 1);
    put(scope, 2, &profile);
}

static void put_key_value(struct buf *buf, uint32_t field, const char *key, const char *text)
{
    buf_auto value, message;
    buf_init(&value, REQUEST_MAX);
    buf_init(&message, REQUEST_MAX);
    protobuf_text(&value, 1, text);
    protobuf_text(&message, 1, key);
    put(&message, 2, &value);
    put(buf, field, &message);
}

/* Since 1.10 keys and texts may be in the string table. */
static void put_references(struct buf *resource, int64_t key, int64_t text)
{
    buf_auto value, message;
    buf_init(&value, REQUEST_MAX);
    buf_init(&message, REQUEST_MAX);
    protobuf_number(&value, 8, text);
    put(&message, 2, &value);
    protobuf_number(&message, 3, key);
    put(resource, 1, &message);
}

static void put_request(struct buf *request, struct buf *resource, struct buf *scope,
                        struct buf *dictionary)
{
    buf_auto resource_profiles;
    buf_init(&resource_profiles, REQUEST_MAX);
    put(&resource_profiles, 1, resource);
    put(&resource_profiles, 2, scope);
    put(request, 1, &resource_profiles);
    put(request, 2, dictionary);
}

/* A request with one resource and one profile. service: its service.name; NULL: "checkout", since
 * 1.10 as a reference to the string table. */
static void make_request_of(struct buf *request, enum layout layout, const char *service,
                            const struct sample *samples, size_t count)
{
    buf_auto resource, scope, dictionary;
    buf_init(&resource, REQUEST_MAX);
    buf_init(&scope, REQUEST_MAX);
    buf_init(&dictionary, REQUEST_MAX);
    put_dictionary(&dictionary);
    if (layout < OTLP_1_10 || service)
        put_key_value(&resource, 1, "service.name", service ? service : "checkout");
    else
        put_references(&resource, S_SERVICE, S_CHECKOUT);
    put_profile(&scope, layout, samples, count);
    put_request(request, &resource, &scope, &dictionary);
}

static void make_request(struct buf *request, enum layout layout, const struct sample *samples,
                         size_t count)
{
    make_request_of(request, layout, NULL, samples, count);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct batch *decode(const struct buf *request, const struct otlp_options *options,
                            struct otlp_result *result)
{
    struct batch *batch = NULL;
    struct err err;
    if (otlp_decode(buf_span(request), OTLP_PROTOBUF, options, &batch, result, &err))
        fail_msg("%s", err.message);
    return batch;
}

static void assert_decodes(const struct buf *request, const char *expected)
{
    struct otlp_result result;
    batch_auto batch = decode(request, NULL, &result);
    assert_string_equal(result.message, "");
    assert_int_equal(result.rejected_profiles, 0);
    assert_batch(batch, expected);
    const struct otlp_options kept = {.is_raw_kept = true};
    batch_auto borrowing = decode(request, &kept, &result);
    assert_batch(borrowing, expected);
}

static const char plain_text[] =
    "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{service_name=checkout} 50 1000 10\n"
    "  main;leaf thread.name=worker cpu.logical_number=-3bytes "
    "<0102030405060708090a0b0c0d0e0f10 1112131415161718> 50\n"
    "  main 50\n"
    "  main thread.name=worker cpu.logical_number=-3bytes 30\n"
    "   40\n";

/* ---- decoding ---- */

static void all_layouts_decode_to_the_same_profiles(void **state)
{
    (void)state;
    for (enum layout layout = OTLP_1_8; layout < LAYOUTS; layout++) {
        buf_auto request;
        struct otlp_result result;
        buf_init(&request, REQUEST_MAX);
        make_request(&request, layout, plain_samples, COUNT(plain_samples));
        assert_decodes(&request, plain_text);
        batch_auto batch = decode(&request, NULL, &result);
        assert_int_equal(result.profile_count, 1);
        assert_int_equal(batch->timestamp_start[4], 5);
        assert_int_equal(batch->timestamps[0], 60);
        assert_int_equal(batch->timestamps[1], 70);
        assert_int_equal(batch->timestamp_start[2], 2);
        assert_int_equal(batch->timestamps[4], 91);
    }
}

static void lists_may_be_packed_or_not_in_all_layouts(void **state)
{
    (void)state;
    static const struct sample samples[][2] = {
        {{.stack = 1, .values = {7}}, {.stack = 2, .values = {9}}},
        {{.stack = 1, .values = {7}, .attributes = {3}}, {.stack = 2, .values = {9}}},
        {{.stack = 1, .values = {1}, .attributes = {3}},
         {.stack = 2, .values = {300}, .attributes = {3}}},
        {{.stack = 1, .values = {1, 6}, .attributes = {3}}, {.stack = 2, .values = {9}}},
        {{.stack = 1, .values = {7}, .link = 1}, {.stack = 2, .values = {9}, .attributes = {4}}},
        {{.stack = 1, .values = {7}, .link = 1, .attributes = {3, 4}},
         {.stack = 2, .values = {-9}}},
        {{.stack = 1, .values = {7}, .times = {5}}, {.stack = 2, .values = {9}, .attributes = {3}}},
    };
    for (size_t i = 0; i < COUNT(samples); i++) {
        char *expected = NULL;
        for (int at = 0; at < (int)PACKINGS * LAYOUTS; at++) {
            struct otlp_result result;
            buf_auto request, text;
            buf_init(&request, REQUEST_MAX);
            buf_init(&text, REQUEST_MAX);
            packing = (enum packing)(at / LAYOUTS);
            make_request(&request, (enum layout)(at % LAYOUTS), samples[i], COUNT(samples[i]));
            packing = PACKED_LISTS;
            batch_auto batch = decode(&request, NULL, &result);
            assert_string_equal(result.message, "");
            assert_int_equal(result.profile_count, 1);
            put_batch(batch, &text);
            buf_append_byte(&text, 0);
            if (expected)
                assert_string_equal((const char *)text.data, expected);
            else
                expected = strdup((const char *)text.data);
        }
        free(expected);
    }
}

/* A length of 3 bytes, as written by encoders that fill in the size of a message afterwards. */
static void put_wide(struct buf *buf, uint32_t field, struct buf *message)
{
    protobuf_varint(buf, (uint64_t)field << 3 | 2);
    buf_append_byte(buf, (uint8_t)(message->size | 0x80));
    buf_append_byte(buf, (uint8_t)(message->size >> 7 | 0x80));
    buf_append_byte(buf, (uint8_t)(message->size >> 14));
    buf_append_span(buf, buf_span(message));
    buf_clear(message);
}

/* Writes a request as async-profiler does: the dictionary comes first and has no table of links,
 * only the lists of stacks are packed, and threads are attributes. */
static void make_as_async_profiler(struct buf *request, bool is_old, bool has_threads)
{
    static const char *const texts[] = {"", "cpu", "ns", "Main.main", "Main.run", "thread.name"};
    buf_auto dictionary, message, inner, profile, scope, resource;
    struct buf *const all[] = {&dictionary, &message, &inner, &profile, &scope, &resource};
    for (size_t i = 0; i < COUNT(all); i++)
        buf_init(all[i], REQUEST_MAX);
    put_wide(&dictionary, 7, &message);
    PACKED(&message, 1, 2, 1);
    put_wide(&dictionary, 7, &message);
    PACKED(&message, 1, 1);
    put_wide(&dictionary, 7, &message);
    put_wide(&dictionary, 1, &message);
    for (int64_t i = 0; i < 3; i++)
        WIRE(&dictionary, 3, 1, i ? i + 2 : 0);
    for (int64_t i = 0; i < 3; i++) {
        protobuf_number(&message, 1, 0);
        WIRE(&message, 3, 1, i, 2, 10 * i);
        put_wide(&dictionary, 2, &message);
    }
    for (size_t i = 0; has_threads && i < 2; i++) {
        protobuf_number(&message, 1, i ? 5 : 0);
        protobuf_text(&inner, 1, i ? "worker" : "");
        put_wide(&message, 2, &inner);
        put_wide(&dictionary, 6, &message);
    }
    for (size_t i = 0; i < COUNT(texts); i++)
        protobuf_text(&dictionary, 5, texts[i]);
    put_wide(request, 2, &dictionary);
    put_fixed64(&profile, 3, 50);
    protobuf_number(&profile, 4, 1000);
    WIRE(&profile, 1, 1, 1, 2, 2);
    for (int64_t i = 1; i <= 2; i++) {
        protobuf_number(&message, 1, i);
        if (has_threads && !is_old)
            protobuf_number(&message, 2, 1);
        protobuf_number(&message, is_old ? 2 : 4, 10000000 * i);
        if (has_threads && is_old)
            protobuf_number(&message, 3, 1);
        put_wide(&profile, 2, &message);
    }
    put_wide(&scope, 2, &profile);
    put_wide(&resource, 2, &scope);
    put_wide(request, 1, &resource);
}

static void requests_of_async_profiler_are_read(void **state)
{
    (void)state;
    for (int is_old = 0; is_old < 2; is_old++) {
        for (int has_threads = 0; has_threads < 2; has_threads++) {
            struct otlp_result result;
            buf_auto request;
            buf_init(&request, REQUEST_MAX);
            make_as_async_profiler(&request, is_old, has_threads);
            batch_auto batch = decode(&request, NULL, &result);
            assert_string_equal(result.message, "");
            assert_int_equal(batch->sample_count, 2);
            assert_int_equal(batch->samples[0].value, 10000000);
            assert_int_equal(batch->samples[1].value, 20000000);
            assert_int_equal(batch->sample_label_count, has_threads);
        }
    }
}

static void tables_keep_files_lines_addresses_and_the_best_build_id(void **state)
{
    (void)state;
    buf_auto request;
    struct otlp_result result;
    buf_init(&request, REQUEST_MAX);
    make_request(&request, OTLP_1_11, plain_samples, COUNT(plain_samples));
    batch_auto batch = decode(&request, NULL, &result);
    const struct profile *tables = batch->tables;
    const struct profile_location *leaf =
        &tables->locations[batch->stack[batch->stack_start[batch->samples[0].stack]]];
    assert_int_equal(leaf->address, 0x1020);
    assert_int_equal(tables->lines[leaf->first_line].line, 12);
    assert_int_equal(tables->lines[leaf->first_line].column, 7);
    const struct profile_mapping *mapping = &tables->mappings[leaf->mapping];
    assert_int_equal(mapping->start, 0x1000);
    assert_int_equal(mapping->limit, 0x2000);
    assert_int_equal(mapping->offset, 0x40);
    assert_true(span_equal_text(profile_string(tables, mapping->filename), "/bin/app"));
    assert_true(span_equal_text(profile_string(tables, mapping->build_id), "abcdef"));
    const struct profile_function *function = &tables->functions[1];
    assert_true(span_equal_text(profile_string(tables, function->filename), "main.c"));
    assert_int_equal(function->start_line, 10);
}

/* Samples with the fields 1 and 2 only: read as version 1.10 they would have neither values nor
 * times. */
static void field_2_alone_is_a_value_of_1_9(void **state)
{
    (void)state;
    static const struct sample samples[] = {{.stack = 1, .values = {7}},
                                            {.stack = 2, .values = {1}}};
    buf_auto request;
    buf_init(&request, REQUEST_MAX);
    make_request(&request, OTLP_1_9, samples, COUNT(samples));
    assert_decodes(&request, "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta"
                             "{service_name=checkout} 50 1000 10\n  main;leaf 70\n  main 10\n");
}

static void attributes_and_times_alone_belong_to_1_10(void **state)
{
    (void)state;
    static const struct sample samples[] = {{.stack = 1, .attributes = {3}, .times = {5, 6}}};
    buf_auto request;
    buf_init(&request, REQUEST_MAX);
    make_request(&request, OTLP_1_10, samples, COUNT(samples));
    assert_decodes(&request,
                   "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta"
                   "{service_name=checkout} 50 1000 10\n  main;leaf thread.name=worker 20\n");
}

static void numbers_may_come_one_by_one(void **state)
{
    (void)state;
    buf_auto request, resource, scope, profile, sample, dictionary;
    buf_init(&request, REQUEST_MAX);
    buf_init(&resource, REQUEST_MAX);
    buf_init(&scope, REQUEST_MAX);
    buf_init(&profile, REQUEST_MAX);
    buf_init(&sample, REQUEST_MAX);
    buf_init(&dictionary, REQUEST_MAX);
    put_dictionary(&dictionary);
    WIRE(&dictionary, 7, 1, 2, 1, 1);
    WIRE(&profile, 1, 1, S_SPACE, 2, S_BYTES);
    protobuf_number(&sample, 1, 3);
    protobuf_number(&sample, 2, 3);
    protobuf_number(&sample, 2, 4);
    PACKED(&sample, 4, -300);
    PACKED(&sample, 4, 100, 300);
    put_fixed64(&sample, 5, 9);
    put_fixed64(&sample, 5, 8);
    put(&profile, 2, &sample);
    put(&scope, 2, &profile);
    put_request(&request, &resource, &scope, &dictionary);
    assert_decodes(&request, "memory:inuse_space:bytes::{service_name=unknown_service} 8 0 0\n"
                             "  main;leaf thread.name=worker cpu.logical_number=-3bytes 100\n");
}

/* ---- series ---- */

static void samples_of_several_services_are_several_series(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {.stack = 1, .attributes = {5, 3}, .values = {1}, .times = {7}},
        {.stack = 2, .attributes = {3}, .values = {2}, .times = {8, 9}},
        {.stack = 2, .attributes = {3, 5}, .values = {3}, .times = {1, 2}},
        {.stack = 1, .attributes = {6}, .values = {4}},
    };
    const struct span names[] = {SPAN_LITERAL("region")};
    const struct otlp_options options = {.series_attributes = names, .series_attribute_count = 1};
    struct otlp_result result;
    buf_auto request;
    buf_init(&request, REQUEST_MAX);
    make_request(&request, OTLP_1_11, samples, COUNT(samples));
    batch_auto batch = decode(&request, &options, &result);
    assert_batch(batch, "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{service_name=checkout} "
                        "50 1000 10\n  main thread.name=worker 20\n"
                        "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{service_name=of-sample} "
                        "50 1000 10\n  main;leaf thread.name=worker 10\n"
                        "  main thread.name=worker 30\n"
                        "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta"
                        "{region=north,service_name=checkout} 50 1000 10\n  main;leaf 40\n");
    static const int64_t times[] = {8, 9, 7, 1, 2};
    static const uint64_t starts[] = {0, 2, 3, 5, 5};
    assert_memory_equal(batch->timestamps, times, sizeof(times));
    assert_memory_equal(batch->timestamp_start, starts, sizeof(starts));
}

static void put_number_of(struct buf *resource, const char *key, uint32_t field, int64_t number)
{
    buf_auto value, message;
    buf_init(&value, REQUEST_MAX);
    buf_init(&message, REQUEST_MAX);
    if (field == 4)
        put_fixed64(&value, 4, (uint64_t)number);
    else
        protobuf_number(&value, field, number);
    protobuf_text(&message, 1, key);
    put(&message, 2, &value);
    put(resource, 1, &message);
}

/* A request with one sample and this resource and scope; empties both. */
static void make_with_attributes(struct buf *request, struct buf *resource, struct buf *scope)
{
    static const struct sample sample = {.stack = 1, .values = {1}};
    buf_auto dictionary, scope_profiles;
    buf_init(&dictionary, REQUEST_MAX);
    buf_init(&scope_profiles, REQUEST_MAX);
    put_dictionary(&dictionary);
    put(&scope_profiles, 1, scope);
    put_profile(&scope_profiles, OTLP_1_11, &sample, 1);
    put_request(request, resource, &scope_profiles, &dictionary);
}

static void attributes_of_every_kind_become_labels(void **state)
{
    (void)state;
    buf_auto request, resource, scope;
    buf_init(&request, REQUEST_MAX);
    buf_init(&resource, REQUEST_MAX);
    buf_init(&scope, REQUEST_MAX);
    const double tenth = 0.1;
    int64_t bits;
    memcpy(&bits, &tenth, sizeof(bits));
    put_key_value(&resource, 1, "process.executable.name", "app");
    put_key_value(&resource, 1, "empty", "");
    put_number_of(&resource, "process.pid", 3, -42);
    put_number_of(&resource, "is.up", 2, 1);
    put_number_of(&resource, "load", 4, bits);
    put_references(&resource, S_REGION, S_CHECKOUT);
    put_key_value(&scope, 3, "process.pid", "of the scope");
    put_key_value(&scope, 3, "2nd", "x");
    make_with_attributes(&request, &resource, &scope);
    assert_decodes(&request,
                   "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{_2nd=x,is_up=true,load=0.1,"
                   "process_executable_name=app,process_pid=-42,region=checkout,"
                   "service_name=unknown_service:app} 50 1000 10\n  main;leaf 10\n");
}

static void the_first_of_two_attributes_with_the_same_name_counts(void **state)
{
    (void)state;
    buf_auto request, resource, scope;
    buf_init(&request, REQUEST_MAX);
    buf_init(&resource, REQUEST_MAX);
    buf_init(&scope, REQUEST_MAX);
    put_key_value(&resource, 1, "a.b", "dot");
    put_key_value(&resource, 1, "a-b", "dash");
    put_key_value(&resource, 1, "a_b", "exact");
    put_key_value(&resource, 1, "service-name", "other");
    put_key_value(&resource, 1, "service_name", "another");
    make_with_attributes(&request, &resource, &scope);
    struct otlp_result result;
    batch_auto batch = decode(&request, NULL, &result);
    assert_int_equal(result.rejected_profiles, 0);
    assert_string_equal(result.message, "label 'a.b' is left out: its name becomes that of 'a-b', "
                                        "which counts");
    assert_batch(batch, "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{a_b=dash,"
                        "service_name=unknown_service} 50 1000 10\n  main;leaf 10\n");
}

static void equal_attributes_are_no_conflict(void **state)
{
    (void)state;
    buf_auto request, resource, scope;
    buf_init(&request, REQUEST_MAX);
    buf_init(&resource, REQUEST_MAX);
    buf_init(&scope, REQUEST_MAX);
    put_key_value(&resource, 1, "a.b", "same");
    put_key_value(&resource, 1, "c", "resource");
    put_key_value(&scope, 3, "a_b", "same");
    put_key_value(&scope, 3, "c", "scope"); /* the label of the resource has precedence */
    make_with_attributes(&request, &resource, &scope);
    assert_decodes(&request, "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{a_b=same,"
                             "c=resource,service_name=unknown_service} 50 1000 10\n"
                             "  main;leaf 10\n");
}

/* The reason for which its profiles are dropped. */
static void assert_context_refused(const char *key, const char *value, const char *words)
{
    struct otlp_result result;
    buf_auto request, resource, scope;
    buf_init(&request, REQUEST_MAX);
    buf_init(&resource, REQUEST_MAX);
    buf_init(&scope, REQUEST_MAX);
    put_key_value(&resource, 1, "service.name", "shop");
    put_key_value(&resource, 1, "pod", "a");
    put_key_value(&resource, 1, key, value);
    make_with_attributes(&request, &resource, &scope);
    batch_auto batch = decode(&request, NULL, &result);
    assert_int_equal(result.rejected_profiles, 1);
    assert_int_equal(batch->profile_count, 0);
    assert_int_equal(batch->series_count, 0);
    if (!strstr(result.message, words))
        fail_msg("%s", result.message);
}

static void a_duplicate_attribute_is_refused(void **state)
{
    (void)state;
    assert_context_refused("pod", "a", "attribute 'pod' of its resource or scope is given twice");
    assert_context_refused("pod", "b", "attribute 'pod' of its resource or scope is given twice");
    assert_context_refused("service.name", "b", "attribute 'service.name' of its resource");
}

static void names_and_values_of_attributes_are_utf8(void **state)
{
    (void)state;
    static const char words[] = "the name or the value of an attribute of its resource or scope is "
                                "no UTF-8";
    assert_context_refused("\xff", "b", words);
    assert_context_refused("pod\xc3", "b", words);
    assert_context_refused("pod2", "\xc3", words);
    static const char *const keys[] = {"thread.name\xff", "service\xc3\x28name", "region\xff"};
    static const struct span chosen[] = {SPAN_LITERAL("region_")};
    for (size_t i = 0; i < COUNT(keys); i++) {
        const struct otlp_options options = {.series_attributes = chosen,
                                             .series_attribute_count = i == 2};
        const struct sample sample = {.stack = 1, .values = {1}, .attributes = {7}};
        struct otlp_result result;
        buf_auto request, resource, scope, dictionary;
        buf_init(&request, REQUEST_MAX);
        buf_init(&resource, REQUEST_MAX);
        buf_init(&scope, REQUEST_MAX);
        buf_init(&dictionary, REQUEST_MAX);
        put_dictionary(&dictionary);
        protobuf_text(&dictionary, 5, keys[i]); /* the last string */
        put_attribute(&dictionary, S_STRINGS, "x", 0);
        put_profile(&scope, OTLP_1_11, &sample, 1);
        put_request(&request, &resource, &scope, &dictionary);
        batch_auto batch = decode(&request, &options, &result);
        assert_int_equal(result.rejected_profiles, 1);
        assert_int_equal(batch->profile_count, 0);
        if (!strstr(result.message, "whose name is no UTF-8"))
            fail_msg("%s", result.message);
    }
}

/* both forms: the plain text has precedence */
static void a_plain_text_is_preferred_to_a_reference(void **state)
{
    (void)state;
    buf_auto request, resource, scope, value, message;
    buf_init(&request, REQUEST_MAX);
    buf_init(&resource, REQUEST_MAX);
    buf_init(&scope, REQUEST_MAX);
    buf_init(&value, REQUEST_MAX);
    buf_init(&message, REQUEST_MAX);
    protobuf_text(&value, 1, "plain");
    protobuf_number(&value, 8, S_CHECKOUT);
    protobuf_text(&message, 1, "key");
    protobuf_number(&message, 3, S_REGION);
    put(&message, 2, &value);
    put(&resource, 1, &message);
    make_with_attributes(&request, &resource, &scope);
    assert_decodes(&request, "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{key=plain,"
                             "service_name=unknown_service} 50 1000 10\n  main;leaf 10\n");
}

/* ---- refusals ---- */

/* A request with two profiles, of which the first has an invalid sample and the second is valid. */
static void assert_dropped(const struct sample *wrong, enum layout layout, const char *words)
{
    static const struct sample good = {.stack = 1, .values = {1}};
    struct otlp_result result;
    buf_auto request, resource, scope, dictionary;
    buf_init(&request, REQUEST_MAX);
    buf_init(&resource, REQUEST_MAX);
    buf_init(&scope, REQUEST_MAX);
    buf_init(&dictionary, REQUEST_MAX);
    put_dictionary(&dictionary);
    STACK(&dictionary, 1, 77);                  /* stack 3: no such location */
    put_location(&dictionary, 9, 0, 1);         /* location 3: no such mapping */
    STACK(&dictionary, 1, 3);                   /* stack 4 */
    protobuf_text(&dictionary, 7, "\x0a\x05");  /* stack 4: truncated */
    WIRE(&dictionary, 6, 1, 99);                /* attribute 7: no such key */
    protobuf_text(&dictionary, 4, "\x0a\x01x"); /* link 2: an id of one byte */
    put_profile(&scope, layout, (const struct sample[]){good, *wrong}, 2);
    put_profile(&scope, layout, &good, 1);
    put_request(&request, &resource, &scope, &dictionary);
    batch_auto batch = decode(&request, NULL, &result);
    assert_int_equal(result.profile_count, 1);
    assert_int_equal(result.rejected_profiles, 1);
    if (!strstr(result.message, words))
        print_error("message: %s\n", result.message);
    assert_non_null(strstr(result.message, words));
    assert_non_null(strstr(result.message, "profile 0 (resource 0): sample 1"));
    assert_batch(batch, "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta"
                        "{service_name=unknown_service} 50 1000 10\n  main;leaf 10\n");
}

static void an_invalid_profile_is_dropped_and_reported_and_the_others_stay(void **state)
{
    (void)state;
    static const struct {
        struct sample sample;
        const char *words;
    } wrong[] = {
        {{.stack = 99, .values = {1}}, "stack 99"},
        {{.stack = -1, .values = {1}}, "stack 18446744073709551615"},
        {{.stack = 3, .values = {1}}, "stack 3"},
        {{.stack = 4, .values = {1}}, "stack 4"},
        {{.stack = 5, .values = {1}}, "stack 5"},
        {{.stack = 1, .values = {1}, .attributes = {50}}, "attribute"},
        {{.stack = 1, .values = {1}, .attributes = {7}}, "attribute"},
        {{.stack = 1, .values = {1}, .link = 5}, "link"},
        {{.stack = 1, .values = {1}, .link = 2}, "link"},
        {{.stack = 1}, "neither values nor timestamps"},
        {{.stack = 1, .values = {INT64_MAX, 1}}, "passes 2^63"},
        {{.stack = 1, .values = {INT64_MAX / 2}}, "times the period"},
        {{.stack = 1, .values = {INT64_MAX / 10}}, "add up to more than 2^63"},
        {{.stack = 1, .values = {1}, .times = {5, -6}}, "2262"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_dropped(&wrong[i].sample, OTLP_1_11, wrong[i].words);
        if (wrong[i].sample.values[0])
            assert_dropped(&wrong[i].sample, OTLP_1_8, wrong[i].words);
    }
}

static void only_a_truncated_profile_is_dropped(void **state)
{
    (void)state;
    static const struct sample good = {.stack = 1, .values = {1}};
    struct otlp_result result;
    buf_auto request, resource, scope, dictionary;
    buf_init(&request, REQUEST_MAX);
    buf_init(&resource, REQUEST_MAX);
    buf_init(&scope, REQUEST_MAX);
    buf_init(&dictionary, REQUEST_MAX);
    put_dictionary(&dictionary);
    put_profile(&scope, OTLP_1_11, &good, 1);
    protobuf_text(&scope, 2, "\x12\x7f");  /* a sample of 127 bytes that is missing */
    protobuf_text(&scope, 2, "\x1a\x01x"); /* a time with a wrong wire type */
    WIRE(&scope, 2, 6, 1);                 /* no type */
    put_request(&request, &resource, &scope, &dictionary);
    batch_auto batch = decode(&request, NULL, &result);
    assert_int_equal(batch->profile_count, 1);
    assert_int_equal(result.rejected_profiles, 3);
    assert_string_equal(result.message,
                        "profile 1 (resource 0): is cut short or not encoded as expected; "
                        "profile 2 (resource 0): is cut short or not encoded as expected; "
                        "profile 3 (resource 0): it has no sample type");
}

static void long_lists_of_rejections_are_cut(void **state)
{
    (void)state;
    struct otlp_result result;
    buf_auto request, resource, scope, dictionary;
    buf_init(&request, REQUEST_MAX);
    buf_init(&resource, REQUEST_MAX);
    buf_init(&scope, REQUEST_MAX);
    buf_init(&dictionary, REQUEST_MAX);
    put_dictionary(&dictionary);
    for (int i = 0; i < 1000; i++)
        WIRE(&scope, 2, 6, 1);
    put_request(&request, &resource, &scope, &dictionary);
    batch_auto batch = decode(&request, NULL, &result);
    assert_int_equal(batch->profile_count, 0);
    assert_int_equal(result.rejected_profiles, 1000);
    assert_non_null(strstr(result.message, " more are not named here"));
}

static void assert_refused(const struct buf *request, const struct profile_limits *limits,
                           enum err_code code, const char *words)
{
    struct batch *batch = NULL;
    struct otlp_result result;
    struct err err = {0};
    const struct otlp_options options = {.limits = limits};
    assert_int_equal(otlp_decode(buf_span(request), OTLP_PROTOBUF, &options, &batch, &result, &err),
                     code);
    if (!strstr(err.message, words))
        print_error("message: %s\n", err.message);
    assert_non_null(strstr(err.message, words));
    assert_null(batch);
}

static void a_malformed_request_is_refused(void **state)
{
    (void)state;
    buf_auto request;
    buf_init(&request, REQUEST_MAX);
    make_request(&request, OTLP_1_11, plain_samples, COUNT(plain_samples));
    const size_t whole = request.size;
    request.size -= 3;
    assert_refused(&request, NULL, ERR_INVALID, "not an OTLP ExportProfilesServiceRequest");
    request.size = whole;
    protobuf_number(&request, 1, 1);
    assert_refused(&request, NULL, ERR_INVALID, "not an OTLP ExportProfilesServiceRequest");
    request.size = whole;
    protobuf_text(&request, 2, "");
    assert_refused(&request, NULL, ERR_INVALID, "several dictionaries");
    request.size = whole;
    protobuf_text(&request, 1, "\x12\x03xyz");
    assert_refused(&request, NULL, ERR_INVALID, "not an OTLP ExportProfilesServiceRequest");
}

/* Checks the value of the first series' label whose name ends with name. */
static void check_cut(struct buf *request, const char *name, const char *begin)
{
    struct otlp_result result;
    const struct batch_limits limits = {.value_bytes = 20};
    batch_auto batch = decode(request, &(struct otlp_options){.series_limits = &limits}, &result);
    bool is_there = false;
    for (uint32_t i = 0; i < batch->series_label_count; i++) {
        const struct batch_label *label = &batch->series_labels[i];
        const struct span value = profile_string(batch->tables, label->value);
        if (!span_equal_text(profile_string(batch->tables, label->name), name))
            continue;
        is_there = true;
        assert_int_equal(value.size, 20);
        assert_memory_equal(value.data, begin, strlen(begin));
        assert_int_equal(value.data[strlen(begin)], '#');
    }
    assert_true(is_there);
}

static void values_that_are_too_long_stay_distinct(void **state)
{
    (void)state;
    buf_auto one, other;
    buf_init(&one, REQUEST_MAX);
    buf_init(&other, REQUEST_MAX);
    make_request_of(&one, OTLP_1_11, "checkout-of-the-shop-a", plain_samples, COUNT(plain_samples));
    make_request_of(&other, OTLP_1_11, "checkout-of-the-shop-b", plain_samples,
                    COUNT(plain_samples));
    check_cut(&one, "service_name", "che");
    check_cut(&other, "service_name", "che");
    struct otlp_result result;
    const struct batch_limits limits = {.value_bytes = 20};
    const struct otlp_options options = {.series_limits = &limits};
    batch_auto a = decode(&one, &options, &result);
    batch_auto b = decode(&other, &options, &result);
    assert_false(span_equal(profile_string(a->tables, a->series_labels[0].value),
                            profile_string(b->tables, b->series_labels[0].value)));
}

static void limits_are_checked_while_decoding(void **state)
{
    (void)state;
    buf_auto request;
    buf_init(&request, REQUEST_MAX);
    make_request(&request, OTLP_1_11, plain_samples, COUNT(plain_samples));
    assert_refused(&request, &(struct profile_limits){.raw_bytes = 100}, ERR_TOO_LARGE, "bytes");
    assert_refused(&request, &(struct profile_limits){.sample_count = 3}, ERR_TOO_LARGE,
                   "4 samples, the limit is 3");
    assert_refused(&request, &(struct profile_limits){.stack_entries = 2}, ERR_TOO_LARGE,
                   "stack entries");
    assert_refused(&request, &(struct profile_limits){.memory_bytes = 500}, ERR_TOO_LARGE,
                   "bytes when decoded");
    struct otlp_result result;
    const struct profile_limits depth = {.stack_depth = 1};
    batch_auto shallow = decode(&request, &(struct otlp_options){.limits = &depth}, &result);
    assert_int_equal(result.rejected_profiles, 1);
    assert_non_null(strstr(result.message, "deeper than 1"));
    const struct batch_limits labels = {.series_labels = 1, .value_bytes = 3};
    batch_auto cut = decode(&request, &(struct otlp_options){.series_limits = &labels}, &result);
    assert_int_equal(result.rejected_profiles, 0);
    const uint32_t value = cut->series_labels[0].value;
    assert_true(span_equal_text(profile_string(cut->tables, value), "che"));
    assert_int_equal(shallow->profile_count, 0);
}

static void an_empty_request_is_an_empty_batch(void **state)
{
    (void)state;
    buf_auto request;
    buf_init(&request, REQUEST_MAX);
    assert_decodes(&request, "");
}

/* ---- JSON ---- */

static const char json_request[] =
    "{\"resourceProfiles\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":"
    "{\"stringValue\":\"checkout\"}},{\"key\":\"list\",\"value\":{\"arrayValue\":{\"values\":[]}}}]"
    "},"
    "\"scopeProfiles\":[{\"unknown\":[1],\"profiles\":[{\"sampleType\":{\"typeStrindex\":1,"
    "\"unitStrindex\":2},\"%s\":["
    "{\"stackIndex\":1,\"attributeIndices\":[3,4],\"linkIndex\":1,\"values\":[\"2\",3],"
    "\"timestampsUnixNano\":[\"70\",60]},{\"stackIndex\":2,\"values\":[\"5\"]},"
    "{\"stack_index\":2,\"attributeIndices\":[\"3\",4.0],\"timestampsUnixNano\":[80,90,91]},"
    "{\"values\":[4]}],\"timeUnixNano\":\"50\",\"durationNano\":1000,"
    "\"periodType\":{\"typeStrindex\":3,\"unitStrindex\":4},\"period\":\"10\"}]}]}],"
    "\"dictionary\":{\"stringTable\":[\"\",\"samples\",\"count\",\"cpu\",\"nanoseconds\",\"main\","
    "\"leaf\",\"thread.name\",\"cpu.logical_number\",\"bytes\"],\"mappingTable\":[{}],"
    "\"functionTable\":[{},{\"nameStrindex\":5},{\"nameStrindex\":6}],"
    "\"locationTable\":[{},{\"%s\":[{\"functionIndex\":1}]},"
    "{\"%s\":[{\"functionIndex\":2,\"line\":\"3\"}],\"address\":\"18446744073709551615\"}],"
    "\"linkTable\":[{},{\"traceId\":\"0102030405060708090A0b0c0d0e0f10\",\"spanId\":"
    "\"1112131415161718\"}],\"attributeTable\":[{},{},{},{\"keyStrindex\":7,\"value\":"
    "{\"stringValue\":\"worker\"}},{\"keyStrindex\":8,\"value\":{\"intValue\":\"-3\"},"
    "\"unitStrindex\":9}],\"stackTable\":[{},{\"locationIndices\":[2,1]},"
    "{\"locationIndices\":[1]}]}}";

static void json_and_protobuf_decode_to_the_same_profiles(void **state)
{
    (void)state;
    const struct otlp_options kept = {
        .is_raw_kept = true}; /* the raw profile is kept, and no string points into it */
    static const char *const names[][2] = {{"samples", "lines"}, {"sample", "line"}};
    for (size_t i = 0; i < COUNT(names); i++) {
        struct batch *batch = NULL;
        struct otlp_result result;
        struct err err;
        buf_auto text;
        buf_init(&text, REQUEST_MAX);
        buf_printf(&text, json_request, names[i][0], names[i][1], names[i][1]);
        if (otlp_decode(buf_span(&text), OTLP_JSON, i ? &kept : NULL, &batch, &result, &err))
            fail_msg("%s", err.message);
        assert_batch(batch, plain_text);
        assert_int_equal(batch->tables->locations[2].address, UINT64_MAX);
        assert_int_equal(batch->timestamps[0], 60);
        batch_destroy(batch);
    }
}

static void invalid_json_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *words;
    } wrong[] = {
        {"[]", "not an object"},
        {"{\"dictionary\":", "OTLP in JSON: line 1"},
        {"{\"dictionary\":[]}", "\"dictionary\" is not an object"},
        {"{\"resourceProfiles\":{}}", "\"resourceProfiles\" is not a list"},
        {"{\"dictionary\":{\"stringTable\":[1]}}", "\"stringTable\" is not text"},
        {"{\"dictionary\":{\"stackTable\":[{\"locationIndices\":[\"x\"]}]}}", "whole number"},
        {"{\"dictionary\":{\"stackTable\":[{\"locationIndices\":[1.5]}]}}", "whole number"},
        {"{\"dictionary\":{\"linkTable\":[{\"traceId\":\"0g\"}]}}", "hexadecimal"},
        {"{\"dictionary\":{\"attributeTable\":[{\"value\":{\"boolValue\":1}}]}}", "true or false"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct batch *batch = NULL;
        struct otlp_result result;
        struct err err = {0};
        assert_int_equal(
            otlp_decode(span_text(wrong[i].text), OTLP_JSON, NULL, &batch, &result, &err),
            ERR_INVALID);
        if (!strstr(err.message, wrong[i].words))
            print_error("message: %s\n", err.message);
        assert_non_null(strstr(err.message, wrong[i].words));
    }
}

/* ---- responses ---- */

static void responses_name_dropped_profiles(void **state)
{
    (void)state;
    struct otlp_result result = {0};
    buf_auto body;
    buf_init(&body, REQUEST_MAX);
    otlp_write_response(OTLP_PROTOBUF, &result, &body);
    assert_int_equal(body.size, 0);
    otlp_write_response(OTLP_JSON, &result, &body);
    assert_true(span_equal_text(buf_span(&body), "{}"));
    buf_clear(&body);
    result.rejected_profiles = 300;
    memcpy(result.message, "why", 4);
    otlp_write_response(OTLP_PROTOBUF, &result, &body);
    assert_true(span_equal_text(buf_span(&body), "\x0a\x08\x08\xac\x02\x12\x03why"));
    buf_clear(&body);
    otlp_write_response(OTLP_JSON, &result, &body);
    assert_true(span_equal_text(buf_span(&body), "{\"partialSuccess\":{\"rejectedProfiles\":"
                                                 "\"300\",\"errorMessage\":\"why\"}}"));
}

static void statuses_have_a_code_and_a_message(void **state)
{
    (void)state;
    buf_auto body;
    buf_init(&body, REQUEST_MAX);
    otlp_write_status(OTLP_PROTOBUF, ERR_INVALID, "no", &body);
    assert_true(span_equal_text(buf_span(&body), "\x08\x03\x12\x02no"));
    buf_clear(&body);
    otlp_write_status(OTLP_JSON, ERR_BUSY, "\"later\"", &body);
    assert_true(span_equal_text(buf_span(&body), "{\"code\":14,\"message\":\"\\\"later\\\"\"}"));
}

static void responses_can_be_decoded(void **state)
{
    (void)state;
    struct otlp_result result = {.rejected_profiles = 300, .message = "why"};
    char message[OTLP_MESSAGE_BYTES];
    uint64_t rejected;
    buf_auto body;
    buf_init(&body, REQUEST_MAX);
    assert_true(otlp_read_response(buf_span(&body), &rejected, message));
    assert_int_equal(rejected, 0);
    assert_string_equal(message, "");
    otlp_write_response(OTLP_PROTOBUF, &result, &body);
    assert_true(otlp_read_response(buf_span(&body), &rejected, message));
    assert_int_equal(rejected, 300);
    assert_string_equal(message, "why");
    assert_false(otlp_read_response(span_of(body.data, body.size - 1), &rejected, message));
    buf_clear(&body);
    otlp_write_status(OTLP_PROTOBUF, ERR_INVALID, "no", &body);
    assert_true(otlp_read_status(buf_span(&body), message));
    assert_string_equal(message, "no");
    assert_false(otlp_read_status(span_text("<html>"), message));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_layouts_decode_to_the_same_profiles),
        cmocka_unit_test(lists_may_be_packed_or_not_in_all_layouts),
        cmocka_unit_test(requests_of_async_profiler_are_read),
        cmocka_unit_test(tables_keep_files_lines_addresses_and_the_best_build_id),
        cmocka_unit_test(field_2_alone_is_a_value_of_1_9),
        cmocka_unit_test(attributes_and_times_alone_belong_to_1_10),
        cmocka_unit_test(numbers_may_come_one_by_one),
        cmocka_unit_test(samples_of_several_services_are_several_series),
        cmocka_unit_test(attributes_of_every_kind_become_labels),
        cmocka_unit_test(the_first_of_two_attributes_with_the_same_name_counts),
        cmocka_unit_test(equal_attributes_are_no_conflict),
        cmocka_unit_test(a_duplicate_attribute_is_refused),
        cmocka_unit_test(names_and_values_of_attributes_are_utf8),
        cmocka_unit_test(a_plain_text_is_preferred_to_a_reference),
        cmocka_unit_test(an_invalid_profile_is_dropped_and_reported_and_the_others_stay),
        cmocka_unit_test(only_a_truncated_profile_is_dropped),
        cmocka_unit_test(long_lists_of_rejections_are_cut),
        cmocka_unit_test(a_malformed_request_is_refused),
        cmocka_unit_test(values_that_are_too_long_stay_distinct),
        cmocka_unit_test(limits_are_checked_while_decoding),
        cmocka_unit_test(an_empty_request_is_an_empty_batch),
        cmocka_unit_test(json_and_protobuf_decode_to_the_same_profiles),
        cmocka_unit_test(invalid_json_is_refused),
        cmocka_unit_test(responses_name_dropped_profiles),
        cmocka_unit_test(statuses_have_a_code_and_a_message),
        cmocka_unit_test(responses_can_be_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

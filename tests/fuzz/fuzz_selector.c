/* Selectors of queries (store/block/selector.h): an accepted one is matched with the series of a
 * small dictionary and with its types. */
#include "tests/fuzz/fuzz.h"

#include "lib/base/err.h"
#include "store/block/dictionary.h"
#include "store/block/selector.h"

#include "lib/base/arena.h"

enum { STRINGS = 12, LABELS = 4 };

static const struct span strings[STRINGS] = {
    SPAN_LITERAL(""),       SPAN_LITERAL("process_cpu"),  SPAN_LITERAL("cpu"),
    SPAN_LITERAL("memory"), SPAN_LITERAL("nanoseconds"),  SPAN_LITERAL("alloc_space"),
    SPAN_LITERAL("bytes"),  SPAN_LITERAL("service_name"), SPAN_LITERAL("pod"),
    SPAN_LITERAL("shop"),   SPAN_LITERAL("\xff\"\\x\n"),  SPAN_LITERAL("aaaaaaaaaaaaaaaaaaaaaaaab"),
};
static const struct batch_label labels[LABELS] = {{8, 9}, {7, 10}, {8, 11}, {7, 9}};
static const struct batch_series series[] = {
    {.type = {1, {2, 4}, {2, 4}, true}, .first_label = 0, .label_count = 2},
    {.type = {3, {5, 6}, {0, 0}, false}, .first_label = 2, .label_count = 2},
    {.type = {3, {0, 0}, {0, 0}, false}},
};
enum { SERIES = sizeof(series) / sizeof(series[0]) };

static void match(struct selector *selector)
{
    struct profile tables = {.strings = (struct span *)(uintptr_t)strings, .string_count = STRINGS};
    const struct dictionary dictionary = {.tables = &tables,
                                          .series = series,
                                          .series_labels = labels,
                                          .series_count = SERIES,
                                          .series_label_count = LABELS};
    for (uint32_t i = 0; i < SERIES; i++) {
        const struct batch_type *type = &series[i].type;
        const struct span parts[SELECTOR_TYPE_PARTS] = {
            strings[type->name], strings[type->sample_type.type], strings[type->sample_type.unit],
            strings[type->period_type.type], strings[type->period_type.unit]};
        bool matches;
        struct err err;
        enum err_code code = selector_matches(selector, &dictionary, i, &matches, &err);
        fuzz_check(!code || fuzz_is_refusal(code, &err));
        /* A selector that matches a series matches its type. */
        if (code || !matches)
            continue;
        code = selector_matches_type(selector, parts, type->kind, &matches, &err);
        fuzz_check(code ? fuzz_is_refusal(code, &err) : matches);
    }
}

/* Its text is parsed to the same selector. */
static void check_canonical(struct arena *arena, const struct selector *selector)
{
    struct selector *again;
    struct err err;
    buf_auto first, second;
    buf_init(&first, SELECTOR_CANONICAL_MAX_BYTES);
    buf_init(&second, SELECTOR_CANONICAL_MAX_BYTES);
    selector_append_canonical(selector, &first);
    fuzz_check(!buf_failed(&first));
    if (buf_span(&first).size > SELECTOR_MAX_BYTES)
        return;
    fuzz_check(selector_parse(arena, buf_span(&first), &again, &err) == ERR_NONE);
    selector_append_canonical(again, &second);
    fuzz_check(span_equal(buf_span(&first), buf_span(&second)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena_auto arena = arena_create();
    struct selector *selector;
    struct err err;
    enum err_code code = selector_parse(arena, span_of(data, size), &selector, &err);
    if (code)
        fuzz_check(fuzz_is_refusal(code, &err));
    else {
        check_canonical(arena, selector);
        match(selector);
    }
    return 0;
}

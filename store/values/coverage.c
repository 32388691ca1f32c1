#include "store/values/coverage.h"

#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <stdlib.h>

void coverage_fini(struct coverage *coverage)
{
    mem_free(coverage->spans);
    *coverage = (struct coverage){0};
}

void coverage_clear(struct coverage *coverage)
{
    coverage->count = 0;
    coverage->is_unordered = false;
}

static void append_span(struct coverage *coverage, int64_t begin_ns, int64_t end_ns)
{
    vec_reserve(coverage->spans, coverage->capacity, coverage->count + 1);
    coverage->spans[coverage->count++] =
        (struct coverage_span){.begin_ns = begin_ns, .end_ns = end_ns};
}

void coverage_add(struct coverage *coverage, int64_t begin_ns, int64_t end_ns)
{
    if (begin_ns >= end_ns)
        return;
    if (coverage->count) {
        struct coverage_span *last = &coverage->spans[coverage->count - 1];
        if (begin_ns >= last->begin_ns && begin_ns <= last->end_ns) {
            last->end_ns = end_ns > last->end_ns ? end_ns : last->end_ns;
            return;
        }
        coverage->is_unordered |= begin_ns < last->begin_ns;
    }
    append_span(coverage, begin_ns, end_ns);
}

static int compare_begins(const void *a, const void *b)
{
    const int64_t x = ((const struct coverage_span *)a)->begin_ns;
    const int64_t y = ((const struct coverage_span *)b)->begin_ns;
    return (x > y) - (x < y);
}

void coverage_close(struct coverage *coverage, int64_t slack_ns)
{
    struct coverage_span *spans = coverage->spans;
    uint32_t kept = 0;
    if (coverage->is_unordered)
        qsort(spans, coverage->count, sizeof(*spans), compare_begins);
    coverage->is_unordered = false;
    for (uint32_t i = 1; i < coverage->count; i++) {
        /* Begins ascend, so the difference fits into 64 unsigned bits. */
        const bool is_joined =
            spans[i].begin_ns <= spans[kept].end_ns ||
            (uint64_t)spans[i].begin_ns - (uint64_t)spans[kept].end_ns <= (uint64_t)slack_ns;
        if (!is_joined)
            spans[++kept] = spans[i];
        else if (spans[i].end_ns > spans[kept].end_ns)
            spans[kept].end_ns = spans[i].end_ns;
    }
    coverage->count = coverage->count ? kept + 1 : 0;
}

void coverage_unite(struct coverage *coverage, const struct coverage *other)
{
    struct coverage united = {0};
    uint32_t i = 0, j = 0;
    while (i < coverage->count || j < other->count) {
        const bool takes_own =
            j == other->count ||
            (i < coverage->count && coverage->spans[i].begin_ns <= other->spans[j].begin_ns);
        const struct coverage_span *next = takes_own ? &coverage->spans[i++] : &other->spans[j++];
        coverage_add(&united, next->begin_ns, next->end_ns);
    }
    coverage_fini(coverage);
    *coverage = united;
}

uint64_t coverage_within(const struct coverage *coverage, uint32_t *cursor, int64_t begin_ns,
                         int64_t end_ns)
{
    uint64_t covered_ns = 0;
    while (*cursor < coverage->count && coverage->spans[*cursor].end_ns <= begin_ns)
        ++*cursor;
    for (uint32_t i = *cursor; i < coverage->count && coverage->spans[i].begin_ns < end_ns; i++) {
        const struct coverage_span *span = &coverage->spans[i];
        const int64_t from_ns = span->begin_ns > begin_ns ? span->begin_ns : begin_ns;
        const int64_t to_ns = span->end_ns < end_ns ? span->end_ns : end_ns;
        covered_ns += (uint64_t)to_ns - (uint64_t)from_ns;
    }
    return covered_ns;
}

size_t coverage_memory(const struct coverage *coverage)
{
    return coverage->capacity * sizeof(*coverage->spans);
}

#include "store/values/partial_coverage.h"

#include "lib/base/mem.h"
#include "store/values/cadence.h"

/* Fewer spans show no regular distance: their gaps count only if the series is covered for less
 * than half of the time. Otherwise a host that was down for a while would count as profiled in
 * turn. */
enum { SPANS_MIN = 4 };

void partial_coverage_fini(struct partial_coverage *partial)
{
    coverage_fini(&partial->covered);
    coverage_fini(&partial->existing);
    *partial = (struct partial_coverage){0};
}

static double duration_of(const struct coverage *coverage)
{
    double sum_ns = 0;
    for (uint32_t i = 0; i < coverage->count; i++)
        sum_ns += (double)coverage->spans[i].end_ns - (double)coverage->spans[i].begin_ns;
    return sum_ns;
}

/* Sets *filled to the spans, each with the gap until the next one; returns their duration. */
static double fill_gaps(const struct coverage *covered, struct coverage *filled)
{
    int64_t *begins_ns = mem_new(int64_t, covered->count);
    for (uint32_t i = 0; i < covered->count; i++)
        begins_ns[i] = covered->spans[i].begin_ns;
    for (uint32_t i = 0; i < covered->count; i++) {
        const struct coverage_span *span = &covered->spans[i];
        const bool is_last = i + 1 == covered->count;
        const int64_t end_ns = is_last ? span->end_ns : cadence_end(begins_ns, covered->count, i);
        coverage_add(filled, span->begin_ns, end_ns > span->end_ns ? end_ns : span->end_ns);
    }
    mem_free(begins_ns);
    return duration_of(filled);
}

void partial_coverage_add(struct partial_coverage *partial, const struct coverage *covered,
                          double sum, int64_t shortest_ns)
{
    struct coverage filled = {0};
    const double covered_ns = duration_of(covered);
    double existing_ns = fill_gaps(covered, &filled);
    const bool is_regular = covered->count >= SPANS_MIN || 2 * covered_ns < existing_ns;
    if (!is_regular)
        existing_ns = covered_ns;
    if (covered->count == 1 && covered_ns <= (double)shortest_ns) {
        partial->single_count++;
        if (covered_ns > partial->longest_single_ns)
            partial->longest_single_ns = covered_ns;
    }
    partial->series_count++;
    coverage_unite(&partial->covered, covered);
    coverage_unite(&partial->existing, is_regular ? &filled : covered);
    coverage_fini(&filled);
    partial->sum += sum;
    partial->estimate += covered_ns > 0 ? sum * (existing_ns / covered_ns) : sum;
}

double partial_coverage_lack(const struct partial_coverage *partial)
{
    const double covered_ns = duration_of(&partial->covered);
    const double existing_ns = duration_of(&partial->existing);
    if (partial->series_count < 2 || !(covered_ns > 0) || !(partial->estimate > 0))
        return 0;
    const double lack = 1 - partial->sum / covered_ns / (partial->estimate / existing_ns);
    return lack > 0 ? lack : 0;
}

uint32_t partial_coverage_singles(const struct partial_coverage *partial)
{
    const bool are_in_turn = duration_of(&partial->covered) > 1.5 * partial->longest_single_ns;
    return partial->single_count >= 2 && are_in_turn ? partial->single_count : 0;
}

size_t partial_coverage_memory(const struct partial_coverage *partial)
{
    return coverage_memory(&partial->covered) + coverage_memory(&partial->existing);
}

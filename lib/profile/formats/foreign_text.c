#include "lib/profile/formats/foreign_text.h"

#include <stdbool.h>

enum { HEAD_BYTES = 16 << 10, HEAD_LINES = 40 };

/* The first lines that are not empty, trimmed. */
struct head {
    struct span lines[HEAD_LINES];
    size_t count;
};

static void read_head(struct span text, struct head *head)
{
    struct span line;
    if (text.size > HEAD_BYTES)
        text.size = HEAD_BYTES;
    head->count = 0;
    while (head->count < HEAD_LINES && span_take_line(&text, &line)) {
        line = span_trim(line);
        if (line.size)
            head->lines[head->count++] = line;
    }
}

static bool contains(struct span line, const char *words)
{
    return memmem(line.data, line.size, words, strlen(words)) != NULL;
}

static bool has_line(const struct head *head, const char *start)
{
    for (size_t i = 0; i < head->count; i++) {
        if (span_starts_with(head->lines[i], start))
            return true;
    }
    return false;
}

static bool has_line_with(const struct head *head, const char *words)
{
    for (size_t i = 0; i < head->count; i++) {
        if (contains(head->lines[i], words))
            return true;
    }
    return false;
}

static bool starts_with(const struct head *head, const char *start)
{
    return head->count && span_starts_with(head->lines[0], start);
}

/* ---- the tools ---- */

static bool is_cachegrind(const struct head *head)
{
    return starts_with(head, "# callgrind format") ||
           (has_line(head, "events:") &&
            (has_line(head, "creator:") || has_line(head, "version:") || has_line(head, "fl=") ||
             has_line(head, "fn=")));
}

static bool is_xdebug(const struct head *head)
{
    return is_cachegrind(head) && has_line(head, "creator: xdebug");
}

static bool is_go(const struct head *head)
{
    return (starts_with(head, "heap profile:") && contains(head->lines[0], "@ heap/")) ||
           starts_with(head, "goroutine profile: total") ||
           starts_with(head, "threadcreate profile: total") ||
           starts_with(head, "--- contention:") || starts_with(head, "--- mutex:") ||
           (starts_with(head, "goroutine ") && span_ends_with(head->lines[0], "]:"));
}

static bool is_tcmalloc(const struct head *head)
{
    return starts_with(head, "heap profile:");
}

static bool is_jemalloc(const struct head *head)
{
    return starts_with(head, "heap_v2/");
}

static bool is_heaptrack(const struct head *head)
{
    if (!starts_with(head, "v ") || head->count < 2)
        return false;
    /* heaptrack writes "X …" first; heaptrack_interpret may put "x …" before it. */
    return span_starts_with(head->lines[1], "x ")
               ? has_line(head, "X ") || has_line(head, "I ")
               : span_starts_with(head->lines[1], "X ") && has_line(head, "I ");
}

static bool is_massif(const struct head *head)
{
    return starts_with(head, "desc:") && has_line(head, "time_unit:") &&
           has_line(head, "snapshot=");
}

static bool is_v8_log(const struct head *head)
{
    return starts_with(head, "v8-version,");
}

static bool is_rbspy(const struct head *head)
{
    return starts_with(head, "rbspy") && head->lines[0].size == sizeof("rbspy02") - 1;
}

static bool is_py_spy_dump(const struct head *head)
{
    return starts_with(head, "Process ") && has_line(head, "Python v") && has_line(head, "Thread ");
}

static bool is_blackfire(const struct head *head)
{
    return starts_with(head, "file-format: Blackfire");
}

/* "@[" or "@name[", one frame per line, and "]: 12" or ", comm]: 12". */
static bool is_bpftrace(const struct head *head)
{
    bool is_open = false;
    for (size_t i = 0; i < head->count; i++) {
        const struct span line = head->lines[i];
        if (span_starts_with(line, "@") && span_ends_with(line, "["))
            is_open = true;
        else if (is_open && contains(line, "]: "))
            return true;
    }
    return false;
}

static bool is_sample(const struct head *head)
{
    return starts_with(head, "Analysis of sampling ");
}

static bool is_instruments_copy(const struct head *head)
{
    return head->count && span_ends_with(head->lines[0], "\tSymbol Name");
}

static bool is_ghc(const struct head *head)
{
    return has_line_with(head, "Time and Allocation Profiling Report");
}

static bool is_jstack(const struct head *head)
{
    return has_line(head, "Full thread dump ");
}

/* "--- 3790000000 ns, 55.17%, 379 samples" */
static bool is_trace_head(struct span line)
{
    return span_starts_with(line, "--- ") && contains(line, "%, ") &&
           (span_ends_with(line, " samples") || span_ends_with(line, " sample"));
}

static bool is_async_profiler(const struct head *head)
{
    for (size_t i = 0; i < head->count; i++) {
        if (is_trace_head(head->lines[i]))
            return true;
    }
    return has_line(head, "--- Execution profile ---") ||
           has_line_with(head, "percent  samples  top");
}

static bool is_perf_report(const struct head *head)
{
    return has_line(head, "# Overhead") || has_line(head, "Overhead  ");
}

static bool is_pprof_report(const struct head *head)
{
    return has_line_with(head, "flat%   sum%");
}

static bool is_gprof(const struct head *head)
{
    return starts_with(head, "Flat profile:");
}

/* The first row that detects the text is used: a Xdebug file is also a callgrind file. */
static const struct {
    bool (*is)(const struct head *head);
    const char *advice;
} tools[] = {
    {is_xdebug, "this is a cachegrind profile of Xdebug, which has no stacks; profile PHP with "
                "Excimer (formatCollapsed) or phpspy, which give folded stacks"},
    {is_cachegrind, "this is a callgrind profile, which has no stacks; record the program with "
                    "`perfolio record` or `perf record -g`"},
    {is_go, "this is a profile of Go as text for people; request it without debug=1"},
    {is_tcmalloc,
     "this is a heap profile of tcmalloc as text; convert it with `pprof -proto PROGRAM "
     "FILE` (github.com/google/pprof)"},
    {is_jemalloc, "this is a heap profile of jemalloc; convert it to folded stacks with `jeprof "
                  "--collapsed PROGRAM FILE`"},
    {is_heaptrack, "this is a recording of heaptrack; convert it to folded stacks with "
                   "`heaptrack_print --print-flamegraph OUTPUT FILE`"},
    {is_async_profiler, "this is a report of async-profiler as text; record with `asprof -o "
                        "collapsed` for folded stacks"},
    {is_perf_report, "this is a report of `perf report`; upload the output of `perf script`"},
    {is_pprof_report, "this is a report of pprof as text; upload the profile it was made from"},
    {is_massif, "this is a heap profile of valgrind's massif, which exports no stacks; record with "
                "`heaptrack` and convert it with `heaptrack_print --print-flamegraph OUTPUT FILE`"},
    {is_v8_log, "this is a log of `node --prof`; record with `node --cpu-prof`"},
    {is_rbspy, "this is a raw recording of rbspy; convert it with `rbspy report --format collapsed "
               "--input FILE --output OUTPUT`"},
    {is_py_spy_dump, "this is one dump of py-spy; record with `py-spy record --format raw`"},
    {is_blackfire, "this is a profile of Blackfire, which has no stacks; profile PHP with Excimer "
                   "(formatCollapsed) or phpspy, which give folded stacks"},
    {is_bpftrace, "this is the output of bpftrace; convert it to folded stacks with "
                  "`stackcollapse-bpftrace.pl` (github.com/brendangregg/FlameGraph)"},
    {is_sample, "this is a report of `sample` of macOS; convert it to folded stacks with "
                "`stackcollapse-sample.awk` (github.com/brendangregg/FlameGraph)"},
    {is_instruments_copy,
     "this is a deep copy out of Instruments; convert it to folded stacks with "
     "`stackcollapse-instruments.pl` (github.com/brendangregg/FlameGraph)"},
    {is_ghc, "this is a profile of GHC; convert it to folded stacks with `ghc-prof-flamegraph`"},
    {is_jstack, "this is a thread dump of Java; convert dumps to folded stacks with "
                "`stackcollapse-jstack.pl` (github.com/brendangregg/FlameGraph)"},
    {is_gprof, "this is a report of gprof, which has no stacks; record the program with `perfolio "
               "record` or `perf record -g`"},
};

const char *foreign_text_find(struct span text)
{
    struct head head;
    read_head(text, &head);
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
        if (tools[i].is(&head))
            return tools[i].advice;
    }
    return NULL;
}

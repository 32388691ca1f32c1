#include "lib/profile/formats/foreign_file.h"

#include "lib/profile/formats/json_scan.h"
#include "lib/profile/protobuf.h"

#include <assert.h>

/* The root element of an XML document follows its declaration and comments. */
enum { XML_HEAD_BYTES = 4 << 10 };

static const char svg_advice[] =
    "this is an SVG picture; upload the folded stacks that it was made from";

/* ---- first bytes ---- */

/* Some magic words could also begin a folded stack; their rows include the control character or the
 * text that follows the word in the file. */
static const struct {
    const char *start;
    size_t size;
    const char *advice;
} marks[] = {
#define MARK(start, advice)                                                                        \
    {                                                                                              \
        start, sizeof(start) - 1, advice                                                           \
    }
    MARK("PERFILE2", "this is perf.data; upload the output of `perf script`"),
    MARK("2ELIFREP", "this is perf.data; upload the output of `perf script`"),
    MARK("\x7f"
         "ELF",
         "this is a program or library, not a profile"),
    MARK("\xcf\xfa\xed\xfe", "this is a program or library, not a profile"),
    MARK("PK\x03\x04", "this is a zip archive; upload the profile in it"),
    MARK("BZh91AY&SY", "this file is compressed with bzip2; unpack it first"),
    MARK("\xfd"
         "7zXZ\0",
         "this file is compressed with xz; unpack it first"),
    MARK("\x04\x22\x4d\x18", "this file is compressed with lz4; unpack it first"),
    MARK("FLR\0", "this is a JFR recording; convert it to pprof with async-profiler's `jfrconv -o "
                  "pprof FILE OUTPUT`"),
    MARK("JAVA PROFILE 1.0", "this is a heap dump of Java (HPROF), not a profile; record "
                             "allocations with `asprof -e alloc -o collapsed`"),
    MARK("Nettrace\x14", "this is a .nettrace file of dotnet-trace; convert it with `dotnet-trace "
                         "convert --format Speedscope FILE`"),
    MARK("\x14\0\0\0!FastSerialization.1", "this is a trace or heap dump of .NET; record with "
                                           "`dotnet-trace collect --format Speedscope`"),
    MARK("memray\0", "this is a recording of memray, which exports no stacks; record Python with "
                     "`py-spy record --format raw` or `perfolio record`"),
    MARK("\x04\x08{", "this is a dump of Ruby, perhaps of stackprof; convert it to folded stacks "
                      "with `stackprof --stackcollapse FILE`"),
    MARK("hdrbhetb", "this is an event log of GHC; convert it with `hs-speedscope FILE`"),
    MARK("\x17\x08\x44tracing", "this is a trace of trace-cmd; record the program with `perfolio "
                                "record` or `perf record -g`"),
    MARK("DTiJ", "this is a jitdump, which has names but no stacks; upload the output of `perf "
                 "script`"),
    MARK("JiTD", "this is a jitdump, which has names but no stacks; upload the output of `perf "
                 "script`"),
    MARK("SQLite format 3\0", "this is an SQLite database, not a profile"),
    MARK("\x89PNG", "this is a picture"),
    MARK("<!DOCTYPE svg", svg_advice),
    MARK("<!", "this is HTML, perhaps an error page that was saved"),
    MARK("<html", "this is HTML, perhaps an error page that was saved"),
    MARK("<svg", svg_advice),
#undef MARK
};

static bool starts_with(struct span bytes, const char *start, size_t size)
{
    return bytes.size >= size && memcmp(bytes.data, start, size) == 0;
}

static bool contains(struct span bytes, const char *words)
{
    return memmem(bytes.data, bytes.size, words, strlen(words)) != NULL;
}

static uint64_t read_word(const uint8_t *at, size_t size, bool is_big_endian)
{
    uint64_t word = 0;
    for (size_t i = 0; i < size; i++)
        word = word << 8 | at[is_big_endian ? i : size - 1 - i];
    return word;
}

/* The header consists of five words in the size and byte order of the profiled program: 0, the
 * number of further header words, the version 0, the period in microseconds, 0. */
static bool is_cpu_profile(struct span bytes, size_t word_bytes, bool is_big_endian)
{
    enum { HEADER_WORDS = 5, PERIOD = 3, PERIOD_MAX_US = 100000000 };
    static const uint64_t expected[HEADER_WORDS] = {0, 3, 0, 0, 0};
    if (bytes.size < HEADER_WORDS * word_bytes)
        return false;
    for (size_t i = 0; i < HEADER_WORDS; i++) {
        const uint64_t word = read_word(bytes.data + i * word_bytes, word_bytes, is_big_endian);
        if (i == PERIOD ? word == 0 || word > PERIOD_MAX_US : word != expected[i])
            return false;
    }
    return true;
}

static bool is_gperftools(struct span bytes)
{
    return is_cpu_profile(bytes, 8, false) || is_cpu_profile(bytes, 4, false) ||
           is_cpu_profile(bytes, 8, true) || is_cpu_profile(bytes, 4, true);
}

/* "go 1.22 trace" and three zero bytes. */
static bool is_go_trace(struct span bytes)
{
    static const char middle[] = " trace\0";
    enum { HEADER_BYTES = 16 };
    return bytes.size >= HEADER_BYTES && span_starts_with(bytes, "go 1.") &&
           memmem(bytes.data, HEADER_BYTES, middle, sizeof(middle) - 1);
}

/* Python's marshal: a dict whose first key is a tuple of three, with or without the bit that marks
 * an object for later reference. */
static bool is_python_profile(struct span bytes)
{
    return bytes.size > 3 && (bytes.data[0] == '{' || bytes.data[0] == 0xfb) &&
           (bytes.data[1] == ')' || bytes.data[1] == 0xa9) && bytes.data[2] == 3;
}

/* "MOJ" and the version. */
static bool is_austin(struct span bytes)
{
    return bytes.size > 4 && span_starts_with(bytes, "MOJ") && bytes.data[3] < '\t';
}

static const char *find_xml(struct span bytes)
{
    const struct span head =
        span_of(bytes.data, bytes.size < XML_HEAD_BYTES ? bytes.size : XML_HEAD_BYTES);
    if (!span_starts_with(bytes, "<?xml"))
        return NULL;
    if (contains(head, "<trace-query-result") || contains(head, "<trace-toc"))
        return "this is XML of Instruments; `xctrace export --input TRACE --xpath "
               "'/trace-toc/*/data/table[@schema=\"time-profile\"]'` exports the samples, which "
               "`inferno-collapse-xctrace` converts to folded stacks";
    return contains(head, "<svg") ? svg_advice : "this is XML";
}

const char *foreign_file_find(struct span bytes)
{
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        if (starts_with(bytes, marks[i].start, marks[i].size))
            return marks[i].advice;
    }
    if (is_gperftools(bytes))
        return "this is a CPU profile of gperftools; convert it with `pprof -proto PROGRAM FILE` "
               "(github.com/google/pprof)";
    if (is_go_trace(bytes))
        return "this is an execution trace of Go; `go tool trace -pprof=sched FILE` (or net, sync, "
               "syscall) makes a pprof profile of it";
    if (is_python_profile(bytes))
        return "this is a profile of Python's cProfile, which has no stacks; record with `py-spy "
               "record --format raw` or `perfolio record`";
    if (is_austin(bytes))
        return "this is a MOJO file of Austin; convert it with `mojo2austin FILE OUTPUT`";
    return find_xml(bytes);
}

/* ---- protobuf ---- */

/* Field 1 of pprof is a ValueType of two numbers. Field 1 of OTLP is a message that begins with a
 * message, and Perfetto's is a TracePacket. */
const char *foreign_file_find_protobuf(struct span bytes)
{
    struct protobuf_field field;
    if (bytes.size == 0 || !protobuf_read_field(bytes.data, bytes.data + bytes.size, &field) ||
        field.id != 1 || field.type != PROTOBUF_BYTES || field.bytes.size == 0)
        return NULL;
    switch (field.bytes.data[0]) {
    case 1 << 3 | PROTOBUF_BYTES: /* resource */
        return "this is a batch of OpenTelemetry (OTLP); send it to /v1development/profiles, with "
               "`perfolio push --format otlp FILE`";
    case 3 << 3 | PROTOBUF_VARINT:      /* trusted_uid */
    case 6 << 3 | PROTOBUF_BYTES:       /* clock_snapshot */
    case 8 << 3 | PROTOBUF_VARINT:      /* timestamp */
    case 10 << 3 | PROTOBUF_VARINT:     /* trusted_packet_sequence_id */
    case (uint8_t)(33 << 3) | 0x80 | 2: /* trace_config */
    case (uint8_t)(89 << 3) | 0x80 | 2: /* trace_uuid */
        return "this is a trace of Perfetto; `traceconv profile FILE` makes pprof profiles of its "
               "samples";
    default:
        return NULL;
    }
}

/* ---- JSON ---- */

enum { MEMBERS_MAX = 3 };

/* The first row whose members all occur is used. */
static const struct {
    const char *members[MEMBERS_MAX];
    const char *advice;
} kinds[] = {
    {{"resourceProfiles"},
     "this is a batch of OpenTelemetry (OTLP JSON); send it to /v1development/profiles, with "
     "`perfolio push --format otlp FILE`"},
    {{"meta", "threads"},
     "this is a profile of the Firefox Profiler, as Firefox, samply and Vernier write it, which "
     "has no export of stacks; record the program with `perfolio record` or `perf record -g`"},
    {{"snapshot", "nodes", "edges"},
     "this is a heap snapshot of Chrome or Node, not a profile; record allocations with "
     "@datadog/pprof"},
    {{"traceEvents"},
     "this is a Chrome trace; save the CPU profile alone, in Node with `node --cpu-prof`"},
    {{"head"},
     "this is a Chrome heap profile; in Node, @datadog/pprof records allocations as pprof"},
    {{"code", "functions", "ticks"},
     "this is a profile of `node --prof-process --preprocess`; record with `node --cpu-prof`"},
    {{"frames", "interval"},
     "this is a stackprof dump as JSON; record with `raw: true` and convert the dump to folded "
     "stacks with `stackprof --stackcollapse FILE`"},
    {{"root_frame", "sample_count"},
     "this is JSON of pyinstrument; write the profile with `pyinstrument -r speedscope`"},
    {{"elapsed_time_sec", "files"},
     "this is a profile of Scalene, which exports no stacks; record with `py-spy record --format "
     "raw` "
     "or `perfolio record`"},
    {{"flamebearer"},
     "this is a flame graph of Pyroscope as JSON; download the profile from Pyroscope as pprof"},
    {{"linux-perf-json-version"},
     "this is JSON of `perf data convert`; upload the output of `perf script`"},
    {{"dhatFileVersion"},
     "this is a heap profile of valgrind's DHAT, which exports no stacks; record with `heaptrack` "
     "and convert it with `heaptrack_print --print-flamegraph OUTPUT FILE`"},
    {{"cost_centres", "rts_arguments"},
     "this is a profile of GHC as JSON; profile with `+RTS -p` and convert PROGRAM.prof to folded "
     "stacks with `ghc-prof-flamegraph`"},
    {{"recording", "overview"},
     "this is a timeline of Safari; open it in www.speedscope.app and export it from there"},
    {{"name", "value", "children"},
     "this is the tree of a flame graph as JSON; upload the folded stacks that it was made from"},
    {{"main()"},
     "this is a profile of XHProf, which has no stacks; profile PHP with Excimer "
     "(formatCollapsed) or phpspy, which give folded stacks"},
};

enum { KIND_COUNT = sizeof(kinds) / sizeof(kinds[0]), NAME_COUNT = KIND_COUNT * MEMBERS_MAX };
static_assert(NAME_COUNT <= 64, "json_scan_find_members has a bit for each");

const char *foreign_file_find_json(struct span text)
{
    const char *names[NAME_COUNT];
    for (size_t i = 0; i < NAME_COUNT; i++)
        names[i] = kinds[i / MEMBERS_MAX].members[i % MEMBERS_MAX];
    const uint64_t found = json_scan_find_members(text, names, NAME_COUNT);
    for (size_t i = 0; i < KIND_COUNT; i++) {
        uint64_t needed = 0;
        for (size_t k = 0; k < MEMBERS_MAX && kinds[i].members[k]; k++)
            needed |= (uint64_t)1 << (i * MEMBERS_MAX + k);
        if ((found & needed) == needed)
            return kinds[i].advice;
    }
    return NULL;
}

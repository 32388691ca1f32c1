/*
 * perf_script_line: parses one line of `perf script` output; no state. See perf_script.h. All spans
 * point into the line. Threads: any.
 */
#ifndef LIB_PROFILE_FORMATS_PERF_SCRIPT_LINE_H
#define LIB_PROFILE_FORMATS_PERF_SCRIPT_LINE_H

#include "lib/base/span.h"

struct perf_script_event {
    struct span comm; /* name of the thread; empty: not printed */
    int64_t pid;      /* -1: not printed */
    int64_t tid;      /* -1: not printed; a single number is the tid, as perf prints by default */
    int64_t time_ns;  /* on perf's clock; -1: not printed */
    struct span name; /* of the event; empty: not printed */
    int64_t period;   /* 1 if not printed; larger ones than INT64_MAX are INT64_MAX */
    bool has_period;  /* it was printed */
    struct span rest; /* after the event's name: a frame, a tracepoint's fields, or nothing */
};

/*
 * Parses the line of an event; false if it is none. An event has a time or an event name
 * ("comm 12 1.5: cycles:"); with is_lenient, "comm 12" is enough.
 */
bool perf_script_parse_event(struct span line, bool is_lenient,
                             struct perf_script_event *ret_event);

/* Whether the line is "comm 12 1.5: PERF_RECORD_MMAP2 …" of perf script --show-mmap-events and
 * the like, which is not a sample. */
bool perf_script_is_record(struct span line);

struct perf_script_frame {
    uint64_t address;   /* 0: not printed */
    struct span symbol; /* without "+0x12"; empty: unknown */
    struct span file;   /* the binary; empty: unknown */
    bool is_inlined;
};

/* Parses a frame, "6f1 beta+0x12 (/apps/forks)", also with "(/apps/forks+0x6f1)" of -F +dsoff;
 * blanks around it are ignored. False if the line has neither an address nor a binary nor
 * "(inlined)". */
bool perf_script_parse_frame(struct span line, struct perf_script_frame *ret_frame);

/* Parses "main.c:12" of -F +srcline; false if the line is not of that form. */
bool perf_script_parse_source(struct span line, struct span *ret_file, int64_t *ret_line);

#endif

/*
 * foreign_text: detects text files of other tools that are not supported profiles, by their first
 * lines. Many of their lines end in a number, so they could be mistaken for folded stacks.
 *
 *   Xdebug, callgrind   valgrind.org/docs/manual/cl-format.html; xdebug.org/docs/profiler
 *   tcmalloc            gperftools, docs/heapprofile.html
 *   jemalloc            "heap_v2/…", src/prof_data.c
 *   heaptrack           "v VERSION", src/track/heaptrack_api.h and src/analyze
 *   async-profiler      docs/OutputFormats.md: flat, traces
 *   Go                  runtime/pprof with debug=1 and debug=2
 *   massif              valgrind.org/docs/manual/ms-manual.html
 *   rbspy               src/storage: "rbspyNN"
 *   node --prof, py-spy dump, Blackfire, bpftrace, macOS sample, Instruments, GHC, jstack
 *   perf report, pprof -top, gprof
 *
 * The browser has the same rules (web/src/local/foreign_text.ts); the files in tests/data/foreign
 * test both. Threads: any.
 */
#ifndef LIB_PROFILE_FORMATS_FOREIGN_TEXT_H
#define LIB_PROFILE_FORMATS_FOREIGN_TEXT_H

#include "lib/base/span.h"

/* Returns a literal that names the tool that wrote text and how to get a profile from it; NULL:
 * unknown. */
const char *foreign_text_find(struct span text);

#endif

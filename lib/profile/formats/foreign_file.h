/*
 * foreign_file: detects binary and JSON files of other tools that are not supported profiles, by
 * their first bytes or, for JSON, by the members of the top-level object. foreign_text detects text
 * files.
 *
 *   gperftools        CPU profile, docs/cpuprofile-fileformat.html
 *   .NET              "Nettrace", PerfView's NetTraceFormat.md; "!FastSerialization.1"
 *   Java              JFR "FLR\0", HPROF "JAVA PROFILE 1.0"
 *   Go                execution trace "go 1.N trace", internal/trace
 *   Perfetto          protobuf of TracePackets
 *   OTLP              ExportProfilesServiceRequest, which only the OTLP endpoint accepts
 *   Xcode             `xctrace export`
 *   Python            cProfile (marshal), memray, Austin's MOJO; pyinstrument, Scalene (JSON)
 *   Ruby              stackprof (marshal and JSON)
 *   Firefox Profiler  docs-developer/processed-profile-format.md; samply and Vernier write it, too
 *   V8, Chrome        traces, heap profiles and snapshots, `node --prof-process --preprocess`
 *   valgrind          DHAT
 *
 * The browser has the same rules (web/src/local/refusal.ts); the files in tests/data/foreign test
 * both. Threads: any.
 */
#ifndef LIB_PROFILE_FORMATS_FOREIGN_FILE_H
#define LIB_PROFILE_FORMATS_FOREIGN_FILE_H

#include "lib/base/span.h"

/* Returns a literal that names the tool that wrote bytes and how to get a profile from it; NULL:
 * unknown. */
const char *foreign_file_find(struct span bytes);

/* The same for files that pprof_detect takes for pprof, because they are protobuf, too. */
const char *foreign_file_find_protobuf(struct span bytes);

/* The same for JSON whose top level is an object. Takes one pass over text. */
const char *foreign_file_find_json(struct span text);

#endif

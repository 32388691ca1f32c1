/*
 * foreign_file: files of other tools that are no profiles here and no text either, detected by
 * their first bytes or, for JSON, by the members of the top-level object. Text has a module of its
 * own, foreign_text.
 *
 *   gperftools        CPU profile, docs/cpuprofile-fileformat.html
 *   .NET              "Nettrace", PerfView's NetTraceFormat.md; "!FastSerialization.1"
 *   Java              JFR "FLR\0", HPROF "JAVA PROFILE 1.0"
 *   Go                execution trace "go 1.N trace", internal/trace
 *   Perfetto          protobuf of TracePackets
 *   OTLP              ExportProfilesServiceRequest, which only the OTLP endpoint takes
 *   Xcode             `xctrace export`
 *   Python            cProfile (marshal), memray, Austin's MOJO; pyinstrument, Scalene (JSON)
 *   Ruby              stackprof (marshal and JSON)
 *   Firefox Profiler  docs-developer/processed-profile-format.md; samply and Vernier write it, too
 *   V8, Chrome        traces, heap profiles and snapshots, `node --prof-process --preprocess`
 *   valgrind          DHAT
 *
 * The browser has the same rules (web/src/local/refusal.ts); both are tested with the files in
 * tests/data/foreign. Threads: any.
 */
#ifndef LIB_PROFILE_FORMATS_FOREIGN_FILE_H
#define LIB_PROFILE_FORMATS_FOREIGN_FILE_H

#include "lib/base/buf.h"

/* Which tool wrote bytes, and how to get a profile from that tool: a literal; NULL: none of them.
 */
const char *foreign_file_find(struct span bytes);

/* The same for binary files that begin as pprof does, with a field 1 of protobuf. */
const char *foreign_file_find_protobuf(struct span bytes);

/* The same for JSON whose top level is an object. Takes one pass over text. */
const char *foreign_file_find_json(struct span text);

#endif

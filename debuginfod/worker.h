/*
 * worker: perfolio-symbolize on the inside: enters the sandbox, builds, reports.
 *
 * Started by lib/symbols/symbol_builder with these descriptors: 3 the file, 4 where the table goes,
 * 5 the report, then dwz's shared file where there is one, then split files. Arguments behind
 * --worker: bytes of memory, bytes of output, seconds of processor time, 1 or 0 for a shared file,
 * count of split files, the process that started it, and 1 or 0 for first names alone.
 * The report is lines of a word, a blank and a text; "phase" lines come as each phase of build.h
 * begins, and the last line is "done", or "failed CODE TEXT".
 */
#ifndef DEBUGINFOD_WORKER_H
#define DEBUGINFOD_WORKER_H

/* Returns the exit status: 0 done, 1 failed and said so, 2 not started as it should be. */
int worker_run(int argument_count, char *const *arguments);

#endif

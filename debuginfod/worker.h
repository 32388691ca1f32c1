/*
 * worker: perfolio-symbolize on the inside: enters the sandbox, builds, reports.
 *
 * Started by lib/symbols/symbol_builder with these descriptors: 3 the file, 4 where the table goes,
 * 5 the report, then dwz's shared file where there is one, then split files. Arguments behind
 * --worker: bytes of memory, bytes of output, seconds of processor time, 1 or 0 for a shared file,
 * count of split files, and the process that started it.
 * The report is lines of a word, a blank and a text; the last is "done", or "failed CODE TEXT".
 */
#ifndef DEBUGINFOD_WORKER_H
#define DEBUGINFOD_WORKER_H

/* Returns the exit status: 0 done, 1 failed and said so, 2 not started as it should be. */
int worker_run(int argument_count, char *const *arguments);

#endif

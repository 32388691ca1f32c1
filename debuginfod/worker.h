/*
 * worker: the sandboxed process of perfolio-symbolize: enters the sandbox, builds, reports.
 *
 * lib/symbols/symbol_builder starts it with these descriptors: 3 the file, 4 the table, 5 the
 * report, then dwz's shared file if there is one, then the split files. The arguments after
 * --worker are: bytes of memory, bytes of output, seconds of CPU time, 1 or 0 for a shared file,
 * the number of split files, the process id of the parent, and the sum of 1 (first names only: no
 * DWARF) and 2 (packed output).
 *
 * The report consists of lines with a key, a blank and a text. A "phase" line is written at the
 * start of each phase of build.h. The last line is "done", or "failed CODE TEXT".
 */
#ifndef DEBUGINFOD_WORKER_H
#define DEBUGINFOD_WORKER_H

/* Returns the exit status: 0 done, 1 failed (the report has the reason), 2 not started
 * correctly. */
int worker_run(int argument_count, char *const *arguments);

#endif

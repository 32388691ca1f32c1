/*
 * jit_file_trust: opens a perf map or jitdump of a process only if its names can be trusted.
 *
 * Any user can create such files. One is read only if it belongs to the user of the process, is no
 * link, and was written after the start of the process, by the wall clock; an older file belongs to
 * an earlier process of the same number. A program that acts for another user (setuid) must not
 * choose which file is read: no file of it is trusted.
 *
 * Threads: one.
 */
#ifndef AGENT_SYMBOLS_JIT_FILE_TRUST_H
#define AGENT_SYMBOLS_JIT_FILE_TRUST_H

#include <stdbool.h>
#include <stdint.h>

/* The process whose files are read. */
struct jit_file_owner {
    uint32_t process_id;
    uint64_t start_ticks; /* start of the process since boot; 0: it had ended already */
    uint32_t shown_id;    /* thread whose folder in /proc shows the process; the caller sets it */
    uint64_t own_number;  /* its number in its own PID namespace, as in the file's name */
    uint32_t user_id;     /* UINT32_MAX: not known, or real and effective user differ */
    int64_t started_ns;   /* wall clock; INT64_MAX: not known */
    bool has_our_files;   /* its /tmp is ours, so its files can be read after its end */
};

/* Reads start and user of the process. */
void jit_file_owner_init(struct jit_file_owner *owner, uint32_t process_id);
/* Reads them again, if the process still runs. False: another process has the number by now, and
 * no file may be read. */
bool jit_file_owner_refresh(struct jit_file_owner *owner);
/* The caller closes the descriptor. -1: there is no such file, or it is not trusted. */
int jit_file_open(const struct jit_file_owner *owner, const char *path, uint64_t *ret_bytes);

#endif

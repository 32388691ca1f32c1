/*
 * mapped_file: a file mapped to be read, whose unreadable pages do not end the process.
 *
 * The kernel sends SIGBUS when a page of a mapping cannot be read: a bad sector, a checksum error
 * of the file system, or a file that was truncated after it was mapped. The handler of this module
 * replaces such a page of a mapped_file by zeros, so that the reader goes on, and notes the
 * failure. The reader must therefore be safe for any bytes, as decoders of untrusted input are, and
 * calls mapped_file_check when it has finished.
 *
 * A thread that reads a mapped_file must not block SIGBUS (thread_signals.h). SIGBUS at any other
 * address has the effect that it had before the first mapped_file was opened. Threads: a
 * mapped_file may be read by any number of threads.
 */
#ifndef LIB_BASE_MAPPED_FILE_H
#define LIB_BASE_MAPPED_FILE_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

struct mapped_region;

struct mapped_file {
    struct span bytes;
    struct mapped_region *region; /* NULL: closed */
};

/* Maps size > 0 bytes from the start of the file; the caller may close fd afterwards. Errors:
 * ERR_IO. */
enum err_code mapped_file_open(int fd, size_t size, struct mapped_file *ret_file,
                               struct err *err) MUST_USE;
/* Checks whether all pages that were accessed so far could be read. Errors: ERR_IO with
 * is_unreadable (a page could not be read, and its bytes were replaced by zeros). */
enum err_code mapped_file_check(const struct mapped_file *file, struct err *err) MUST_USE;
void mapped_file_close(struct mapped_file *file); /* a no-op for a closed or zeroed one */

static inline void mapped_file_cleanup(struct mapped_file *file)
{
    mapped_file_close(file);
}
/* mapped_file_auto file = {0};   closed at the end of the scope */
#define mapped_file_auto __attribute__((cleanup(mapped_file_cleanup))) struct mapped_file

#endif

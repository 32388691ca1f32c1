/*
 * debug_file: the separate debug file of a binary, as distributions install it:
 * /usr/lib/debug/.build-id/XX/YYYY.debug below the root folder of the process, else below that of
 * process 1, which is the host's where the agent sees it. Threads: any.
 */
#ifndef AGENT_UPLOAD_DEBUG_FILE_H
#define AGENT_UPLOAD_DEBUG_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* Read-only, of that build id (hexadecimal); -1 when there is none. The caller closes it. */
int debug_file_open(uint32_t process_id, const char *build_id);

/* Is there no code in the file of fd? Of such that are no ELF files, or damaged, nobody knows:
 * false. */
bool debug_file_is_free_of_code(int fd);

#endif

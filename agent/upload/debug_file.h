/*
 * debug_file: finds the separate debug file of a binary where distributions install it:
 * /usr/lib/debug/.build-id/XX/YYYY.debug below the root folder of the process, else below that of
 * process 1, which is the host's if the agent can see it. Threads: any.
 */
#ifndef AGENT_UPLOAD_DEBUG_FILE_H
#define AGENT_UPLOAD_DEBUG_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* Opens the file of a build id (hexadecimal) read-only; -1: there is none. The caller closes it. */
int debug_file_open(uint32_t process_id, const char *build_id);

/* Whether the file contains no code. False for a file that is damaged or not an ELF file. */
bool debug_file_is_free_of_code(int fd);

#endif

/*
 * local_names: gives the frames of a profile names from the files of this machine: symbol tables of
 * the binaries that it names are built here, in the sandbox of perfolio-symbolize.
 *
 * Of a binary the debug file of its build id below /usr/lib/debug is taken where there is one, else
 * the file itself, or, where that has no DWARF, the debug file that it names, and none unless its
 * build id is the profile's; at last what was kept open. A binary without a build id has names from
 * the very file that was recorded alone. What stays without names is the server's to find. Several
 * tables are built at once, one per processor, those of the binaries with most addresses first,
 * with a bar on a terminal. Tables are kept for the next profile; beyond 96 MiB, unless the use is
 * live, each is closed once its mapping has names. Threads: one.
 */
#ifndef CLI_RECORD_LOCAL_NAMES_H
#define CLI_RECORD_LOCAL_NAMES_H

#include "lib/base/err.h"

#include <stdint.h>

struct arena;
struct cli;
struct kept_files;
struct profile;

struct local_names;

enum local_names_use {
    LOCAL_NAMES_ONCE,
    LOCAL_NAMES_TOLD, /* once, and one line on standard error says so: for what is no terminal */
    LOCAL_NAMES_LIVE, /* again and again, while a recording goes on */
};

/* Both are borrowed; files may be NULL. */
struct local_names *local_names_create(struct cli *cli, struct kept_files *files,
                                       enum local_names_use use);
void local_names_destroy(struct local_names *names); /* NULL is a no-op */

struct local_names_counts {
    uint32_t address_count;
    uint32_t unknown_count;
};

/* *ret_named lives in arena and refers to profile. A binary that cannot be read is told as a note
 * and stays as it is. Handles: nothing that a caller could mend. */
enum err_code local_names_give(struct local_names *names, const struct profile *profile,
                               struct arena *arena, struct profile *ret_named,
                               struct local_names_counts *ret_counts, struct err *err) MUST_USE;

#endif

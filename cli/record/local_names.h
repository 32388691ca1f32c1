/*
 * local_names: symbolizes a profile with files of this host. It builds symbol tables of the mapped
 * binaries in the sandbox of perfolio-symbolize.
 *
 * Sources of a binary, in this order: the debug file of its build id below /usr/lib/debug; the file
 * itself, from its descriptor in mapped_files if its path no longer leads to it; if the file has no
 * DWARF, the debug file that it names. A source is used only if its build id matches the profile. A
 * binary without a build id gets names only from the very file that was recorded. The server
 * symbolizes the rest. One table per processor is built at a time, binaries with the most addresses
 * first, with a progress bar on a terminal. Tables are cached for the next profile; above 96 MiB a
 * table is closed after its mapping is symbolized, unless the use is LOCAL_NAMES_LIVE. Threads:
 * one.
 */
#ifndef CLI_RECORD_LOCAL_NAMES_H
#define CLI_RECORD_LOCAL_NAMES_H

#include "lib/base/err_code.h"

#include <stdint.h>

struct arena;
struct cli;
struct mapped_files;
struct profile;

struct local_names;

enum local_names_use {
    LOCAL_NAMES_ONCE,
    LOCAL_NAMES_REPORTED, /* once, with a line on standard error that replaces the progress bar */
    LOCAL_NAMES_LIVE,     /* repeatedly during a recording */
};

/* Borrows cli and files; files may be NULL. Warns if perfolio-symbolize is not installed; nothing
 * gets a name then. */
struct local_names *local_names_create(struct cli *cli, struct mapped_files *files,
                                       enum local_names_use use);
void local_names_destroy(struct local_names *names); /* NULL is a no-op */

struct local_names_counts {
    uint32_t address_count;
    uint32_t unknown_count;
};

/* Creates a profile with names. *ret_named lives in arena and refers to profile. If a binary cannot
 * be read, a note reports it and its addresses remain without names; that is not an error. */
enum err_code local_names_symbolize(struct local_names *names, const struct profile *profile,
                                    struct arena *arena, struct profile *ret_named,
                                    struct local_names_counts *ret_counts,
                                    struct err *err) MUST_USE;

#endif

/*
 * debuginfo_upload: uploads debug information and shows its status on the server, for perfolio
 * debuginfo.
 */
#ifndef CLI_COMMANDS_DEBUGINFO_UPLOAD_H
#define CLI_COMMANDS_DEBUGINFO_UPLOAD_H

#include "cli/cli.h"

struct debuginfo_upload {
    struct cli *cli;
    const char *alternate; /* dwz's shared file, or NULL */
    const char *raw_kind;  /* "debuginfo" or "executable": the file itself goes; NULL: a table */
    bool is_forced;        /* also where the server has one that is not worse */
    bool is_json;
};

/* One file, or table. Handles: what symbols_open and client_send do, and ERR_INVALID (the file has
 * no build id). */
enum err_code debuginfo_upload_file(const struct debuginfo_upload *upload, const char *path,
                                    struct err *err) MUST_USE;

/* Is it a build id, and no file of that name? */
bool debuginfo_upload_is_id(const char *text);
/* Prints what the server has of it. Handles: what client_send does. */
enum err_code debuginfo_upload_show(const struct debuginfo_upload *upload, const char *build_id,
                                    struct err *err) MUST_USE;

/* Is the file neither ELF nor a table, so that it may be a profile? */
bool debuginfo_upload_may_be_profile(const char *path);
/* Prints what the server has of each binary of a profile that has a build id, and names those
 * without. Handles: what input_decode and client_send do. */
enum err_code debuginfo_upload_show_profile(const struct debuginfo_upload *upload, const char *path,
                                            struct err *err) MUST_USE;

#endif

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
    const char *raw_kind;  /* "debuginfo" or "executable": upload the file; NULL: a table */
    bool is_forced;        /* upload even if the server has an equal or better one */
    bool is_json;
};

/* Uploads the file at path, or a symbol table built from it (raw_kind). Errors: those of
 * symbols_open and client_send, ERR_INVALID (the file has no build id). */
enum err_code debuginfo_upload_file(const struct debuginfo_upload *upload, const char *path,
                                    struct err *err) MUST_USE;

/* Whether text has the form of a build id, and no file has that name. */
bool debuginfo_upload_is_id(const char *text);
/* Prints the status of a build id on the server. Errors: those of client_send. */
enum err_code debuginfo_upload_show(const struct debuginfo_upload *upload, const char *build_id,
                                    struct err *err) MUST_USE;

/* Whether the file may be a profile, because it is neither ELF nor a table. */
bool debuginfo_upload_may_be_profile(const char *path);
/* Prints the status of each binary of a profile that has a build id, and the names of those
 * without. Errors: those of input_decode and client_send. */
enum err_code debuginfo_upload_show_profile(const struct debuginfo_upload *upload, const char *path,
                                            struct err *err) MUST_USE;

#endif

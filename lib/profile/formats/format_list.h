/*
 * format_list: the upload formats, one row each. This is the only list of them.
 *
 * The enum and the table of format.h, the messages and help texts that list formats, and the pages
 * (web/build.mjs parses this file) are made from the rows.
 * tests/integration/docs/test_upload_formats.py compares the texts that are written by hand with
 * them: OpenAPI description, manual page, README. CONTRIBUTING.md describes how to add a format.
 *
 *   ROW(ID, name, title, extension, media type, content, module)
 *
 *   ID          FORMAT_ID in enum format
 *   name        in the API, stored with each share: never changes
 *   title       as users read it in lists: "pprof, folded stacks, …"
 *   extension   of a downloaded file without a name; gzip and zstd append ".gz" and ".zst"
 *   media type  of the bytes without compression
 *   content     JSON (the top level is an object), BINARY (has control characters) or TEXT
 *   module      defines MODULE_detect, "may these bytes be in this format?", and MODULE_decode
 *
 * Rows are tried from the last to the first, those of the same content only: the first one that
 * detects the bytes decodes them. So put the less specific format first: folded stacks may be any
 * text.
 */
#ifndef LIB_PROFILE_FORMATS_FORMAT_LIST_H
#define LIB_PROFILE_FORMATS_FORMAT_LIST_H

/* clang-format off */
#define FORMAT_LIST(ROW)                                                                           \
    ROW(PPROF, "pprof", "pprof",                                                                   \
        ".pb", "application/vnd.google.protobuf", BINARY, pprof)                                   \
    ROW(FOLDED, "folded", "folded stacks",                                                         \
        ".folded", "text/plain; charset=utf-8", TEXT, folded)                                      \
    ROW(PERF_SCRIPT, "perf-script", "perf script",                                                 \
        ".perf.txt", "text/plain; charset=utf-8", TEXT, perf_script)                               \
    ROW(CPUPROFILE, "cpuprofile", "Chrome .cpuprofile",                                            \
        ".cpuprofile", "application/json", JSON, cpuprofile)                                       \
    ROW(SPEEDSCOPE, "speedscope", "speedscope",                                                    \
        ".speedscope.json", "application/json", JSON, speedscope)
/* clang-format on */

/* "pprof, folded stacks, …, each plain or compressed with gzip or zstd": part of a literal. */
#define FORMAT_LIST_TITLE(id, name, title, ...) title ", "
#define FORMAT_LIST_TEXT FORMAT_LIST(FORMAT_LIST_TITLE) "each plain or compressed with gzip or zstd"

#endif

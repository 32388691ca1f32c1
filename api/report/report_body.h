/*
 * report_body: the bytes of a report, in the form in which they are sent. They are computed once,
 * may be compressed and kept by a cache, and any number of responses may send them.
 *
 * Each source of profiles (api/share/share_report.h, api/query/query_report.h,
 * api/query/query_diff.h) takes its slot and its memory, finds its profiles and chooses its cache;
 * what follows is the same for all. Threads: one writes a body; then any may send it.
 */
#ifndef API_REPORT_REPORT_BODY_H
#define API_REPORT_REPORT_BODY_H

#include "api/report/report.h"
#include "lib/base/buf.h"
#include "lib/base/err_code.h"

struct arena;

struct report_body {
    struct buf bytes;
    size_t plain_bytes; /* their size before compression */
    bool is_zstd;
    _Atomic uint32_t reader_count; /* responses that are sending it, for api/server/http_job.c */
};

/* An empty body, which may grow to report->max_bytes. */
void report_body_init(struct report_body *body, const struct report *report);
void report_body_fini(struct report_body *body);
/* The same in arena, which finishes it. */
struct report_body *report_body_create(struct arena *arena, const struct report *report);

/* Computes the report of these profiles, two for a diff. Errors: those of report_write_profiles. */
enum err_code report_body_write(struct report_body *body, const struct report *report,
                                const struct profile *const profiles[2], struct err *err) MUST_USE;
/* Compresses with zstd, to max_bytes at most. Errors: those of compress_zstd. */
enum err_code report_body_compress(struct report_body *body, int level, size_t max_bytes,
                                   struct err *err) MUST_USE;
/* Gives back memory that writing or compressing has reserved: a cached body must take only its
 * size. */
void report_body_shrink(struct report_body *body);

/* Responds with the body, which must live until the response has been sent. If other responses may
 * send it, too, the caller sets response->reader_count. */
void report_body_send(const struct report_body *body, const struct report_kind *kind,
                      struct request *request, struct response *response);

#endif

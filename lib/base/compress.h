/*
 * compress: gzip and zstd for whole buffers, with a limit on the expanded size.
 *
 * Expansion writes into a struct buf whose max_size is the limit. The buffer grows as output
 * arrives, so a compression bomb costs time and memory in proportion to its real size, at most to
 * the limit; then expansion ends with ERR_TOO_LARGE. gzip (RFC 1952) may have any number of members
 * and zstd (RFC 8878) any number of frames, including skippable ones. Both are read to the end and
 * their checksums are verified. Only compress.c includes libdeflate and zstd. Threads: any.
 */
#ifndef LIB_BASE_COMPRESS_H
#define LIB_BASE_COMPRESS_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

#include <stdbool.h>

struct buf;

enum compress_method { COMPRESS_NONE, COMPRESS_GZIP, COMPRESS_ZSTD };

enum {
    COMPRESS_GZIP_FAST = 1,    /* about 245 MB/s, ratio 3.2 on heap profiles */
    COMPRESS_GZIP_DEFAULT = 6, /* about 100 MB/s, ratio 3.5 */
    COMPRESS_GZIP_BEST = 12,
    COMPRESS_ZSTD_FAST = 1,    /* about 490 MB/s, ratio 3.2 */
    COMPRESS_ZSTD_DEFAULT = 3, /* about 300 MB/s, ratio 3.9 */
    COMPRESS_ZSTD_BEST = 19,
    COMPRESS_WINDOW_LOG_MAX =
        27 /* zstd frames that need a window of more than 128 MiB are refused */
};

/* Detects the method from the first bytes; COMPRESS_NONE when they match neither format. */
enum compress_method compress_sniff(struct span bytes);

/* "identity", "gzip" or "zstd", as in Content-Encoding. */
const char *compress_name(enum compress_method method);

/*
 * Expands bytes into output, which is cleared first. COMPRESS_NONE copies. On failure output is
 * empty. Errors: ERR_INVALID (malformed, truncated, wrong checksum, other bytes after the end),
 * ERR_TOO_LARGE (would exceed output->max_size, or needs too large a window).
 */
enum err_code compress_expand(enum compress_method method, struct span bytes, struct buf *output,
                              struct err *err) MUST_USE;

/*
 * Limits the ratio of expansion for untrusted input. Measured with gzip -9 and zstd -19, real
 * profiles expand by at most: pprof 11; folded stacks and `perf script` of real programs 68; `perf
 * script` of one deep stack, 60 MB long, 132 (gzip) and 622 (zstd). Output of up to
 * COMPRESS_RATIO_FLOOR_BYTES is never refused for its ratio: threads may expand that much without a
 * reservation in the memory budget, and a small file of one repeated stack can have any ratio.
 *
 * Returns the maximum expanded size for that many compressed bytes. A ratio of 0 means no limit.
 */
enum { COMPRESS_RATIO_FLOOR_BYTES = 8 << 20 };
size_t compress_ratio_bytes(size_t compressed_bytes, uint32_t ratio);

/* As compress_expand, but also limited by that ratio. setting is the name of the setting for the
 * error message, or NULL. Errors also: ERR_TOO_LARGE with err->is_final (the ratio is
 * exceeded although output has space left). */
enum err_code compress_expand_ratio(enum compress_method method, struct span bytes, uint32_t ratio,
                                    const char *setting, struct buf *output,
                                    struct err *err) MUST_USE;

/*
 * Compress bytes and append the result to output. level is that of libdeflate (1 to 12) or zstd (1
 * to 19). The output is deterministic: the header contains no time and no name. Errors:
 * ERR_TOO_LARGE.
 */
enum err_code compress_gzip(struct span bytes, int level, struct buf *output,
                            struct err *err) MUST_USE;
enum err_code compress_zstd(struct span bytes, int level, struct buf *output,
                            struct err *err) MUST_USE;

/* Compresses many small pieces with one zstd context, so that its tables are allocated once. A
 * writer belongs to one thread at a time. */
struct compress_zstd_writer;
struct compress_zstd_writer *compress_zstd_writer_create(void);
void compress_zstd_writer_destroy(struct compress_zstd_writer *writer); /* NULL is a no-op */
enum err_code compress_zstd_with(struct compress_zstd_writer *writer, struct span bytes, int level,
                                 struct buf *output, struct err *err) MUST_USE;

/* Expands one zstd frame of exactly flat_size bytes into flat; used for the small columns of
 * stored data. Returns false when the frame is malformed or has another size. */
bool compress_expand_exact(struct span zstd, uint8_t *flat, size_t flat_size) MUST_USE;
/* The same for one zlib stream (RFC 1950), as in compressed sections of ELF files. Verifies the
 * checksum. */
bool compress_inflate_exact(struct span zlib, uint8_t *flat, size_t flat_size) MUST_USE;
/* Whether zstd can be a frame that expands to flat_size bytes, judged by its header and length
 * only. Call it before allocating memory for a size that an untrusted source claims. */
bool compress_can_expand_to(struct span zstd, size_t flat_size) MUST_USE;

#endif

/*
 * compress: gzip and zstd, whole buffers at a time, with a bound on what comes out.
 *
 * Expanding writes into a struct buf whose max_size is the bound. Room grows as output comes, so a
 * bomb costs time and memory in proportion to the bound at most, and to what it really holds if
 * that is less; it ends as ERR_TOO_LARGE. gzip (RFC 1952) may have any number of members and zstd
 * (RFC 8878) any number of frames, skippable ones included; both are read to the end, checksums
 * verified. The only file that includes libdeflate, zstd and zlib. Threads: any.
 */
#ifndef LIB_BASE_COMPRESS_H
#define LIB_BASE_COMPRESS_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdbool.h>

enum compress_method { COMPRESS_NONE, COMPRESS_GZIP, COMPRESS_ZSTD };

enum {
    COMPRESS_GZIP_FAST = 1,    /* about 245 MB/s, ratio 3.2 on heap profiles */
    COMPRESS_GZIP_DEFAULT = 6, /* about 100 MB/s, ratio 3.5 */
    COMPRESS_GZIP_BEST = 12,
    COMPRESS_ZSTD_FAST = 1,    /* about 490 MB/s, ratio 3.2 */
    COMPRESS_ZSTD_DEFAULT = 3, /* about 300 MB/s, ratio 3.9 */
    COMPRESS_ZSTD_BEST = 19,
    COMPRESS_WINDOW_LOG_MAX = 27 /* zstd frames that ask for more memory than 128 MiB are refused */
};

/* What the first bytes say; COMPRESS_NONE when they are neither. */
enum compress_method compress_sniff(struct span bytes);

/* "identity", "gzip" or "zstd", as in Content-Encoding. */
const char *compress_name(enum compress_method method);

/*
 * Expands bytes into output, which is cleared first. COMPRESS_NONE copies. On failure output is
 * empty. Handles: ERR_INVALID (malformed, cut short, wrong checksum, rubbish behind the end),
 * ERR_TOO_LARGE (would pass output->max_size, or asks for too large a window).
 */
enum err_code compress_expand(enum compress_method method, struct span bytes, struct buf *output,
                              struct err *err) MUST_USE;

/*
 * A limit on the ratio of expansion, for input of strangers: real profiles compress well, but not
 * without bound. Measured with gzip -9 and zstd -19: pprof at most 11, folded stacks and `perf
 * script` of real programs at most 68, `perf script` of one deep stack 60 MB long 132 and 622.
 * Output of up to COMPRESS_RATIO_FLOOR_BYTES is never refused for its ratio: any thread may expand
 * that much without a place in the budget of memory, and a small file of one repeated stack has any
 * ratio. Returns the most bytes that so many compressed ones may expand to; ratio 0: no limit.
 */
enum { COMPRESS_RATIO_FLOOR_BYTES = 8 << 20 };
size_t compress_ratio_bytes(size_t compressed_bytes, uint32_t ratio);

/* As compress_expand, within that ratio too; setting is its name, for the message, or NULL. Handles
 * besides: ERR_TOO_LARGE with err->is_final (the ratio is passed, and output has more room). */
enum err_code compress_expand_ratio(enum compress_method method, struct span bytes, uint32_t ratio,
                                    const char *setting, struct buf *output,
                                    struct err *err) MUST_USE;

/*
 * Appends bytes, compressed, to output. level as of libdeflate (1 to 12) or zstd (1 to 19).
 * Deterministic: no time and no name in the header. Handles: ERR_TOO_LARGE.
 */
enum err_code compress_gzip(struct span bytes, int level, struct buf *output,
                            struct err *err) MUST_USE;
enum err_code compress_zstd(struct span bytes, int level, struct buf *output,
                            struct err *err) MUST_USE;

/* The same for many small pieces: the tables that zstd works with are made once. Of one thread at a
 * time. */
struct compress_zstd_writer;
struct compress_zstd_writer *compress_zstd_writer_create(void);
void compress_zstd_writer_destroy(struct compress_zstd_writer *writer); /* NULL is a no-op */
enum err_code compress_zstd_with(struct compress_zstd_writer *writer, struct span bytes, int level,
                                 struct buf *output, struct err *err) MUST_USE;

/* One zstd frame of exactly flat_size bytes into flat: for columns of stored data, many and small.
 * False when it is anything else. */
bool compress_expand_exact(struct span zstd, uint8_t *flat, size_t flat_size) MUST_USE;
/* The same of one zlib stream (RFC 1950), as sections of ELF files are; its checksum is verified.
 */
bool compress_inflate_exact(struct span zlib, uint8_t *flat, size_t flat_size) MUST_USE;
/* Could it be such a frame? Looks at its header and length alone: to be asked before there is room
 * for what a size from outside claims. */
bool compress_can_expand_to(struct span zstd, size_t flat_size) MUST_USE;

#endif

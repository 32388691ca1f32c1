#include "lib/base/compress.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <libdeflate.h>
#include <stdbool.h>
#include <zstd.h>
#include <zstd_errors.h>

enum {
    GZIP_SMALLEST_BYTES = 20, /* header, one empty block, trailer */
    DEFLATE_RATIO_MAX = 1032, /* 258 bytes from two bits; a larger claim is false */
    FIRST_GUESS_RATIO = 4,
    SMALLEST_SPACE_BYTES = 64 * 1024,
    TRUSTED_RATIO = 64 /* a zstd header may claim this ratio, and its output is reserved at once */
};

enum compress_method compress_sniff(struct span bytes)
{
    if (bytes.size < 4)
        return COMPRESS_NONE;
    const uint8_t *data = bytes.data;
    if (data[0] == 0x1f && data[1] == 0x8b && data[2] == 8)
        return COMPRESS_GZIP;
    if (data[0] == 0x28 && data[1] == 0xb5 && data[2] == 0x2f && data[3] == 0xfd)
        return COMPRESS_ZSTD;
    if ((data[0] & 0xf0) == 0x50 && data[1] == 0x2a && data[2] == 0x4d && data[3] == 0x18)
        return COMPRESS_ZSTD; /* a skippable frame first */
    return COMPRESS_NONE;
}

const char *compress_name(enum compress_method method)
{
    switch (method) {
    case COMPRESS_NONE:
        return "identity";
    case COMPRESS_GZIP:
        return "gzip";
    case COMPRESS_ZSTD:
        return "zstd";
    }
    return "unknown";
}

/* Sets the failure flag of output, so that callers can distinguish this error from a window that
 * is too large. */
static enum err_code too_large(struct buf *output, struct err *err)
{
    output->has_failed = true;
    return err_set(err, ERR_TOO_LARGE, "expands to more than the limit of %zu bytes",
                   output->max_size);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The size in the last member's trailer; 0 if deflate cannot expand to that much. */
static size_t claimed_gzip_size(struct span bytes)
{
    if (bytes.size < GZIP_SMALLEST_BYTES)
        return 0;
    const uint8_t *end = bytes.data + bytes.size;
    size_t claimed =
        (size_t)end[-4] | (size_t)end[-3] << 8 | (size_t)end[-2] << 16 | (size_t)end[-1] << 24;
    return claimed / DEFLATE_RATIO_MAX <= bytes.size ? claimed : 0;
}

/*
 * Expands one gzip member. libdeflate needs space for the whole output at once, so a member of
 * unknown size is tried again with twice the space. The retries cost at most as much as the last
 * attempt.
 */
static enum err_code expand_member(struct libdeflate_decompressor *decompressor, struct span *rest,
                                   size_t space, struct buf *output, struct err *err)
{
    for (;;) {
        size_t left = output->max_size - output->size;
        space = smaller(space, left);
        uint8_t *data = buf_reserve(output, space);
        size_t taken = 0, made = 0;
        enum libdeflate_result result = libdeflate_gzip_decompress_ex(
            decompressor, rest->data, rest->size, data, space, &taken, &made);
        if (result == LIBDEFLATE_SUCCESS) {
            buf_commit(output, made);
            *rest = span_of(rest->data + taken, rest->size - taken);
            return ERR_NONE;
        }
        if (result != LIBDEFLATE_INSUFFICIENT_SPACE)
            return err_set(err, ERR_INVALID, "malformed or incomplete gzip data");
        if (space == left)
            return too_large(output, err);
        space = space < SMALLEST_SPACE_BYTES ? SMALLEST_SPACE_BYTES : space * 2;
    }
}

static enum err_code expand_gzip(struct span bytes, struct buf *output, struct err *err)
{
    /* Refuse a bomb early if its trailer states its size. A false trailer is detected below. */
    size_t claimed = claimed_gzip_size(bytes);
    if (claimed > output->max_size)
        return too_large(output, err);
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    if (!decompressor)
        return err_set(err, ERR_INTERNAL, "no memory for a gzip reader");
    struct span rest = bytes;
    size_t space = claimed >= bytes.size / 2 ? claimed : bytes.size * FIRST_GUESS_RATIO;
    enum err_code code;
    do {
        code = expand_member(decompressor, &rest, space, output, err);
        /* Later members first use the space that is left before the buffer grows. */
        space = output->capacity - output->size;
        if (space == 0)
            space = SMALLEST_SPACE_BYTES;
    } while (!code && rest.size);
    libdeflate_free_decompressor(decompressor);
    return code;
}

static enum err_code zstd_failure(size_t result, struct err *err)
{
    ZSTD_ErrorCode reason = ZSTD_getErrorCode(result);
    if (reason == ZSTD_error_frameParameter_windowTooLarge)
        return err_set(err, ERR_TOO_LARGE,
                       "zstd frame wants a window of more than %u MiB; compress without --long",
                       1u << (COMPRESS_WINDOW_LOG_MAX - 20));
    return err_set(err, ERR_INVALID, "malformed zstd data: %s", ZSTD_getErrorName(result));
}

/* Reserves space for a whole frame if its header states a plausible size, so that it is expanded
 * in one step. */
static enum err_code reserve_for_frame(struct span rest, struct buf *output, struct err *err)
{
    unsigned long long claimed = ZSTD_getFrameContentSize(rest.data, rest.size);
    if (claimed == ZSTD_CONTENTSIZE_UNKNOWN || claimed == ZSTD_CONTENTSIZE_ERROR)
        return ERR_NONE;
    if (claimed > output->max_size - output->size)
        return too_large(output, err);
    if (claimed / TRUSTED_RATIO <= rest.size && claimed)
        buf_reserve(output, (size_t)claimed);
    return ERR_NONE;
}

/* Expands until the reserved space is full or the frame ends. *ret_hint is 0 at the end of a
 * frame. */
static enum err_code expand_step(ZSTD_DCtx *context, ZSTD_inBuffer *input, struct buf *output,
                                 size_t *ret_hint, struct err *err)
{
    uint8_t spare; /* at the limit a frame may still end, but must not produce another byte */
    size_t left = output->max_size - output->size;
    size_t space = output->capacity - output->size;
    if (space == 0)
        space = smaller(left, output->size + SMALLEST_SPACE_BYTES);
    ZSTD_outBuffer out = {.dst = left ? buf_reserve(output, space) : &spare,
                          .size = left ? space : sizeof(spare)};
    size_t result = ZSTD_decompressStream(context, &out, input);
    if (ZSTD_isError(result))
        return zstd_failure(result, err);
    if (!left && out.pos)
        return too_large(output, err);
    if (left)
        buf_commit(output, out.pos);
    if (result && input->pos == input->size && out.pos < out.size)
        return err_set(err, ERR_INVALID, "incomplete zstd data");
    *ret_hint = result;
    return ERR_NONE;
}

static enum err_code expand_zstd(struct span bytes, struct buf *output, struct err *err)
{
    ZSTD_DCtx *context = ZSTD_createDCtx();
    if (!context)
        return err_set(err, ERR_INTERNAL, "no memory for a zstd reader");
    ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, COMPRESS_WINDOW_LOG_MAX);
    ZSTD_inBuffer input = {.src = bytes.data, .size = bytes.size};
    size_t hint = 0;
    enum err_code code = ERR_NONE;
    do {
        if (hint == 0)
            code = reserve_for_frame(span_of(bytes.data + input.pos, bytes.size - input.pos),
                                     output, err);
        if (!code)
            code = expand_step(context, &input, output, &hint, err);
    } while (!code && (hint || input.pos < input.size));
    ZSTD_freeDCtx(context);
    return code;
}

/* As compress_expand; also sets *ret_is_full if the output would exceed output's maximum. */
static enum err_code expand(enum compress_method method, struct span bytes, struct buf *output,
                            bool *ret_is_full, struct err *err)
{
    enum err_code code = ERR_NONE;
    *ret_is_full = false;
    buf_clear(output);
    if (bytes.size == 0 && method != COMPRESS_NONE)
        return err_set(err, ERR_INVALID, "empty, not %s data", compress_name(method));
    switch (method) {
    case COMPRESS_NONE:
        buf_append_span(output, bytes);
        code = buf_failed(output) ? too_large(output, err) : ERR_NONE;
        break;
    case COMPRESS_GZIP:
        code = expand_gzip(bytes, output, err);
        break;
    case COMPRESS_ZSTD:
        code = expand_zstd(bytes, output, err);
        break;
    }
    *ret_is_full = code && buf_failed(output);
    if (code)
        buf_clear(output);
    return code;
}

enum err_code compress_expand(enum compress_method method, struct span bytes, struct buf *output,
                              struct err *err)
{
    bool is_full;
    return expand(method, bytes, output, &is_full, err);
}

size_t compress_ratio_bytes(size_t compressed_bytes, uint32_t ratio)
{
    size_t most;
    if (ratio == 0 || __builtin_mul_overflow(compressed_bytes, (size_t)ratio, &most))
        return SIZE_MAX;
    return most > COMPRESS_RATIO_FLOOR_BYTES ? most : COMPRESS_RATIO_FLOOR_BYTES;
}

enum err_code compress_expand_ratio(enum compress_method method, struct span bytes, uint32_t ratio,
                                    const char *setting, struct buf *output, struct err *err)
{
    const size_t max_size = output->max_size, most = compress_ratio_bytes(bytes.size, ratio);
    bool is_full;
    if (method == COMPRESS_NONE || most >= max_size)
        return compress_expand(method, bytes, output, err);
    output->max_size = most;
    enum err_code code = expand(method, bytes, output, &is_full, err);
    output->max_size = max_size;
    if (!is_full)
        return code;
    err_set(err, ERR_TOO_LARGE,
            "%zu bytes of %s expand to more than %u times as many%s%s: send the profile "
            "uncompressed, or with less repetition",
            bytes.size, compress_name(method), ratio, setting ? ", the limit " : "",
            setting ? setting : "");
    err->is_final = true;
    return ERR_TOO_LARGE;
}

/* Reserves size bytes, or the rest up to the maximum: the result may be smaller than its upper
 * bound. */
static uint8_t *reserve_up_to(struct buf *output, size_t size, size_t *ret_room)
{
    *ret_room = smaller(size, output->max_size - output->size);
    return buf_reserve(output, *ret_room);
}

enum err_code compress_gzip(struct span bytes, int level, struct buf *output, struct err *err)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(level);
    if (!compressor)
        return err_set(err, ERR_INTERNAL, "no gzip writer of level %d", level);
    size_t space, made = 0;
    uint8_t *data =
        reserve_up_to(output, libdeflate_gzip_compress_bound(compressor, bytes.size), &space);
    if (data)
        made = libdeflate_gzip_compress(compressor, bytes.data, bytes.size, data, space);
    libdeflate_free_compressor(compressor);
    if (!made) {
        output->has_failed = true;
        return err_set(err, ERR_TOO_LARGE, "does not fit in %zu bytes as gzip", output->max_size);
    }
    buf_commit(output, made);
    return ERR_NONE;
}

struct compress_zstd_writer {
    ZSTD_CCtx *context;
};

struct compress_zstd_writer *compress_zstd_writer_create(void)
{
    struct compress_zstd_writer *writer = mem_new(struct compress_zstd_writer, 1);
    writer->context = ZSTD_createCCtx();
    return writer;
}

void compress_zstd_writer_destroy(struct compress_zstd_writer *writer)
{
    if (!writer)
        return;
    ZSTD_freeCCtx(writer->context);
    mem_free(writer);
}

enum err_code compress_zstd_with(struct compress_zstd_writer *writer, struct span bytes, int level,
                                 struct buf *output, struct err *err)
{
    size_t space, made = 0;
    if (!writer->context)
        return err_set(err, ERR_INTERNAL, "no memory for a zstd writer");
    uint8_t *data = reserve_up_to(output, ZSTD_compressBound(bytes.size), &space);
    if (data)
        made = ZSTD_compressCCtx(writer->context, data, space, bytes.data, bytes.size, level);
    if (!data || ZSTD_isError(made)) {
        output->has_failed = true;
        return err_set(err, ERR_TOO_LARGE, "does not fit in %zu bytes as zstd", output->max_size);
    }
    buf_commit(output, made);
    return ERR_NONE;
}

enum err_code compress_zstd(struct span bytes, int level, struct buf *output, struct err *err)
{
    struct compress_zstd_writer *writer = compress_zstd_writer_create();
    enum err_code code = compress_zstd_with(writer, bytes, level, output, err);
    compress_zstd_writer_destroy(writer);
    return code;
}

bool compress_can_expand_to(struct span zstd, size_t flat_size)
{
    /* A block expands to at most 128 KiB and takes at least 4 bytes (RFC 8878, 3.1.1.2). */
    const size_t block_count = zstd.size / 4;
    return flat_size / ZSTD_BLOCKSIZE_MAX <= block_count &&
           ZSTD_getFrameContentSize(zstd.data, zstd.size) == flat_size;
}

bool compress_expand_exact(struct span zstd, uint8_t *flat, size_t flat_size)
{
    const size_t made = ZSTD_decompress(flat, flat_size, zstd.data, zstd.size);
    return !ZSTD_isError(made) && made == flat_size;
}

bool compress_inflate_exact(struct span zlib, uint8_t *flat, size_t flat_size)
{
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    if (!decompressor)
        return false;
    size_t made = 0;
    const enum libdeflate_result result =
        libdeflate_zlib_decompress(decompressor, zlib.data, zlib.size, flat, flat_size, &made);
    libdeflate_free_decompressor(decompressor);
    return result == LIBDEFLATE_SUCCESS && made == flat_size;
}

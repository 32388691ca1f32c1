#include "tests/fuzz/fuzz.h"

#include "lib/base/compress.h"
#include "lib/base/err.h"

enum { OUTPUT_MAX = 1 << 20 };

/* Data survives both kinds of compression. */
static void check_round_trip(struct span plain)
{
    struct err err;
    for (int method = COMPRESS_GZIP; method <= COMPRESS_ZSTD; method++) {
        buf_auto packed, again;
        buf_init(&packed, OUTPUT_MAX * 2);
        buf_init(&again, plain.size);
        enum err_code code = method == COMPRESS_GZIP
                                 ? compress_gzip(plain, COMPRESS_GZIP_FAST, &packed, &err)
                                 : compress_zstd(plain, COMPRESS_ZSTD_FAST, &packed, &err);
        fuzz_check(code == ERR_NONE);
        fuzz_check(compress_expand((enum compress_method)method, buf_span(&packed), &again, &err) ==
                   ERR_NONE);
        fuzz_check(span_equal(plain, buf_span(&again)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span bytes = span_of(data, size);
    struct err err;
    enum compress_method method = compress_sniff(bytes);
    buf_auto output;
    buf_init(&output, OUTPUT_MAX);
    enum err_code code = compress_expand(method, bytes, &output, &err);
    fuzz_check(output.capacity <= OUTPUT_MAX);
    if (code) {
        fuzz_check(fuzz_is_refusal(code, &err));
        fuzz_check(output.size == 0);
        return 0;
    }
    check_round_trip(buf_span(&output));
    /* A maximum of one byte less must be refused, whatever the frames claim. */
    if (output.size && method != COMPRESS_NONE) {
        buf_auto tight;
        buf_init(&tight, output.size - 1);
        fuzz_check(compress_expand(method, bytes, &tight, &err) == ERR_TOO_LARGE);
    }
    return 0;
}

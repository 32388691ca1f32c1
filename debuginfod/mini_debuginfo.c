#include "debuginfod/mini_debuginfo.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <lzma.h>

enum { STEP_BYTES = 1 << 20, DICTIONARY_MAX_BYTES = 256 << 20 };

enum err_code mini_debuginfo_expand(struct span bytes, struct buf *output, struct err *err)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    lzma_ret result = lzma_stream_decoder(&stream, DICTIONARY_MAX_BYTES, LZMA_CONCATENATED);
    stream.next_in = bytes.data;
    stream.avail_in = bytes.size;
    while (result == LZMA_OK) {
        uint8_t *free_bytes = buf_reserve(output, STEP_BYTES);
        if (!free_bytes)
            break;
        stream.next_out = free_bytes;
        stream.avail_out = STEP_BYTES;
        result = lzma_code(&stream, LZMA_FINISH);
        buf_commit(output, STEP_BYTES - stream.avail_out);
    }
    lzma_end(&stream);
    if (result == LZMA_STREAM_END)
        return ERR_NONE;
    if (result == LZMA_OK || result == LZMA_MEMLIMIT_ERROR)
        return err_set(err, ERR_TOO_LARGE, ".gnu_debugdata holds more than the limit of %zu bytes",
                       output->max_size);
    return err_set(err, ERR_INVALID, "the compressed bytes of .gnu_debugdata are damaged");
}

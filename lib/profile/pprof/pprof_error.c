#include "lib/base/err.h"
#include "lib/profile/pprof/pprof_decoder.h"

enum err_code pprof_malformed(struct decoder *decoder, const char *what, uint64_t index)
{
    return err_set(decoder->err, ERR_INVALID,
                   "malformed pprof: %s %llu is cut short or not encoded as expected", what,
                   (unsigned long long)index);
}

enum err_code pprof_wrong_type(struct decoder *decoder, const char *what, uint32_t field)
{
    return err_set(decoder->err, ERR_INVALID,
                   "malformed pprof: field %u of a %s has the wrong wire type", field, what);
}

enum err_code pprof_wrong_string(struct decoder *decoder, const char *what, int64_t index)
{
    return err_set(decoder->err, ERR_INVALID, "malformed pprof: a %s refers to string %lld of %u",
                   what, (long long)index, decoder->string_count);
}

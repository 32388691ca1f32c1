#include "tests/fuzz/fuzz.h"

#include "lib/base/err.h"
#include "lib/profile/pprof/pprof.h"

/* An accepted profile is encoded; decoding and encoding that gives the same bytes. */
static void check_round_trip(const struct profile *profile)
{
    enum { ENCODED_MAX = 64 << 20 };
    struct profile *again;
    struct err err;
    buf_auto first, second;
    buf_init(&first, ENCODED_MAX);
    buf_init(&second, ENCODED_MAX);
    fuzz_check(pprof_encode(profile, &first, &err) == ERR_NONE);
    fuzz_check(pprof_sniff(buf_span(&first)));
    fuzz_check(pprof_decode(buf_span(&first), NULL, &again, &err) == ERR_NONE);
    fuzz_check_profile(again);
    fuzz_check(again->sample_count == profile->sample_count);
    fuzz_check(pprof_encode(again, &second, &err) == ERR_NONE);
    fuzz_check(span_equal(buf_span(&first), buf_span(&second)));
    profile_destroy(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct profile *profile;
    struct err err;
    enum err_code code = pprof_decode(span_of(data, size), &fuzz_limits, &profile, &err);
    if (code) {
        fuzz_check(fuzz_is_refusal(code, &err));
        return 0;
    }
    fuzz_check_profile(profile);
    check_round_trip(profile);
    profile_destroy(profile);
    return 0;
}

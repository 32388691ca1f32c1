#include "tests/fuzz/fuzz.h"

#include "lib/profile/formats/perf_script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_decoder(perf_script_decode, data, size);
}

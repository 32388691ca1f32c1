#include "tests/fuzz/fuzz.h"

#include "lib/profile/formats/speedscope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_decoder(speedscope_decode, data, size);
}

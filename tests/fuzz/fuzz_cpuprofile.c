#include "tests/fuzz/fuzz.h"

#include "lib/profile/formats/cpuprofile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_decoder(cpuprofile_decode, data, size);
}

#include "tests/fuzz/fuzz.h"

#include "lib/profile/formats/folded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_decoder(folded_decode, data, size);
}

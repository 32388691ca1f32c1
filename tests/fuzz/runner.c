/*
 * runner: the libFuzzer entry points of each fuzzer's program, which contains one fuzzer.
 *
 * The program that runs the seeds of all fuzzers has seeds.c instead.
 */
#include "tests/fuzz/fuzz.h"

static struct fuzzer *only_fuzzer;

void fuzzer_register(struct fuzzer *fuzzer)
{
    only_fuzzer = fuzzer;
}

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    return only_fuzzer->initialize ? only_fuzzer->initialize(count, arguments) : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return only_fuzzer->test(data, size);
}

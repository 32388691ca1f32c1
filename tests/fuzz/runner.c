/*
 * runner: the libFuzzer entry points of every fuzzer's program.
 *
 * A program fuzz_x contains one fuzzer. The program "seeds" contains all of them, so that the code
 * under test is linked once for the seeds; its environment variable FUZZER selects one by name.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>

static struct fuzzer *fuzzers;

void fuzzer_register(struct fuzzer *fuzzer)
{
    fuzzer->next = fuzzers;
    fuzzers = fuzzer;
}

/* libFuzzer calls this before any input. Afterwards the list contains only the selected fuzzer. */
int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    const char *name = getenv("FUZZER");
    if (fuzzers->next)
        while (fuzzers && (!name || strcmp(fuzzers->name, name) != 0))
            fuzzers = fuzzers->next;
    if (!fuzzers) {
        fprintf(stderr, "FUZZER must name one of the fuzzers of this program\n");
        exit(EXIT_FAILURE);
    }
    return fuzzers->initialize ? fuzzers->initialize(count, arguments) : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzzers->test(data, size);
}

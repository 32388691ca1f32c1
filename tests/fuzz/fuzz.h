/*
 * fuzz: declarations that all fuzzers share. A fuzzer is one file with LLVMFuzzerTestOneInput. It
 * stops on a sanitizer report or if an invariant does not hold (fuzz_check).
 *
 * The Makefile renames both libFuzzer functions in each file (FUZZ_NAME), and the file registers
 * them with the program: runner.c is the program of one fuzzer, seeds.c that of all their seeds.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/profile.h"

#include <stdio.h>
#include <stdlib.h>

struct fuzzer {
    const char *name; /* "fuzz_pprof" */
    int (*test)(const uint8_t *data, size_t size);
    int (*initialize)(int *count, char ***arguments); /* NULL for most */
    struct fuzzer *next;
};
void fuzzer_register(struct fuzzer *fuzzer);

#ifdef FUZZ_NAME
#define FUZZ_JOIN_AGAIN(a, b) a##b
#define FUZZ_JOIN(a, b) FUZZ_JOIN_AGAIN(a, b)
#define FUZZ_STRING_AGAIN(a) #a
#define FUZZ_STRING(a) FUZZ_STRING_AGAIN(a)
#define LLVMFuzzerTestOneInput FUZZ_JOIN(FUZZ_NAME, _test)
#define LLVMFuzzerInitialize FUZZ_JOIN(FUZZ_NAME, _initialize)
__attribute__((weak)) int LLVMFuzzerInitialize(int *count, char ***arguments);
#endif
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef FUZZ_NAME
__attribute__((constructor)) static void register_fuzzer(void)
{
    static struct fuzzer fuzzer = {.name = FUZZ_STRING(FUZZ_NAME), .test = LLVMFuzzerTestOneInput};
    fuzzer.initialize = LLVMFuzzerInitialize;
    fuzzer_register(&fuzzer);
}
#endif

#define fuzz_check(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Small, so that inputs are fast and reach the limits. */
static const struct profile_limits fuzz_limits = {
    .raw_bytes = 1 << 20,
    .json_bytes = 1 << 20,
    .sample_count = 20000,
    .stack_depth = 2000,
    .stack_entries = 1 << 20,
    .memory_bytes = 64 << 20,
};

/* Whether code is one of the errors that decoders return for invalid input, with a message. */
static inline bool fuzz_is_refusal(enum err_code code, const struct err *err)
{
    return (code == ERR_INVALID || code == ERR_UNSUPPORTED || code == ERR_TOO_LARGE) &&
           code == err->code && err->message[0];
}

/* The invariants of struct profile that every report relies on. */
static inline void fuzz_check_profile(const struct profile *profile)
{
    fuzz_check(profile->value_type_count >= 1);
    fuzz_check(profile->string_count >= 1 && profile->strings[0].size == 0);
    fuzz_check(profile->sample_count <= fuzz_limits.sample_count);
    for (uint32_t i = 0; i < profile->value_type_count; i++)
        fuzz_check(profile->value_types[i].type < profile->string_count &&
                   profile->value_types[i].unit < profile->string_count);
    for (uint32_t i = 0; i < profile->function_count; i++)
        fuzz_check(profile->functions[i].name < profile->string_count &&
                   profile->functions[i].system_name < profile->string_count &&
                   profile->functions[i].filename < profile->string_count);
    for (uint32_t i = 0; i < profile->mapping_count; i++)
        fuzz_check(profile->mappings[i].filename < profile->string_count &&
                   profile->mappings[i].build_id < profile->string_count);
    for (uint32_t i = 0; i < profile->line_count; i++)
        fuzz_check(profile->lines[i].function == PROFILE_NONE ||
                   profile->lines[i].function < profile->function_count);
    for (uint32_t i = 0; i < profile->location_count; i++) {
        const struct profile_location *location = &profile->locations[i];
        fuzz_check(location->mapping == PROFILE_NONE || location->mapping < profile->mapping_count);
        fuzz_check((uint64_t)location->first_line + location->line_count <= profile->line_count);
    }
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        fuzz_check(profile->stack_start[i] <= profile->stack_start[i + 1]);
        fuzz_check(profile->label_start[i] <= profile->label_start[i + 1]);
    }
    uint64_t entry_count = profile->sample_count ? profile->stack_start[profile->sample_count] : 0;
    for (uint64_t i = 0; i < entry_count; i++)
        fuzz_check(profile->stack[i] < profile->location_count);
}

typedef enum err_code fuzz_decode_function(struct span bytes, const struct profile_limits *limits,
                                           struct profile **ret_profile, struct err *err);

/* The body of a fuzzer of one decoder: an input gives a valid profile or is refused. Returns 0, as
 * LLVMFuzzerTestOneInput has to. */
static inline int fuzz_decoder(fuzz_decode_function *decode, const uint8_t *data, size_t size)
{
    struct profile *profile;
    struct err err;
    enum err_code code = decode(span_of(data, size), &fuzz_limits, &profile, &err);
    if (code) {
        fuzz_check(fuzz_is_refusal(code, &err));
        return 0;
    }
    fuzz_check_profile(profile);
    profile_destroy(profile);
    return 0;
}

#endif

/* Names as demanglers may return them, shortened (lib/symbols/symbol_name_format.h). */
#include "tests/fuzz/fuzz.h"

#include "lib/symbols/symbol_name_format.h"
#include "lib/symbols/symbol_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct symbol_name name = {.full = span_of(data, size), .linkage = SPAN_LITERAL("_Z1f")};
    buf_auto output;
    buf_init(&output, size + 1);
    symbol_name_format_append(&name, SYMBOL_NAME_FORMAT_SIMPLE, &output);
    fuzz_check(!buf_failed(&output) && output.size <= size && (output.size || size == 0));
    return 0;
}

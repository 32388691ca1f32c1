#include "tests/fuzz/fuzz.h"

#include "lib/base/err.h"
#include "lib/io/s3_xml.h"

/* Paths and texts stay within their limits, and the root ends last. */
static enum err_code check_element(void *context, const char *path, struct span text,
                                   struct err *err)
{
    size_t *root_count = context;
    (void)err;
    fuzz_check(*root_count == 0);
    fuzz_check(path[0] && strlen(path) < S3_XML_MAX_PATH_BYTES);
    fuzz_check(text.size <= S3_XML_MAX_TEXT_BYTES);
    fuzz_check(text.size == 0 || span_trim(text).size == text.size);
    *root_count += !strchr(path, '/');
    (void)s3_xml_time(text);
    return ERR_NONE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err;
    size_t root_count = 0;
    enum err_code code = s3_xml_read(span_of(data, size), check_element, &root_count, &err);
    fuzz_check(code ? fuzz_is_refusal(code, &err) : root_count == 1);
    return 0;
}

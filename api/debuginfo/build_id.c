#include "api/debuginfo/build_id.h"

#include "api/http/request.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/symbols/symbol_table_facts.h"

#include <string.h>

static bool is_hex(struct span text)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (!((byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') ||
              (byte >= 'A' && byte <= 'F')))
            return false;
    }
    return text.size % 2 == 0;
}

bool build_id_normalize(struct span build_id, char ret_id[BUILD_ID_BYTES])
{
    bool is_hexadecimal = is_hex(build_id);
    if (build_id.size == 0 || build_id.size >= BUILD_ID_BYTES ||
        (!is_hexadecimal && build_id.size > SYMBOL_ID_MAX_BYTES))
        return false;
    if (!is_hexadecimal) {
        digest_hex(build_id, ret_id);
        return true;
    }
    for (size_t i = 0; i < build_id.size; i++) {
        uint8_t byte = build_id.data[i];
        ret_id[i] = (char)(byte >= 'A' && byte <= 'F' ? byte + ('a' - 'A') : byte);
    }
    ret_id[build_id.size] = '\0';
    return true;
}

enum err_code build_id_of_path(const struct request *request, char ret_id[BUILD_ID_BYTES],
                               struct err *err)
{
    const struct span text = request->path_params[0];
    /* Go's own text is longer in hexadecimal: only a hexadecimal id keeps its length. */
    if (!build_id_normalize(text, ret_id) || strlen(ret_id) != text.size)
        return err_set(err, ERR_INVALID,
                       "a build id is an even number of hexadecimal digits, at most %d",
                       BUILD_ID_BYTES - 1);
    return ERR_NONE;
}

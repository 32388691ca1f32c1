#include "lib/input/secret.h"

#include "lib/base/err.h"

#include <stdbool.h>

static bool is_control(uint8_t byte)
{
    return (byte < ' ' && byte != '\t') || byte == 0x7f;
}

enum err_code secret_check(struct span secret, const char *source, struct err *err)
{
    for (size_t i = 0; i < secret.size; i++) {
        if (is_control(secret.data[i]))
            return err_set(err, ERR_INVALID,
                           "%s holds a control character (0x%02x) as its byte %zu, which cannot be "
                           "sent: copy the secret again, without line breaks and colours",
                           source, secret.data[i], i + 1);
    }
    return ERR_NONE;
}

enum err_code secret_check_token(struct span token, const char *source, struct err *err)
{
    for (size_t i = 0; i < token.size; i++) {
        const uint8_t byte = token.data[i];
        if (byte > ' ' && byte < 0x7f)
            continue;
        return err_set(err, ERR_INVALID,
                       "%s holds %s (0x%02x) as its byte %zu, but a token has only visible ASCII "
                       "characters: copy the token again",
                       source,
                       byte == ' '    ? "a blank"
                       : byte >= 0x80 ? "a character that is not ASCII"
                                      : "a control character",
                       byte, i + 1);
    }
    return ERR_NONE;
}

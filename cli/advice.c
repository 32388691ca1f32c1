#include "cli/advice.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdio.h>
#include <string.h>

#define SET_TOKEN "run `perfolio login URL`, or set PERFOLIO_TOKEN"

/* A text precedes the texts that it contains. */
static const struct {
    const char *server;
    const char *here;
} words[] = {
    {"Sign in, or send a token as \"Authorization: Bearer pf_…\"",
     "this needs a token: " SET_TOKEN},
    {"Credentials must be sent as \"Authorization: Bearer pf_…\"",
     "the token must begin with pf_: " SET_TOKEN},
    {": sign in or send a token, or share it unlisted",
     ": " SET_TOKEN ", or use --visibility unlisted"},
    {": send it in the header X-Perfolio-Password",
     ": give a file that contains it with --password-file FILE, or - for standard input"},
    {"; it is sent in the header X-Perfolio-Password", ""},
    {"X-Perfolio-Password was sent", "--password-file was given"},
    {"set visibility=password", "use --visibility password"},
    {"needs its team's token, a session or its delete token in X-Perfolio-Delete-Token",
     "needs its team's token (" SET_TOKEN ") or its delete link (LINK/delete#TOKEN)"},
    {": send its token in X-Perfolio-Upload-Token", ": push the file again"},
    {"The field \"", "\""},
    {"the parameter ", ""},
};

/* Replaces each text once; none of them occurs twice in a message. */
static void replace(struct err *err, const char *from, const char *to)
{
    char *at = strstr(err->message, from);
    if (!at)
        return;
    char rest[ERR_MESSAGE_BYTES];
    const size_t space = sizeof(err->message) - (size_t)(at - err->message);
    snprintf(rest, sizeof(rest), "%s", at + strlen(from));
    snprintf(at, space, "%s%s", to, rest);
}

void advice_translate(struct err *err)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        replace(err, words[i].server, words[i].here);
}

#include "cli/admin/admin.h"
#include "cli/admin/admin_table.h"
#include "lib/base/arena.h"

const struct admin_call *admin_find_call(struct admin *admin)
{
    for (size_t i = 0; i < admin_call_count; i++) {
        const struct admin_call *call = &admin_calls[i];
        if (strcmp(call->noun, admin->noun) != 0)
            continue;
        if (!call->verb)
            return call;
        if (admin->arguments.count && strcmp(call->verb, admin->arguments.texts[0]) == 0) {
            admin->verb = call->verb;
            admin->arguments.texts++;
            admin->arguments.count--;
            return call;
        }
    }
    return NULL;
}

/* The names that the typed one may have been meant to be: the verbs of admin->noun if that exists
 * (*ret_is_noun), else all nouns. NULL-terminated. */
static const char *const *list_candidates(const struct admin *admin, bool *ret_is_noun)
{
    size_t count = 0, program_count = 0;
    while (admin_programs[program_count].noun)
        program_count++;
    const char **names =
        arena_new(admin->cli->arena, const char *, admin_call_count + program_count + 1);
    *ret_is_noun = false;
    for (size_t i = 0; i < admin_call_count; i++) {
        if (strcmp(admin_calls[i].noun, admin->noun) == 0 && admin_calls[i].verb) {
            *ret_is_noun = true;
            names[count++] = admin_calls[i].verb;
        }
    }
    if (*ret_is_noun)
        return names;
    for (size_t i = 0; i < admin_call_count; i++)
        names[count++] = admin_calls[i].noun;
    for (size_t i = 0; i < program_count; i++)
        names[count++] = admin_programs[i].noun;
    return names;
}

enum err_code admin_refuse(struct admin *admin, struct err *err)
{
    bool is_noun;
    const char *const *names = list_candidates(admin, &is_noun);
    const char *typed = !is_noun                 ? admin->noun
                        : admin->arguments.count ? admin->arguments.texts[0]
                                                 : "";
    if (is_noun && !typed[0])
        return cli_usage(
            admin->cli, err,
            "perfolio admin %.60s needs a command; perfolio admin help %.60s lists them",
            admin->noun, admin->noun);
    const char *advice = cli_did_you_mean(admin->cli, typed, names);
    return cli_usage(admin->cli, err, "perfolio admin has no command \"%.60s%s%.60s\"%s",
                     admin->noun, is_noun ? " " : "", is_noun ? typed : "",
                     advice[0] ? advice : "; perfolio admin help lists all");
}

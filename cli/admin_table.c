#include "cli/admin_table.h"

#include <string.h>

#define TENANTS "/api/v1/admin/tenants"

/* clang-format off */
const struct admin_call admin_calls[] = {
    {.noun = "tenant", .verb = "list",
     .summary = "list the server's tenants",
     .method = "GET", .path = TENANTS,
     .uses = IS_PAGED,
     .columns = {"id", "name", "created_at", "usage.users", "usage.bytes_stored", "quotas.max_bytes_stored"}},
    {.noun = "tenant", .verb = "create",
     .arguments = "NAME",
     .summary = "make a tenant and print its number",
     .method = "POST", .path = TENANTS,
     .field = "name",
     .result = "id"},
    {.noun = "tenant", .verb = "show",
     .arguments = "ID",
     .summary = "show a tenant with its usage and limits",
     .method = "GET", .path = TENANTS "/%s",
     .uses = TAKES_ID},
    {.noun = "tenant", .verb = "set",
     .arguments = "ID KEY=VALUE...",
     .summary = "change its name or limits",
     .method = "PATCH", .path = TENANTS "/%s",
     .uses = TAKES_ID | TAKES_PAIRS},
    {.noun = "tenant", .verb = "delete",
     .arguments = "ID --yes",
     .summary = "delete a tenant and all that it has",
     .method = "DELETE", .path = TENANTS "/%s",
     .uses = TAKES_ID | NEEDS_YES},
    {.noun = "user", .verb = "list",
     .arguments = "[--tenant ID]",
     .summary = "list the users of your tenant, or of another one",
     .method = "GET", .path = "/api/v1/users",
     .tenant_path = TENANTS "/%s/users",
     .uses = MAY_HAVE_TENANT,
     .columns = {"id", "email", "name", "role", "created_at", "last_sign_in_at"}},
    {.noun = "user", .verb = "add",
     .arguments = "EMAIL --tenant ID [--role ROLE] [--name TEXT]",
     .summary = "add a user to a tenant and print a sign-in link",
     .method = "POST", .path = TENANTS "/%s/users",
     .field = "email",
     .uses = NEEDS_TENANT | TAKES_ROLE | TAKES_NAME,
     .result = "login_url"},
    {.noun = "user", .verb = "role",
     .arguments = "ID ROLE",
     .summary = "make a user owner, member or viewer",
     .method = "PATCH", .path = "/api/v1/users/%s",
     .field = "role",
     .uses = TAKES_ID},
    {.noun = "user", .verb = "remove",
     .arguments = "ID [--tenant ID]",
     .summary = "remove a user from your tenant, or from another one",
     .method = "DELETE", .path = "/api/v1/users/%s",
     .tenant_path = TENANTS "/%s/users/%s",
     .uses = TAKES_ID | MAY_HAVE_TENANT},
    {.noun = "token", .verb = "list",
     .arguments = "[--tenant ID]",
     .summary = "list the tokens of your tenant, or of another one",
     .method = "GET", .path = "/api/v1/tokens",
     .tenant_path = TENANTS "/%s/tokens",
     .uses = MAY_HAVE_TENANT,
     .columns = {"id", "name", "scopes", "created_at", "last_used_at", "expires_at"}},
    {.noun = "token", .verb = "create",
     .arguments = "NAME [--scopes A,B] [--expires TIME] [--tenant ID]",
     .summary = "make a token and print it",
     .method = "POST", .path = "/api/v1/tokens",
     .tenant_path = TENANTS "/%s/tokens",
     .field = "name",
     .uses = MAY_HAVE_TENANT | TAKES_SCOPES | TAKES_EXPIRES,
     .result = "token"},
    {.noun = "token", .verb = "revoke",
     .arguments = "ID [--tenant ID]",
     .summary = "revoke a token",
     .method = "DELETE", .path = "/api/v1/tokens/%s",
     .tenant_path = TENANTS "/%s/tokens/%s",
     .uses = TAKES_ID | MAY_HAVE_TENANT},
    {.noun = "invite", .verb = "create",
     .arguments = "EMAIL [--role ROLE]",
     .summary = "invite someone and print the link",
     .method = "POST", .path = "/api/v1/invitations",
     .field = "email",
     .uses = TAKES_ROLE,
     .result = "url"},
    {.noun = "invite", .verb = "list",
     .summary = "list open invitations",
     .method = "GET", .path = "/api/v1/invitations",
     .columns = {"id", "email", "role", "created_at", "expires_at"}},
    {.noun = "invite", .verb = "revoke",
     .arguments = "ID",
     .summary = "take an invitation back",
     .method = "DELETE", .path = "/api/v1/invitations/%s",
     .uses = TAKES_ID},
    {.noun = "login-link",
     .arguments = "[EMAIL]",
     .summary = "make a one-time sign-in link",
     .method = "POST", .path = "/api/v1/admin/login-codes",
     .field = "email",
     .uses = IS_OPTIONAL,
     .result = "url"},
    {.noun = "report", .verb = "list",
     .summary = "list what viewers reported",
     .method = "GET", .path = "/api/v1/admin/reports",
     .uses = IS_PAGED,
     .columns = {"id", "share_id", "created_at", "reason"}},
    {.noun = "report", .verb = "close",
     .arguments = "ID",
     .summary = "mark a report as dealt with",
     .method = "POST", .path = "/api/v1/admin/reports/%s/close",
     .uses = TAKES_ID},
    {.noun = "share", .verb = "takedown",
     .arguments = "LINK --reason TEXT",
     .summary = "take a share down",
     .method = "POST", .path = "/api/v1/admin/shares/%s/takedown",
     .uses = TAKES_LINK | TAKES_REASON},
    {.noun = "audit",
     .summary = "show who did what in your tenant",
     .method = "GET", .path = "/api/v1/audit",
     .uses = IS_PAGED,
     .columns = {"at", "actor", "action", "target", "address"}},
};
/* clang-format on */

const size_t admin_call_count = sizeof(admin_calls) / sizeof(admin_calls[0]);

#define SETTINGS_TEXT                                                                              \
    "It runs perfoliod, which must be installed on this machine, with these arguments. The\n"      \
    "settings are the server's own, such as --data-dir; perfoliod(8) has them all."

const struct admin_program admin_programs[] = {
    {.noun = "backup",
     .arguments = "[SETTINGS] FOLDER",
     .summary = "copy the server's database and profiles to a new folder, while it serves",
     .text = SETTINGS_TEXT},
    {.noun = "restore",
     .arguments = "[SETTINGS] FOLDER",
     .summary = "make the server's data folder, absent or empty, from a backup",
     .text = SETTINGS_TEXT},
    {0},
};

unsigned admin_option_uses(const char *name)
{
    static const struct {
        const char *name;
        unsigned uses;
    } options[] = {
        {"tenant", NEEDS_TENANT | MAY_HAVE_TENANT},
        {"role", TAKES_ROLE},
        {"scopes", TAKES_SCOPES},
        {"expires", TAKES_EXPIRES},
        {"reason", TAKES_REASON},
        {"name", TAKES_NAME},
        {"yes", NEEDS_YES},
    };
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (strcmp(options[i].name, name) == 0)
            return options[i].uses;
    }
    return 0;
}

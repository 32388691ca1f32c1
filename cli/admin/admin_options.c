#include "cli/admin/admin.h"
#include "lib/base/err.h"

#include <string.h>

/* The server reads a number without a unit as seconds; a user probably means days. */
static enum err_code take_duration(void *values, const struct option_row *row, const char *duration,
                                   struct err *err)
{
    if (*duration && strspn(duration, "0123456789") == strlen(duration))
        return options_refuse(row, duration, err);
    memcpy((char *)values + row->offset, &duration, sizeof(duration));
    return ERR_NONE;
}

/* A duration that needs a unit. */
#define DURATION(member)                                                                           \
    .take = take_duration, OPTION_MEMBER(struct admin, member, const char *),                      \
    .error = "{value} has no unit: write {value}d for days or {value}s for seconds"

const struct option_row admin_options[] = {
    {"tenant", 0, "ID", "Tenant to act on, by its number", OPTION_TEXT(struct admin, tenant)},
    {"role", 0, "ROLE", "owner, member or viewer", OPTION_TEXT(struct admin, role)},
    {"scopes", 0, "A,B", "Scopes of a new token, such as ingest,debuginfo (share,read)",
     OPTION_TEXT(struct admin, scopes)},
    {"expires", 0, "TIME", "Lifetime of a new token: 30d, 8w or never",
     OPTION_TEXT(struct admin, expires)},
    {"reason", 0, "TEXT", "Why a share is taken down", OPTION_TEXT(struct admin, reason)},
    {"name", 0, "TEXT", "Name of a new user", OPTION_TEXT(struct admin, name)},
    {"start", 0, "TIME", "Start of the window (the oldest profile)",
     OPTION_TEXT(struct admin, start)},
    {"end", 0, "TIME", "End of the window, exclusive (after the newest profile)",
     OPTION_TEXT(struct admin, end)},
    {"keep", 0, "DURATION", "How long a rule keeps profiles: 3d, 90d, 1y or forever",
     DURATION(keep)},
    {"totals", 0, "DURATION", "How long a rule keeps hourly totals", DURATION(totals)},
    {"position", 0, "N", "Position of a rule; 1 is the first (unchanged, or last)",
     OPTION_TEXT(struct admin, position)},
    {"yes", 0, NULL, "Confirm an action that cannot be undone",
     OPTION_FLAG(struct admin, is_confirmed)},
    {"json", 0, NULL, "Print the response of the server", OPTION_FLAG(struct admin, is_json)},
    {0},
};

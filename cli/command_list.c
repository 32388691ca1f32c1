#include "cli/cli.h"

const struct command *const cli_commands[] = {
    &record_command, &push_command,       &diff_command,      &top_command,    &query_command,
    &export_command, &usage_command,      &get_command,       &delete_command, &list_command,
    &open_command,   &merge_command,      &debuginfo_command, &login_command,  &logout_command,
    &admin_command,  &completion_command, &version_command,   &help_command,   NULL,
};

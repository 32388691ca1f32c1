#include "cli/record/empty_recording.h"

#include "lib/base/err.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Searches PATH like execvp(3), where an empty entry is the current folder. */
static bool find_program(const char *name, char path[PATH_MAX])
{
    char usual[PATH_MAX] = "";
    const char *folders = getenv("PATH");
    if (!folders && confstr(_CS_PATH, usual, sizeof(usual)))
        folders = usual;
    struct span rest = span_text(folders ? folders : ""), folder;
    if (strchr(name, '/'))
        return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
    bool has_more;
    do {
        has_more = span_split(rest, ':', &folder, &rest);
        if (folder.size < PATH_MAX &&
            snprintf(path, PATH_MAX, "%.*s%s%s", SPAN_PRINT(folder), folder.size ? "/" : "", name) <
                PATH_MAX &&
            access(path, X_OK) == 0)
            return true;
    } while (has_more);
    return false;
}

/* The reason for which the kernel removes perf events when this user executes the program; NULL:
 * none. */
static const char *why_refused(const char *name)
{
    char path[PATH_MAX];
    struct stat status;
    if (!find_program(name, path) || stat(path, &status))
        return NULL;
    if ((status.st_mode & S_ISUID && status.st_uid != geteuid()) ||
        (status.st_mode & S_ISGID && status.st_gid != getegid()))
        return "it runs with another user's rights (setuid or setgid)";
    if (getxattr(path, "security.capability", NULL, 0) > 0)
        return "its file gives it capabilities";
    return access(path, R_OK) ? "its file can be executed but not read" : NULL;
}

static const char *who_used(const struct empty_recording *recording)
{
    if (recording->command)
        return "the program used no";
    if (recording->target_count)
        return recording->target_count == 1 ? "the process used no" : "the processes used no";
    return "no process used";
}

enum err_code empty_recording_explain(const struct empty_recording *recording, struct err *err)
{
    const char *why = recording->is_unprivileged && recording->command
                          ? why_refused(recording->command[0])
                          : NULL;
    if (why)
        return err_set(err, ERR_NOT_FOUND,
                       "no sample was taken: sampling %s needs CAP_PERFMON, because "
                       "%s",
                       recording->command[0], why);
    if (!event_kind_is_time(recording->event))
        return err_set(err, ERR_NOT_FOUND,
                       "no sample was taken: no such events occurred, or too few for %u Hz",
                       recording->frequency_hz);
    return err_set(err, ERR_NOT_FOUND, "no sample was taken: %s CPU time, or too little for %u Hz",
                   who_used(recording), recording->frequency_hz);
}

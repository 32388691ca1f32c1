#include "api/core/os_user.h"

#include "lib/base/err.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void fill_user(const struct passwd *entry, struct os_user *account)
{
    account->uid = entry->pw_uid;
    account->gid = entry->pw_gid;
    snprintf(account->name, sizeof(account->name), "%s", entry->pw_name);
}

enum err_code os_user_find(const char *name, struct os_user *ret_account, struct err *err)
{
    struct passwd entry, *found = NULL;
    char text[4096];
    getpwnam_r(name, &entry, text, sizeof(text), &found);
    if (!found)
        return err_set(
            err, ERR_NOT_FOUND,
            "there is no user \"%s\", and the server does not run as root: run \"make deps\" as "
            "root, or \"useradd --system --user-group %s\"",
            name, name);
    if (entry.pw_uid == 0)
        return err_set(err, ERR_NOT_FOUND, "the user \"%s\" is root by another name", name);
    fill_user(&entry, ret_account);
    return ERR_NONE;
}

enum err_code os_user_of_uid(uid_t uid, struct os_user *ret_account, struct err *err)
{
    struct passwd entry, *found = NULL;
    char text[4096];
    getpwuid_r(uid, &entry, text, sizeof(text), &found);
    if (!found)
        return err_set(err, ERR_NOT_FOUND,
                       "the user id %u has no name; PostgreSQL needs the name of its user",
                       (unsigned)uid);
    fill_user(&entry, ret_account);
    return ERR_NONE;
}

enum err_code os_user_become(const struct os_user *account, struct err *err)
{
    if (geteuid() == account->uid && getuid() == account->uid && account->uid != 0)
        return ERR_NONE;
    if (initgroups(account->name, account->gid) != 0 ||
        setresgid(account->gid, account->gid, account->gid) != 0 ||
        setresuid(account->uid, account->uid, account->uid) != 0)
        return err_set_errno(err, ERR_FORBIDDEN, "cannot become the user %s", account->name);
    return ERR_NONE;
}

bool os_user_can_enter(const struct os_user *account, const char *path)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct err err;
        _exit(os_user_become(account, &err) != ERR_NONE || chdir(path) != 0);
    }
    int status = 1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

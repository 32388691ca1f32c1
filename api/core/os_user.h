/*
 * os_user: the operating system users that perfoliod's processes run as.
 *
 * If root starts perfoliod, PostgreSQL and the server run as two unprivileged users; otherwise
 * everything runs as the user who starts it. Threads: any; os_user_become is for a forked child.
 */
#ifndef API_CORE_OS_USER_H
#define API_CORE_OS_USER_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <sys/types.h>

enum { OS_USER_NAME_BYTES = 64 };

struct os_user {
    uid_t uid;
    gid_t gid;
    char name[OS_USER_NAME_BYTES];
};

/* Errors: ERR_NOT_FOUND, whose message states how to create the user. */
enum err_code os_user_find(const char *name, struct os_user *ret_account, struct err *err) MUST_USE;
enum err_code os_user_of_uid(uid_t uid, struct os_user *ret_account, struct err *err) MUST_USE;

/* Changes to the user's groups and ids permanently; does nothing if this process has them already.
 */
enum err_code os_user_become(const struct os_user *account, struct err *err) MUST_USE;

/* Whether the user can enter the folder path. Tested in a child process. */
bool os_user_can_enter(const struct os_user *account, const char *path);

#endif

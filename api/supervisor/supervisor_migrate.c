#include "api/supervisor/supervisor_state.h"

#include "api/core/child_process.h"
#include "api/core/os_user.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STOP_CHECK_MS = 100 };

static void read_admin_token(struct supervisor *supervisor)
{
    char text[DIGEST_TOKEN_BYTES + 8];
    fd_auto fd = openat(supervisor->folder.fd, "admin.token", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text));
    struct span token = span_trim(span_of(text, size < 0 ? 0 : (size_t)size));
    if (token.size < DIGEST_TOKEN_BYTES)
        snprintf(supervisor->admin_token, sizeof(supervisor->admin_token), "%.*s",
                 SPAN_PRINT(token));
}

/* Makes it readable for the user who typed sudo. */
static enum err_code give_to_sudo_user(int fd, struct err *err)
{
    const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");
    uint64_t uid_number, gid_number;
    if (geteuid() != 0 || !uid || !gid || !span_parse_u64(span_text(uid), &uid_number) ||
        !span_parse_u64(span_text(gid), &gid_number))
        return ERR_NONE;
    if (fchown(fd, (uid_t)uid_number, (gid_t)gid_number) != 0)
        return err_set_errno(err, ERR_IO, "cannot give admin.token to user %s", uid);
    return ERR_NONE;
}

static enum err_code write_admin_token(const struct supervisor *supervisor, struct err *err)
{
    int folder_fd = supervisor->folder.fd;
    char text[DIGEST_TOKEN_BYTES + 2];
    int size = snprintf(text, sizeof(text), "%s\n", supervisor->admin_token);
    unlinkat(folder_fd, "admin.token.new", 0);
    fd_auto fd =
        os_openat(folder_fd, "admin.token.new", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd < 0 || os_write_all(fd, text, (size_t)size) != 0 || os_fsync(fd) != 0)
        return err_set_errno(err, ERR_IO, "cannot write %s/admin.token", supervisor->folder.path);
    enum err_code code = give_to_sudo_user(fd, err);
    if (!code && os_renameat(folder_fd, "admin.token.new", folder_fd, "admin.token") != 0)
        code = err_set_errno(err, ERR_IO, "cannot write %s/admin.token", supervisor->folder.path);
    return code;
}

/* The database may delay the child for long: a signal to stop ends it, and nothing is lost. */
static void wait_for_child(pid_t pid, int fd)
{
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    while (poll(&readable, 1, STOP_CHECK_MS) == 0) {
        if (child_process_is_stop_wanted()) {
            kill(pid, SIGTERM);
            return;
        }
    }
}

/* Reads two lines: the token for D/admin.token, and the one-time sign-in code. */
static enum err_code take_bootstrap(struct supervisor *supervisor, pid_t pid, int fd,
                                    struct err *err)
{
    char text[256];
    size_t size = 0;
    wait_for_child(pid, fd);
    for (ssize_t got; size < sizeof(text) && (got = read(fd, text + size, sizeof(text) - size));) {
        if (got < 0 && errno != EINTR)
            return err_set_errno(err, ERR_IO, "cannot read from a child");
        size += got > 0 ? (size_t)got : 0;
    }
    if (size == 0 && child_process_is_stop_wanted())
        return ERR_NONE;
    struct span rest = span_of(text, size), token, code;
    if (!span_take_line(&rest, &token) || !span_take_line(&rest, &code) ||
        token.size >= sizeof(supervisor->admin_token) ||
        code.size >= sizeof(supervisor->login_code))
        return err_set(err, ERR_DATABASE, "preparing the database failed; see the messages above");
    bool is_new = !span_equal_text(token, supervisor->admin_token);
    snprintf(supervisor->admin_token, sizeof(supervisor->admin_token), "%.*s", SPAN_PRINT(token));
    snprintf(supervisor->login_code, sizeof(supervisor->login_code), "%.*s", SPAN_PRINT(code));
    return is_new ? write_admin_token(supervisor, err) : ERR_NONE;
}

enum err_code supervisor_migrate(struct supervisor *supervisor, struct err *err)
{
    int to_child[2], from_child[2], kept[1];
    if (pipe2(to_child, O_CLOEXEC) != 0)
        return err_set_errno(err, ERR_IO, "cannot make a pipe");
    if (pipe2(from_child, O_CLOEXEC) != 0) {
        err_set_errno(err, ERR_IO, "cannot make a pipe");
        close(to_child[0]);
        close(to_child[1]);
        return ERR_IO;
    }
    read_admin_token(supervisor);
    const char *const arguments[] = {"perfoliod", "migrate-child", supervisor->postgres.socket_dir,
                                     NULL};
    pid_t pid = 0;
    bool is_success = false;
    enum err_code code =
        supervisor_start_self(supervisor,
                              &(struct child_process_options){
                                  .arguments = arguments,
                                  .account = &supervisor->folder.database,
                                  .stdin_fd = to_child[0],
                                  .stdout_fd = from_child[1],
                                  .kept_fds = kept,
                                  .kept_fd_count = supervisor_add_folder_fd(supervisor, kept, 0)},
                              &pid, err);
    close(to_child[0]);
    close(from_child[1]);
    if (!code &&
        os_write_all(to_child[1], supervisor->admin_token, strlen(supervisor->admin_token)) != 0)
        code = err_set_errno(err, ERR_IO, "cannot write to a child");
    close(to_child[1]);
    if (!code)
        code = take_bootstrap(supervisor, pid, from_child[0], err);
    close(from_child[0]);
    struct err wait_err;
    if (pid > 0 && child_process_wait(pid, &is_success, code ? &wait_err : err) && !code)
        code = err->code;
    return code;
}

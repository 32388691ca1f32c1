#include "api/supervisor/supervisor.h"

#include "api/core/child_process.h"
#include "api/core/disk.h"
#include "api/core/object_store_setup.h"
#include "api/core/settings.h"
#include "api/core/settings_value.h"
#include "api/http/tls_files.h"
#include "api/supervisor/supervisor_state.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CERTIFICATE_CHECK_S = 3600,
    STOP_GRACE_MS = 10000, /* beyond shutdown-timeout: for the last round of background work */
    SAME_STOP_MS = 1000,   /* a further signal within this time is not a second Ctrl-C */
    DATABASE_LOG_MAX_BYTES = 16 << 20,
    EXTRA_CONNECTIONS = 16, /* background work, the watch, backup, psql, and those for superusers */
};

static void make_absolute(char **path)
{
    char working[PATH_MAX], absolute[2 * PATH_MAX];
    if (!**path || **path == '/' || strcmp(*path, "-") == 0 || !getcwd(working, sizeof(working)))
        return;
    snprintf(absolute, sizeof(absolute), "%s/%s", working, *path);
    settings_value_set_text(path, absolute);
}

/* Waits for the first start, so that the printed addresses work. */
static enum err_code start_first_server(struct supervisor *supervisor, struct err *err)
{
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0)
        return err_set_errno(err, ERR_IO, "cannot make a pipe");
    enum err_code code = supervisor_start_server(supervisor, ready[1], err);
    close(ready[1]);
    struct pollfd wait = {.fd = ready[0], .events = POLLIN};
    while (!code && poll(&wait, 1, 100) <= 0)
        if (child_process_is_stop_wanted())
            break;
    char byte;
    if (!code && wait.revents && read(ready[0], &byte, 1) != 1)
        code =
            err_set(err, ERR_INTERNAL, "the server ended while it started; see the messages above");
    close(ready[0]);
    return code;
}

/* ---- preparing ---- */

/* PostgreSQL's own log, restarted when it has grown large; our standard error if that fails. */
static int open_database_log(const struct data_folder *folder)
{
    struct stat status;
    if (fstatat(folder->fd, "postgres.log", &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        status.st_size > DATABASE_LOG_MAX_BYTES)
        renameat(folder->fd, "postgres.log", folder->fd, "postgres.log.old");
    return openat(folder->fd, "postgres.log",
                  O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* PostgreSQL keeps its file open, so its log is copied and emptied in place: each write appends at
 * the present end. A line written between the two is lost. */
static void bound_database_log(struct supervisor *supervisor)
{
    const struct data_folder *folder = &supervisor->folder;
    int log_fd = supervisor->postgres.log_fd;
    struct stat status;
    if (log_fd <= 0 || fstat(log_fd, &status) != 0 || status.st_size <= DATABASE_LOG_MAX_BYTES)
        return;
    fd_auto from = openat(folder->fd, "postgres.log", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    fd_auto to = openat(folder->fd, "postgres.log.old",
                        O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    /* The newest part, in case it has grown by much more since the last check. */
    off_t offset = status.st_size - DATABASE_LOG_MAX_BYTES;
    ssize_t copied = 1;
    while (from >= 0 && to >= 0 && copied > 0)
        copied = sendfile(to, from, &offset, DATABASE_LOG_MAX_BYTES);
    /* A log that could not be copied stays, up to a larger limit: the disk may be full. */
    bool is_kept = from >= 0 && to >= 0 && copied == 0;
    if (!is_kept && status.st_size <= 4 * (off_t)DATABASE_LOG_MAX_BYTES)
        return;
    if (ftruncate(log_fd, 0) == 0)
        log_event(LOG_INFO, "restarted the database's log file", "old=postgres.log.old bytes=%lld",
                  (long long)status.st_size);
}

static enum err_code prepare_cluster(struct supervisor *supervisor, struct err *err)
{
    struct postgres *postgres = &supervisor->postgres;
    const struct data_folder *folder = &supervisor->folder;
    postgres->account = folder->database;
    postgres->server_account = folder->server;
    postgres->kept_fd = folder->needs_fd ? folder->fd : -1;
    postgres->max_connections = supervisor->settings->database_connections + EXTRA_CONNECTIONS;
    snprintf(postgres->path, sizeof(postgres->path), "%s/pg", folder->path);
    snprintf(postgres->child_path, sizeof(postgres->child_path), "%s/pg", folder->child_path);
    postgres->log_fd = open_database_log(folder);
    enum err_code code = data_folder_make_socket_dir(folder, postgres->socket_dir,
                                                     sizeof(postgres->socket_dir), err);
    if (code)
        return code;
    code = postgres_stop_orphan(postgres, err);
    if (code)
        return code;
    code = postgres_prepare(postgres, err);
    if (code)
        return code;
    return postgres_start(postgres, err);
}

static enum err_code prepare_folders(struct supervisor *supervisor, struct err *err)
{
    const struct data_folder *folder = &supervisor->folder;
    enum err_code code = data_folder_make(folder, "objects", &folder->server, 0700, err);
    if (code)
        return code;
    if (object_store_setup_are_in_s3(supervisor->settings))
        code = data_folder_make(folder, "copies", &folder->server, 0700, err);
    if (code)
        return code;
    return data_folder_make(folder, "tls", &folder->ours, 0755, err);
}

/* Children read settings from here, with paths that they can use. */
static void prepare_environment(struct supervisor *supervisor)
{
    struct settings *settings = supervisor->settings;
    char path[PATH_MAX + 32];
    const char *name = *supervisor->custom_cert ? "custom" : "server";
    settings_value_set_text(&settings->data_dir, supervisor->folder.child_path);
    snprintf(path, sizeof(path), "%s/tls/%s.crt", supervisor->folder.child_path, name);
    settings_value_set_text(&settings->tls_cert, path);
    snprintf(path, sizeof(path), "%s/tls/%s.key", supervisor->folder.child_path, name);
    settings_value_set_text(&settings->tls_key, path);
    /* Root's home is inaccessible to the children, and libpq fails if it may not look for files
     * there. */
    if (geteuid() == 0)
        setenv("HOME", "/nonexistent", 1);
    supervisor->environment = settings_to_environment(settings);
}

static enum err_code prepare_start(struct supervisor *supervisor, struct err *err)
{
    bool is_new;
    struct settings *settings = supervisor->settings;
    make_absolute(&settings->access_log);
    supervisor->custom_cert = mem_strdup(settings->tls_cert);
    supervisor->custom_key = mem_strdup(settings->tls_key);
    supervisor->has_cluster = !*settings->database_url;
    enum err_code code = object_store_setup_prepare(settings, err);
    if (code)
        return code;
    code = data_folder_open(settings->data_dir, supervisor->has_cluster, &supervisor->folder, err);
    if (code)
        return code;
    supervisor_release_reserve(&supervisor->folder);
    code = supervisor_open_listeners(supervisor, err);
    if (code)
        return code;
    code = prepare_folders(supervisor, err);
    if (code)
        return code;
    code = supervisor_refresh_certificates(supervisor, &is_new, err);
    if (code)
        return code;
    code = supervisor_prepare_access_log(supervisor, err);
    if (code)
        return code;
    prepare_environment(supervisor);
    if (supervisor->has_cluster && !child_process_is_stop_wanted())
        code = prepare_cluster(supervisor, err);
    if (code)
        return code;
    if (!child_process_is_stop_wanted())
        code = supervisor_migrate(supervisor, err);
    if (code)
        return code;
    if (!child_process_is_stop_wanted())
        code = start_first_server(supervisor, err);
    return code;
}

/* The program with that name beside this one, or the bare name. */
static void find_beside(const char *name, char *path, size_t path_bytes)
{
    char self[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[size < 0 ? 0 : size] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        slash[1] = '\0';
    snprintf(path, path_bytes, "%s%s", slash ? self : "", name);
    if (access(path, X_OK) != 0)
        snprintf(path, path_bytes, "%s", name);
}

/* The fingerprint, for comparison by users who download the CA on another host. */
static void print_local_ca(const char *folder)
{
    char path[PATH_MAX + 8], fingerprint[TLS_FINGERPRINT_BYTES];
    struct err err;
    snprintf(path, sizeof(path), "%s/tls", folder);
    if (tls_files_fingerprint(path, fingerprint, &err))
        supervisor_log_failure("cannot read the local CA's fingerprint", &err);
    else
        printf("  Trust           %s/ca.crt, SHA-256 fingerprint\n                  %s\n", path,
               fingerprint);
}

static void print_banner(const struct supervisor *supervisor)
{
    char program[PATH_MAX + 16];
    const char *url = supervisor->settings->public_url, *folder = supervisor->folder.path;
    find_beside("perfolio", program, sizeof(program));
    printf("\nPerfolio is ready.\n\n"
           "  Open            %s\n"
           "  Sign in (once)  %s/login#code=%s\n",
           url, url, supervisor->login_code);
    if (!*supervisor->custom_cert)
        print_local_ca(folder);
    printf("  Push a profile  ");
    if (!*supervisor->custom_cert)
        printf("PERFOLIO_CA_FILE='%s/tls/ca.crt' ", folder);
    printf("PERFOLIO_URL=%s PERFOLIO_TOKEN=\"$(cat '%s/admin.token')\" \\\n"
           "                  '%s' push cpu.pb.gz\n\n",
           url, folder, program);
    fflush(stdout);
}

/* ---- running ---- */

static void reload_server(struct supervisor *supervisor)
{
    struct err err;
    bool is_new;
    if (supervisor_refresh_certificates(supervisor, &is_new, &err) ||
        supervisor_prepare_access_log(supervisor, &err))
        supervisor_log_failure("reload failed, the old settings stay in use", &err);
    else if (supervisor->server_pid > 0)
        kill(supervisor->server_pid, SIGHUP);
}

static void check_certificates(struct supervisor *supervisor)
{
    struct err err;
    bool is_new = false;
    if (clock_monotonic_ns() < supervisor->next_certificate_check_ns)
        return;
    supervisor->next_certificate_check_ns = supervisor_after_ms(CERTIFICATE_CHECK_S * 1000);
    if (supervisor_refresh_certificates(supervisor, &is_new, &err))
        supervisor_log_failure("cannot renew the certificate", &err);
    else if (is_new && supervisor->server_pid > 0)
        kill(supervisor->server_pid, SIGHUP);
}

static void run_until_stopped(struct supervisor *supervisor, const sigset_t *signals)
{
    supervisor->next_certificate_check_ns = supervisor_after_ms(CERTIFICATE_CHECK_S * 1000);
    for (;;) {
        bool is_whole = supervisor->server_pid > 0 &&
                        (!supervisor->has_cluster || supervisor->postgres.pid > 0);
        const struct timespec pause = {.tv_sec = is_whole ? 60 : 0,
                                       .tv_nsec = is_whole ? 0 : 50 * CLOCK_NS_PER_MS};
        int number = sigtimedwait(signals, NULL, &pause);
        if (number == SIGTERM || number == SIGINT)
            return;
        if (number == SIGHUP)
            reload_server(supervisor);
        supervisor_restart_ended(supervisor);
        check_certificates(supervisor);
        bound_database_log(supervisor);
        supervisor_vacuum_full_disk(supervisor);
    }
}

static void close_listeners(struct supervisor *supervisor)
{
    for (int i = 0; i < supervisor->listener_count; i++)
        close(supervisor->listeners[i]);
    supervisor->listener_count = 0;
}

/* Drops pending signals to stop. One request to stop may arrive twice within SAME_STOP_MS: from the
 * terminal or the process group, and from make. */
static void forget_stops(void)
{
    const struct timespec now = {0};
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    while (sigtimedwait(&stops, NULL, &now) > 0)
        ;
}

/* A second Ctrl-C aborts requests in flight. */
static void stop_server(struct supervisor *supervisor)
{
    struct err err;
    bool is_success;
    int64_t deadline_ns =
        supervisor_after_ms(supervisor->settings->shutdown_timeout_s * 1000 + STOP_GRACE_MS);
    if (supervisor->server_pid <= 0)
        return;
    /* The server closes its copies: new clients are refused at once instead of waiting for a server
     * that has ended. */
    close_listeners(supervisor);
    kill(supervisor->server_pid, SIGTERM);
    const int64_t same_stop_ns = supervisor_after_ms(SAME_STOP_MS);
    while (child_process_wait_ms(supervisor->server_pid, 100, &is_success, &err) == ERR_TIMEOUT) {
        if (clock_monotonic_ns() < same_stop_ns)
            forget_stops();
        else if (clock_monotonic_ns() > deadline_ns || child_process_is_stop_wanted())
            kill(supervisor->server_pid, SIGKILL);
    }
    supervisor->server_pid = 0;
}

static void stop_all(struct supervisor *supervisor)
{
    postgres_stop(&supervisor->postgres);
    /* Created again at each start; outside of D it would otherwise stay for ever. */
    if (*supervisor->postgres.socket_dir)
        rmdir(supervisor->postgres.socket_dir);
    if (supervisor->postgres.log_fd > 0)
        close(supervisor->postgres.log_fd);
    close_listeners(supervisor);
    settings_free_environment(supervisor->environment);
    mem_free(supervisor->custom_cert);
    mem_free(supervisor->custom_key);
    data_folder_close(&supervisor->folder);
}

enum err_code supervisor_run(struct settings *settings, struct err *err)
{
    struct supervisor supervisor = {.settings = settings, .folder = {.fd = -1, .lock_fd = -1}};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    /* A shell's background jobs start with SIGINT ignored, nohup's with SIGHUP: ignored signals do
     * not even become pending. */
    signal(SIGINT, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    enum err_code code = prepare_start(&supervisor, err);
    if (!code && supervisor.server_pid > 0 && !child_process_is_stop_wanted())
        print_banner(&supervisor);
    if (!code) {
        run_until_stopped(&supervisor, &signals);
        log_event(LOG_INFO, "stopping", "server_pid=%d", (int)supervisor.server_pid);
    }
    stop_server(&supervisor);
    stop_all(&supervisor);
    if (code == ERR_CANCELLED)
        code = ERR_NONE; /* stopped before everything ran */
    if (code)
        return code;
    log_event(LOG_INFO, "stopped: all processes have ended", "pid=%d", (int)getpid());
    return ERR_NONE;
}

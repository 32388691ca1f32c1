#include "api/ops/postgres.h"

#include "api/core/child_process.h"
#include "api/ops/postgres_leftover.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FIRST_VERSION = 15,
    LAST_VERSION = 30,
    READY_TIMEOUT_S = 300, /* recovery after a crash reads up to a checkpoint's worth of log */
    START_S = 20,
    LEFTOVER_S = 3, /* time for sessions of a killed server to end by themselves */
    FAST_STOP_MS = 30000,
    IMMEDIATE_STOP_MS = 5000,
    LINE_BYTES = PATH_MAX + 16,
    WAL_LEAST_MIB = 64,
    WAL_MOST_MIB = 512,
    CHILDREN_MAX = 2048, /* more than max_connections and PostgreSQL's own processes */
};

/* The environment of PostgreSQL's programs: without PG*, which would change where they connect. */
static const char *const clean_environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                                                "LC_ALL=C.UTF-8", "TZ=UTC", NULL};

static bool is_executable(const char *folder, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, X_OK) == 0;
}

static int cluster_version(const struct postgres *postgres)
{
    char path[PATH_MAX + 16];
    int version = 0;
    snprintf(path, sizeof(path), "%s/PG_VERSION", postgres->path);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%d", &version) != 1)
        version = 0;
    if (file)
        fclose(file);
    return version;
}

static enum err_code find_programs(struct postgres *postgres, struct err *err)
{
    int version = cluster_version(postgres);
    int first = version ? version : FIRST_VERSION, last = version ? version : LAST_VERSION;
    for (int i = first; i <= last; i++) {
        snprintf(postgres->bin_dir, sizeof(postgres->bin_dir), "/usr/lib/postgresql/%d/bin", i);
        if (is_executable(postgres->bin_dir, "postgres") &&
            is_executable(postgres->bin_dir, "initdb"))
            return ERR_NONE;
    }
    return err_set(
        err, ERR_NOT_FOUND,
        "PostgreSQL %d is not installed: install the package postgresql-%d, or use --database-url",
        first, first);
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

/* PostgreSQL's programs find each other through arguments[0]. */
enum err_code postgres_run_tool(const struct postgres *postgres, const char *name,
                                const char **arguments, const char *const *environment,
                                int stdin_fd, int stdout_fd, struct err *err)
{
    char program[PATH_MAX];
    snprintf(program, sizeof(program), "%s/%s", postgres->bin_dir, name);
    arguments[0] = program;
    return child_process_run(
        &(struct child_process_options){.program = program,
                                        .arguments = arguments,
                                        .environment =
                                            environment ? environment : clean_environment,
                                        .account = &postgres->account,
                                        .death_signal = SIGKILL,
                                        .log_fd = postgres->log_fd,
                                        .stdin_fd = stdin_fd,
                                        .stdout_fd = stdout_fd,
                                        .kept_fds = &postgres->kept_fd,
                                        .kept_fd_count = postgres->kept_fd >= 0},
        err);
}

static enum err_code run_quietly(const struct postgres *postgres, const char *name,
                                 const char **arguments, int stdin_fd, struct err *err)
{
    fd_auto quiet_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    return postgres_run_tool(postgres, name, arguments, NULL, stdin_fd, quiet_fd, err);
}

/* Runs before anyone can connect: PostgreSQL's single-user mode reads one statement per line. */
static const char first_statements[] =
    "CREATE ROLE perfolio_owner LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS\n"
    "CREATE ROLE perfolio_server LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS\n"
    "CREATE ROLE perfolio_jobs LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS\n"
    "CREATE DATABASE perfolio OWNER perfolio_owner\n"
    "REVOKE ALL ON DATABASE perfolio FROM PUBLIC\n"
    "REVOKE ALL ON DATABASE postgres FROM PUBLIC\n"
    "REVOKE ALL ON DATABASE template1 FROM PUBLIC\n"
    "GRANT CONNECT ON DATABASE perfolio TO perfolio_server, perfolio_jobs\n";

static enum err_code create_roles(const struct postgres *postgres, const char *folder,
                                  struct err *err)
{
    int statements[2];
    if (pipe2(statements, O_CLOEXEC) != 0)
        return err_set_errno(err, ERR_IO, "cannot make a pipe");
    /* Fits into the pipe's buffer, so this does not wait for the reader. */
    int written = os_write_all(statements[1], first_statements, sizeof(first_statements) - 1);
    close(statements[1]);
    const char *arguments[] = {NULL, "--single",         "-D",       folder,
                               "-c", "exit_on_error=on", "postgres", NULL};
    enum err_code code = written == 0
                             ? run_quietly(postgres, "postgres", arguments, statements[0], err)
                             : err_set_errno(err, ERR_IO, "cannot write to a pipe");
    close(statements[0]);
    return code;
}

/* A cluster is created under a name of its own, and renamed when it is complete. */
static const char new_suffix[] = ".new-";

/* Syncs everything at once, instead of one fsync for each of a thousand files. */
static enum err_code sync_cluster(const char *path, struct err *err)
{
    fd_auto fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || syncfs(fd) != 0)
        return err_set_errno(err, ERR_IO, "cannot make %s durable", path);
    return ERR_NONE;
}

/* Removes clusters of starts that were killed. Their processes may still write there: what cannot
 * be removed now is removed at the next start. */
static void remove_leftovers(const char *cluster_path)
{
    char folder[PATH_MAX], path[PATH_MAX + NAME_MAX + 2];
    snprintf(folder, sizeof(folder), "%s", cluster_path);
    char *slash = strrchr(folder, '/');
    if (!slash)
        return;
    *slash = 0;
    const char *name = slash + 1;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        if (strncmp(entry->d_name, name, strlen(name)) != 0 ||
            strncmp(entry->d_name + strlen(name), new_suffix, sizeof(new_suffix) - 1) != 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        nftw(path, remove_entry, 32, FTW_DEPTH | FTW_PHYS);
    }
    if (entries)
        closedir(entries);
}

static enum err_code create_cluster(const struct postgres *postgres, struct err *err)
{
    enum { SUFFIX_BYTES = sizeof(new_suffix) + DIGEST_ID_BYTES };
    char id[DIGEST_ID_BYTES], path[PATH_MAX + SUFFIX_BYTES], child_path[PATH_MAX + SUFFIX_BYTES];
    digest_random_id(id);
    snprintf(path, sizeof(path), "%s%s%s", postgres->path, new_suffix, id);
    snprintf(child_path, sizeof(child_path), "%s%s%s", postgres->child_path, new_suffix, id);
    log_event(LOG_INFO, "creating the database cluster", "programs=%s", postgres->bin_dir);
    /* Uses a descriptor: root must never change the owner of what a name leads to. */
    fd_auto fd =
        mkdir(path, 0700) != 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchown(fd, postgres->account.uid, postgres->account.gid) != 0)
        return err_set_errno(err, ERR_IO, "cannot create the folder %s", path);
    const char *arguments[] = {NULL,
                               "-D",
                               child_path,
                               "-U",
                               "perfolio_cluster",
                               "--auth=peer",
                               "--encoding=UTF8",
                               "--locale=C.UTF-8",
                               "--no-sync",
                               "--data-checksums",
                               "--no-instructions",
                               NULL};
    enum err_code code = run_quietly(postgres, "initdb", arguments, -1, err);
    if (!code)
        code = create_roles(postgres, child_path, err);
    if (!code)
        code = sync_cluster(path, err);
    if (code)
        return err_add(err, "creating the database cluster");
    if (rename(path, postgres->path) != 0)
        return err_set_errno(err, ERR_IO, "cannot name the folder %s", postgres->path);
    return sync_cluster(postgres->path, err);
}

/* Whether it is a file with exactly this text and the right owner. */
static bool has_text(const struct postgres *postgres, const char *path, const char *text)
{
    struct stat status;
    const size_t size = strlen(text);
    char *content = mem_alloc(size + 1, 1);
    fd_auto fd = os_open_file(AT_FDCWD, path, &status);
    const bool is_equal = fd >= 0 && status.st_uid == postgres->account.uid &&
                          os_pread(fd, content, size + 1, 0) == (ssize_t)size &&
                          memcmp(content, text, size) == 0;
    mem_free(content);
    return is_equal;
}

/* Replaces a file of the cluster atomically, so that a kill leaves the old or the new one. A
 * correct file is not changed: a server has to start on a full disk, too. */
static enum err_code write_file(const struct postgres *postgres, const char *name, const char *text,
                                struct err *err)
{
    char path[PATH_MAX + 32], new_path[PATH_MAX + 32];
    snprintf(path, sizeof(path), "%s/%s", postgres->path, name);
    snprintf(new_path, sizeof(new_path), "%s/%s.new", postgres->path, name);
    if (has_text(postgres, path, text))
        return ERR_NONE;
    unlink(new_path);
    /* The folder belongs to PostgreSQL, and we may be root: never open what exists there already.
     */
    fd_auto fd = open(new_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || fchown(fd, postgres->account.uid, postgres->account.gid) != 0 ||
        os_write_all(fd, text, strlen(text)) != 0 || rename(new_path, path) != 0)
        return err_set_errno(err, ERR_IO, "cannot write %s", path);
    return ERR_NONE;
}

/* Checked at each start: the users may have changed. */
static enum err_code write_access(const struct postgres *postgres, struct err *err)
{
    buf_auto ident;
    buf_init(&ident, 4096);
    static const char *const owner_roles[] = {"perfolio_cluster", "perfolio_owner"};
    static const char *const server_roles[] = {"perfolio_server", "perfolio_jobs"};
    for (int i = 0; i < 2; i++) {
        buf_printf(&ident, "perfolio \"%s\" %s\n", postgres->account.name, owner_roles[i]);
        buf_printf(&ident, "perfolio \"%s\" %s\n", postgres->server_account.name, server_roles[i]);
        buf_printf(&ident, "perfolio root %s\nperfolio root %s\n", owner_roles[i], server_roles[i]);
    }
    buf_append_byte(&ident, 0);
    enum err_code code =
        write_file(postgres, "pg_hba.conf", "local all all peer map=perfolio\n", err);
    return code ? code : write_file(postgres, "pg_ident.conf", (const char *)ident.data, err);
}

enum err_code postgres_find_newest_programs(struct postgres *postgres, struct err *err)
{
    for (int i = LAST_VERSION; i >= FIRST_VERSION; i--) {
        snprintf(postgres->bin_dir, sizeof(postgres->bin_dir), "/usr/lib/postgresql/%d/bin", i);
        if (is_executable(postgres->bin_dir, "pg_dump"))
            return ERR_NONE;
    }
    return err_set(err, ERR_NOT_FOUND,
                   "pg_dump is not installed: install the package "
                   "postgresql-client");
}

enum err_code postgres_prepare(struct postgres *postgres, struct err *err)
{
    enum err_code code = find_programs(postgres, err);
    if (code)
        return code;
    remove_leftovers(postgres->path);
    if (cluster_version(postgres) == 0) {
        code = create_cluster(postgres, err);
        if (code)
            return code;
    }
    return write_access(postgres, err);
}

/* Reads a line (from 1) of postmaster.pid, "" if there is none. */
static void read_pid_file_line(const struct postgres *postgres, int number, char *line, int size)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof(path), "%s/postmaster.pid", postgres->path);
    FILE *file = fopen(path, "re");
    line[0] = '\0';
    for (int i = 0; file && i < number; i++)
        if (!fgets(line, size, file))
            line[0] = '\0';
    if (file)
        fclose(file);
    line[strcspn(line, "\n")] = '\0';
}

/* For root without CAP_SYS_PTRACE, as in containers: whether pid is a postgres started on this
 * path. */
static bool is_named_in_command(const struct postgres *postgres, pid_t pid)
{
    char path[64], command[2 * PATH_MAX];
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    fd_auto fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, command, sizeof(command) - 1);
    if (size <= 0)
        return false;
    command[size] = '\0';
    for (const char *at = command; at < command + size; at += strlen(at) + 1)
        if (strcmp(at, postgres->path) == 0 || strcmp(at, postgres->child_path) == 0)
            return strstr(command, "postgres") != NULL;
    return false;
}

/* The process in the cluster's pid file, if it runs and its working directory is this folder. */
static pid_t find_process(const struct postgres *postgres)
{
    char line[LINE_BYTES], path[64];
    struct stat cluster, working;
    read_pid_file_line(postgres, 1, line, sizeof(line));
    pid_t pid = (pid_t)strtol(line, NULL, 10);
    if (pid <= 1 || kill(pid, 0) != 0)
        return 0;
    snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
    if (stat(path, &working) != 0)
        return errno == EACCES && is_named_in_command(postgres, pid) ? pid : 0;
    if (stat(postgres->path, &cluster) != 0 || working.st_dev != cluster.st_dev ||
        working.st_ino != cluster.st_ino)
        return 0;
    return pid;
}

enum err_code postgres_find_running(struct postgres *postgres, struct err *err)
{
    char line[LINE_BYTES];
    enum err_code code = find_programs(postgres, err);
    if (code)
        return code;
    read_pid_file_line(postgres, 5, line, sizeof(line));
    if (find_process(postgres) == 0 || strlen(line) >= sizeof(postgres->socket_dir))
        return err_set(err, ERR_NOT_FOUND, "the database of %s is not running", postgres->path);
    snprintf(postgres->socket_dir, sizeof(postgres->socket_dir), "%s", line);
    return ERR_NONE;
}

static bool is_gone_within(const struct postgres *postgres, pid_t pid, int64_t duration_ms)
{
    int64_t deadline_ns = clock_monotonic_ns() + duration_ms * CLOCK_NS_PER_MS;
    while (find_process(postgres) == pid) {
        if (clock_monotonic_ns() >= deadline_ns)
            return false;
        clock_sleep_ms(5);
    }
    return true;
}

/* A cluster's processes besides the one that started them. */
struct children {
    pid_t pids[CHILDREN_MAX];
    int count;
};

static void find_children(pid_t parent, struct children *children)
{
    char path[64];
    int pid;
    children->count = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *file = fopen(path, "re");
    while (file && children->count < CHILDREN_MAX && fscanf(file, "%d", &pid) == 1)
        children->pids[children->count++] = pid;
    if (file)
        fclose(file);
}

static void signal_children(const struct children *children, int signal)
{
    for (int i = 0; i < children->count; i++)
        kill(children->pids[i], signal);
}

/* Sends the signal of one step to the cluster. A process that was stopped (SIGSTOP) ends with no
 * other signal, so all are continued first. SIGKILL is sent to each process: without their parent
 * the others notice only when they next wait for a client, and hold the shared memory until then.
 */
static void signal_cluster(pid_t pid, int signal)
{
    struct children children;
    find_children(pid, &children);
    kill(pid, signal);
    if (signal == SIGKILL)
        signal_children(&children, SIGKILL);
    signal_children(&children, SIGCONT);
    kill(pid, SIGCONT);
}

enum err_code postgres_stop_orphan(const struct postgres *postgres, struct err *err)
{
    static const struct {
        int signal;
        int64_t wait_ms;
    } steps[] = {{SIGINT, FAST_STOP_MS}, {SIGQUIT, IMMEDIATE_STOP_MS}, {SIGKILL, 5000}};
    pid_t pid = find_process(postgres);
    if (pid == 0)
        return ERR_NONE;
    log_event(LOG_WARN, "stopping the database that an earlier run left running", "pid=%d",
              (int)pid);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        signal_cluster(pid, steps[i].signal);
        if (is_gone_within(postgres, pid, steps[i].wait_ms))
            return ERR_NONE;
    }
    return err_set(err, ERR_CONFLICT, "process %d still runs the database of this data folder",
                   (int)pid);
}

/* The size of the log between two checkpoints: a 64th of the disk, from 64 to 512 MiB. On disks of
 * 2 GiB and more, this is at most half of the space that api/core/disk.h keeps free by default. */
static void write_wal_limit(const struct postgres *postgres, char *text, size_t size)
{
    uint64_t free_bytes, total_bytes = UINT64_MAX;
    if (os_free_bytes(postgres->path, &free_bytes, &total_bytes) != 0)
        total_bytes = UINT64_MAX;
    uint64_t mib = total_bytes / 64 >> 20;
    mib = mib < WAL_LEAST_MIB ? WAL_LEAST_MIB : mib > WAL_MOST_MIB ? WAL_MOST_MIB : mib;
    snprintf(text, size, "max_wal_size=%dMB", (int)mib);
}

static enum err_code launch_server(struct postgres *postgres, struct err *err)
{
    char program[PATH_MAX], connections[64], wal_limit[64];
    write_wal_limit(postgres, wal_limit, sizeof(wal_limit));
    snprintf(program, sizeof(program), "%s/postgres", postgres->bin_dir);
    snprintf(connections, sizeof(connections), "max_connections=%d", postgres->max_connections);
    const char *const arguments[] = {program,
                                     "-D",
                                     postgres->child_path,
                                     "-k",
                                     postgres->socket_dir,
                                     "-p",
                                     "5432",
                                     "-c",
                                     "listen_addresses=",
                                     "-c",
                                     connections,
                                     "-c",
                                     "shared_buffers=64MB",
                                     "-c",
                                     "jit=off",
                                     "-c",
                                     "cluster_name=perfolio",
                                     "-c",
                                     wal_limit,
                                     "-c",
                                     "min_wal_size=48MB",
                                     "-c",
                                     "wal_level=minimal",
                                     "-c",
                                     "max_wal_senders=0",
                                     "-c",
                                     "logging_collector=off",
                                     "-c",
                                     "log_min_messages=warning",
                                     "-c",
                                     "log_line_prefix=%m [%p] ",
                                     "-c",
                                     "log_checkpoints=off",
                                     "-c",
                                     "log_min_error_statement=panic",
                                     "-c",
                                     "unix_socket_permissions=0777",
                                     NULL};
    return child_process_start(
        &(struct child_process_options){.program = program,
                                        .arguments = arguments,
                                        .environment = clean_environment,
                                        .account = &postgres->account,
                                        .death_signal = SIGINT,
                                        .log_fd = postgres->log_fd,
                                        .stdin_fd = -1,
                                        .stdout_fd = -1,
                                        .kept_fds = &postgres->kept_fd,
                                        .kept_fd_count = postgres->kept_fd >= 0},
        &postgres->pid, err);
}

static bool is_ready(const struct postgres *postgres)
{
    char line[LINE_BYTES];
    read_pid_file_line(postgres, 1, line, sizeof(line));
    if ((pid_t)strtol(line, NULL, 10) != postgres->pid)
        return false;
    read_pid_file_line(postgres, 8, line, sizeof(line));
    return strncmp(line, "ready", 5) == 0;
}

static enum err_code wait_ready(struct postgres *postgres, struct err *err)
{
    int64_t deadline_ns = clock_monotonic_ns() + READY_TIMEOUT_S * CLOCK_NS_PER_S;
    while (!is_ready(postgres)) {
        bool is_success;
        enum err_code code = child_process_wait_ms(postgres->pid, 0, &is_success, err);
        if (code != ERR_TIMEOUT) {
            postgres->pid = 0;
            return err_set(
                err, ERR_BUSY,
                "PostgreSQL ended while it started; see postgres.log in the data folder");
        }
        if (clock_monotonic_ns() > deadline_ns)
            return err_set(err, ERR_TIMEOUT, "PostgreSQL was not ready after %d s",
                           READY_TIMEOUT_S);
        if (child_process_is_stop_wanted())
            return err_set(err, ERR_CANCELLED, "stopped while PostgreSQL started");
        clock_sleep_ms(5);
    }
    return ERR_NONE;
}

/* After the end of a server that was killed, its sessions hold its shared memory, and PostgreSQL
 * refuses to start. Most sessions end within a moment. */
static void end_leftover_sessions(const struct postgres *postgres)
{
    if (find_process(postgres) != 0)
        return;
    const int count = postgres_leftover_kill(postgres->path);
    if (count)
        log_event(LOG_WARN, "killed sessions that an earlier run of the database left", "count=%d",
                  count);
}

/* Tries for 20 s. */
enum err_code postgres_start(struct postgres *postgres, struct err *err)
{
    const int64_t begin_ns = clock_monotonic_ns();
    for (;;) {
        enum err_code code = launch_server(postgres, err);
        if (!code)
            code = wait_ready(postgres, err);
        const int64_t passed_ns = clock_monotonic_ns() - begin_ns;
        if (code != ERR_BUSY || passed_ns > START_S * CLOCK_NS_PER_S ||
            child_process_is_stop_wanted())
            return code ? err_add(err, "starting the database") : ERR_NONE;
        if (passed_ns > LEFTOVER_S * CLOCK_NS_PER_S)
            end_leftover_sessions(postgres);
        clock_sleep_ms(200);
    }
}

void postgres_stop(struct postgres *postgres)
{
    static const struct {
        int signal;
        int64_t wait_ms;
    } steps[] = {{SIGINT, FAST_STOP_MS}, {SIGQUIT, IMMEDIATE_STOP_MS}, {SIGKILL, 5000}};
    struct err err;
    bool is_success;
    for (size_t i = 0; postgres->pid > 0 && i < sizeof(steps) / sizeof(steps[0]); i++) {
        signal_cluster(postgres->pid, steps[i].signal);
        if (child_process_wait_ms(postgres->pid, steps[i].wait_ms, &is_success, &err) !=
            ERR_TIMEOUT)
            postgres->pid = 0;
    }
}

void postgres_conninfo(const char *socket_dir, const char *role,
                       char ret_text[POSTGRES_CONNINFO_BYTES])
{
    char quoted[2 * POSTGRES_SOCKET_DIR_BYTES];
    size_t size = 0;
    for (const char *at = socket_dir; *at && size + 2 < sizeof(quoted); at++) {
        if (*at == '\'' || *at == '\\')
            quoted[size++] = '\\';
        quoted[size++] = *at;
    }
    quoted[size] = '\0';
    snprintf(ret_text, POSTGRES_CONNINFO_BYTES,
             "host='%s' port=5432 dbname=perfolio user=%s sslmode=disable gssencmode=disable "
             "application_name=perfoliod",
             quoted, role);
}

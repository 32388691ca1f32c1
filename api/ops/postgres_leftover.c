#include "api/ops/postgres_leftover.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The program may have been replaced or deleted since: " (deleted)" follows its path then. */
static bool is_postgres(pid_t pid)
{
    char path[64], program[PATH_MAX];
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    const ssize_t size = readlink(path, program, sizeof(program) - 1);
    if (size <= 0)
        return false;
    program[size] = '\0';
    char *name = strrchr(program, '/');
    return name && (strcmp(name, "/postgres") == 0 || strcmp(name, "/postgres (deleted)") == 0);
}

static bool works_in(pid_t pid, const struct stat *folder)
{
    char path[64];
    struct stat working;
    snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
    return stat(path, &working) == 0 && working.st_dev == folder->st_dev &&
           working.st_ino == folder->st_ino;
}

int postgres_leftover_kill(const char *cluster_path)
{
    int count = 0;
    struct stat cluster;
    DIR *processes = opendir("/proc");
    if (processes && stat(cluster_path, &cluster) == 0) {
        for (struct dirent *entry; (entry = readdir(processes)) != NULL;) {
            const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
            if (pid > 1 && works_in(pid, &cluster) && is_postgres(pid))
                count += kill(pid, SIGKILL) == 0;
        }
    }
    if (processes)
        closedir(processes);
    return count;
}

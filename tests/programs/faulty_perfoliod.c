/*
 * perfoliod whose disk fails on demand: the whole program, with a thread in the serving process
 * that sets the faults of lib/base/os. tests/integration/ops/test_disk_faults.py sends commands to
 * the abstract socket "perfolio-faults-<pid>", one line per connection:
 *   plan CALL NTH ERRNO   the NTH call of that kind from now on fails with ERRNO
 *   count CALL            the number of calls of that kind since the last plan or reset
 *   reset                 no call fails
 * CALL is a number of enum os_call. The response is a number in a line, 0 except for count.
 */
int perfoliod_main(int argc, char **argv);
#define main perfoliod_main
#include "api/main.c"
#undef main

#include "lib/base/os.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int listen_for_faults(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int size = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
                              "perfolio-faults-%d", (int)getpid());
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const size_t bytes = offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size;
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, (socklen_t)bytes) != 0 ||
        listen(fd, 8) != 0)
        abort();
    return fd;
}

static unsigned obey(const char *line)
{
    int call, error;
    unsigned nth;
    if (sscanf(line, "plan %d %u %d", &call, &nth, &error) == 3 && call < OS_CALL_COUNT)
        os_fault_plan((enum os_call)call, nth, error, false);
    else if (sscanf(line, "count %d", &call) == 1 && call < OS_CALL_COUNT)
        return os_fault_count((enum os_call)call);
    else
        os_fault_reset();
    return 0;
}

static void *serve_faults(void *context)
{
    const int listener = *(int *)context;
    for (;;) {
        char line[128] = "";
        const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0 && read(fd, line, sizeof(line) - 1) > 0)
            dprintf(fd, "%u\n", obey(line));
        close(fd);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static int listener;
    pthread_t thread;
    sigset_t all, before;
    if (argc > 1 && strcmp(argv[1], "serve-child") == 0) {
        listener = listen_for_faults();
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before); /* the server handles signals */
        if (pthread_create(&thread, NULL, serve_faults, &listener) != 0)
            abort();
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return perfoliod_main(argc, argv);
}

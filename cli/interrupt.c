#include "cli/interrupt.h"

#include "cli/exit_code.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* Mutable globals, because a signal handler has no argument for its context. */
static _Atomic(const char *) file_path;
static _Atomic(const char *) last_text;
static atomic_bool has_bar;
static atomic_int screen_fd = -1;
static struct termios screen_before;

static void write_stderr(const char *text)
{
    /* Failures are ignored: the process is ending. */
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

void interrupt_give_screen_back(void)
{
    static const char text[] = "\033[?25h\033[?1049l";
    const int fd = atomic_exchange(&screen_fd, -1);
    if (fd < 0)
        return;
    ssize_t written = write(fd, text, sizeof(text) - 1);
    (void)written;
    tcsetattr(fd, TCSANOW, &screen_before);
}

static void clean_up(void)
{
    interrupt_give_screen_back();
    const char *path = atomic_load(&file_path);
    if (path)
        unlink(path);
    if (atomic_load(&has_bar))
        write_stderr("\r\033[K");
}

static void on_signal(int number)
{
    const char *text = atomic_load(&last_text);
    clean_up();
    if (text)
        write_stderr(text);
    raise(number); /* SA_RESETHAND: the default action ends the process after this returns */
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    clean_up();
    /* Only BUS_ADRERR comes from a truncated file; any other code is a bug, which must end the
     * process with SIGBUS. */
    if (info->si_code != BUS_ADRERR)
        return; /* repeats the access, now with the default action */
    write_stderr("perfolio: error: a file became shorter while it was read\n");
    _exit(EXIT_ERROR);
}

void interrupt_install(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct sigaction before;
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
    struct sigaction bus_error = {.sa_sigaction = on_bus_error,
                                  .sa_flags = (int)(SA_RESETHAND | SA_SIGINFO)};
    sigaction(SIGBUS, &bus_error, NULL);
}

static void on_fault(int number)
{
    interrupt_give_screen_back();
    raise(number);
}

void interrupt_set_screen(int terminal_fd, const struct termios *before)
{
    static const int numbers[] = {SIGQUIT, SIGABRT, SIGSEGV, SIGFPE, SIGILL};
    const struct sigaction action = {.sa_handler = on_fault, .sa_flags = (int)SA_RESETHAND};
    screen_before = *before;
    atomic_store(&screen_fd, terminal_fd);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigaction(numbers[i], &action, NULL);
}

void interrupt_end(int number)
{
    signal(number, SIG_DFL);
    on_signal(number);
}

void interrupt_set_file(const char *path)
{
    atomic_store(&file_path, path);
}

void interrupt_set_text(const char *text)
{
    atomic_store(&last_text, text);
}

void interrupt_set_bar(bool is_shown)
{
    atomic_store(&has_bar, is_shown);
}

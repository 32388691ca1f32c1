#include "debuginfod/sandbox.h"

#include "lib/base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* System calls that reach no file, process or network that is not open already. mmap and mprotect
 * are restricted below. */
static const int allowed_calls[] = {
    SCMP_SYS(read),
    SCMP_SYS(pread64),
    SCMP_SYS(write),
    SCMP_SYS(lseek),
    SCMP_SYS(fstat),
    SCMP_SYS(close),
    SCMP_SYS(brk),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(madvise),
    SCMP_SYS(futex),
    SCMP_SYS(getrusage),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(getrandom),
    SCMP_SYS(sysinfo),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(sched_getaffinity),
};

/* Calls that libraries make but do not need (glibc's allocator reads /proc and /sys). They return
 * EACCES; all other calls kill the process. */
static const int refused_calls[] = {
    SCMP_SYS(open),       SCMP_SYS(openat), SCMP_SYS(readlink), SCMP_SYS(readlinkat),
    SCMP_SYS(newfstatat), SCMP_SYS(stat),   SCMP_SYS(access),   SCMP_SYS(faccessat),
};

/* Allows abort() to signal this process; no other process may be signalled. */
static int allow_abort(scmp_filter_ctx filter)
{
    int result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(getpid), 0);
    if (result == 0)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(gettid), 0);
    if (result == 0)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                                  SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0));
    return result;
}

static int add_rules(scmp_filter_ctx filter)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < sizeof(allowed_calls) / sizeof(allowed_calls[0]); i++)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed_calls[i], 0);
    for (size_t i = 0; result == 0 && i < sizeof(refused_calls) / sizeof(refused_calls[0]); i++)
        result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), refused_calls[i], 0);
    if (result == 0)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
                                  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    if (result == 0)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                                  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    return result == 0 ? allow_abort(filter) : result;
}

static enum err_code filter_calls(struct err *err)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
    int result = filter ? add_rules(filter) : -ENOMEM;
    if (result == 0)
        result = seccomp_load(filter);
    if (filter)
        seccomp_release(filter);
    if (result == 0)
        return ERR_NONE;
    errno = -result;
    return err_set_errno(err, ERR_UNSUPPORTED,
                         "system calls cannot be filtered (seccomp), so no file is read");
}

/* Denies the rights of Landlock's first version: opening, making and removing files. Returns -1
 * when Landlock cannot be used. */
static int deny_file_system(void)
{
    struct landlock_ruleset_attr rules = {
        .handled_access_fs =
            (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1, /* all rights of Landlock ABI 1 */
    };
    long ruleset = syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules.handled_access_fs), 0);
    if (ruleset < 0)
        return -1;
    long result = syscall(SYS_landlock_restrict_self, ruleset, 0);
    close((int)ruleset);
    return result == 0 ? 0 : -1;
}

/* Sets both limits of a resource, but not above the present hard limit. */
static bool set_soft_and_hard(__rlimit_resource_t resource, uint64_t soft, uint64_t hard)
{
    struct rlimit now, wanted = {.rlim_cur = soft, .rlim_max = hard};
    if (getrlimit(resource, &now) != 0)
        return false;
    if (now.rlim_max < wanted.rlim_max)
        wanted.rlim_max = now.rlim_max;
    if (wanted.rlim_cur > wanted.rlim_max)
        wanted.rlim_cur = wanted.rlim_max;
    return setrlimit(resource, &wanted) == 0;
}

static bool set_limit(__rlimit_resource_t resource, uint64_t number)
{
    return set_soft_and_hard(resource, number, number);
}

static bool set_limits(const struct sandbox_limits *limits)
{
    /* At the soft limit the kernel sends SIGXCPU, which shows the cause of death. At the hard limit
     * it sends SIGKILL, to a process that ignores the first signal. */
    return set_limit(RLIMIT_AS, limits->memory_bytes) &&
           set_soft_and_hard(RLIMIT_CPU, limits->cpu_s, (uint64_t)limits->cpu_s + 1) &&
           set_limit(RLIMIT_FSIZE, limits->output_bytes) && set_limit(RLIMIT_CORE, 0) &&
           set_limit(RLIMIT_NPROC, 0);
}

enum err_code sandbox_enter(const struct sandbox_limits *limits, const char **ret_warning,
                            struct err *err)
{
    if (!set_limits(limits))
        return err_set_errno(err, ERR_UNSUPPORTED, "limits cannot be set");
    /* Exceeding the file size limit becomes an error of write(2) instead of a signal. */
    signal(SIGXFSZ, SIG_IGN);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return err_set_errno(err, ERR_UNSUPPORTED, "privileges cannot be given up");
    *ret_warning = deny_file_system() == 0
                       ? NULL
                       : "Landlock cannot be used: files are refused by seccomp alone";
    return filter_calls(err);
}

#include "agent/process/process.h"

#include "agent/process/process_file.h"

#include <errno.h>
#include <signal.h>

bool process_has_ended(const struct process *process)
{
    return process->ended_ns && process->shown_id == process->process_id;
}

bool process_is_alive(const struct process *process)
{
    return !process_has_ended(process) &&
           (kill((pid_t)process->process_id, 0) == 0 || errno != ESRCH);
}

uint64_t process_owner(struct process *process)
{
    if (!process->owner)
        process->owner = process_file_owner(process->process_id);
    return process->owner;
}

#include "agent/process_attachments.h"

#include "agent/interpreter/interpreter.h"
#include "agent/labels/process_labels.h"
#include "agent/process/process.h"
#include "agent/symbols/jit_symbols.h"

void process_attachments_release(void *context, struct process *process)
{
    (void)context;
    process_labels_destroy(process->labels);
    process->labels = NULL;
    jit_symbols_release(process->jit_symbols);
    process->jit_symbols = NULL;
    interpreter_destroy(process->interpreter);
    process->interpreter = NULL;
}

void process_attachments_inherit(void *context, struct process *child, const struct process *parent)
{
    (void)context;
    child->interpreter = interpreter_inherit(parent->interpreter, child);
}

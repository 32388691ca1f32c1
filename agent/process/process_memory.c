#include "agent/process/process_memory.h"

#include "agent/process/memory_reader.h"

size_t process_memory_read_some(uint32_t process_id, uint64_t address, void *to, size_t size)
{
    return memory_reader_read(process_id, address, to, size);
}

bool process_memory_read(uint32_t process_id, uint64_t address, void *to, size_t size)
{
    return memory_reader_read(process_id, address, to, size) == size;
}

// Throws through frames all the time: most samples are in libgcc's own unwinder.
#include <cstdint>
#include <stdexcept>

static volatile std::uint64_t sink;

struct guard {
    ~guard() { sink = sink + 1; }
};

__attribute__((noinline)) void thrower(int depth)
{
    guard kept;
    if (depth > 0)
        thrower(depth - 1);
    else
        throw std::runtime_error("thrown");
    sink = sink + 2;
}

__attribute__((noinline)) void catcher()
{
    try {
        thrower(8);
    } catch (const std::exception &) {
        sink = sink + 3;
    }
    __asm__ volatile("" ::: "memory");
}

int main()
{
    for (;;)
        catcher();
}

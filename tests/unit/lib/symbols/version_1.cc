#include <map>
#include <string>
volatile int sink;
struct shape {
    virtual int area(int x)
    {
        return x * x;
    }
    virtual ~shape()
    {
    }
};
struct round_one : shape {
    int area(int x) override
    {
        return 3 * x;
    }
};
static inline __attribute__((always_inline)) int leaf(int x)
{
    sink = x;
    return x ^ sink;
}
template <class T> __attribute__((noinline)) T twice(T x)
{
    return x + leaf(x) + leaf(x + 1);
}
std::map<std::string, int> names;
int main(int argc, char **argv)
{
    names[argv[0]] = twice(argc);
    round_one one;
    return one.area(twice<long>(argc)) + names.size();
}

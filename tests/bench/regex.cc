/* A load for make bench-agent: stacks of C++ without frame pointers, some 17 frames deep, most of them different. */
#include <regex>
#include <string>

int main()
{
    const std::regex address("([a-z]+)@([a-z]+)\\.(com|org)");
    const std::string text = "dear alice@example.com, robert@mail.org";
    volatile bool is_found = false;
    for (;;)
        is_found = std::regex_search(text, address);
}

#include "lib/profile/report/rule_preset.h"

#include <stddef.h>

static const char *const native_hides[] = {
    "^(_start|start_thread|__libc_start\\w*|__?clone\\d?)$",
    "^_dl_",
    "^__GI_",
    "^(__)?(malloc|calloc|realloc|c?free)$",
    "^_int_(malloc|free|realloc)$",
    "^(__)?mem(cpy|move|set|cmp)",
    "^__(mem|str)\\w+_(avx|sse|evex|erms)",
    "(^|/)(libc|libpthread|libm|ld-linux)[^/]*\\.so",
    NULL,
};

static const char *const go_hides[] = {
    "^(runtime|internal|sync|syscall|reflect|time|os|io|net|fmt|strconv|strings|bytes|sort|bufio|"
    "encoding|crypto|compress|unicode|regexp|math|container|context|hash|log|text|html|path|errors|"
    "slices|maps|unique|iter|vendor)[./]",
    "^((archive|database|debug|go|image|index|mime|testing)/"
    "\\w+|cmp|embed|expvar|flag|image|mime|plugin|testing|weak)\\.([A-Z(]|[a-z]+[A-Z])",
    "^(gcWriteBarrier|type:)",
    "^(gogo|callRet|gosave|setg_gcc|aeshashbody|memeqbody|cmpbody|indexbytebody)$",
    NULL,
};

static const char *const rust_hides[] = {
    "^<?&?(dyn )?(std|core|alloc|tokio|hashbrown|backtrace|rayon_core|futures_\\w+)(::| as )",
    "^(__rust_|rust_begin_unwind|__rdl_)",
    NULL,
};

static const char *const cpp_hides[] = {
    "^((void|bool|auto) )?(std|__gnu_cxx|__cxxabiv1|boost|absl)::",
    "^operator (new|delete)",
    "^__cxa_",
    NULL,
};

static const char *const python_hides[] = {
    "^_?Py[A-Z_]",
    "^(pymain|builtin|vectorcall|gc_collect)_",
    "^(run_mod|deduce_unreachable|call_function|slot_tp_call|type_call)$",
    "^(method|function|object|cfunction|slot|type|wrapper)_\\w*call$",
    "^(list|dict|tuple|unicode|long|bytes|set)_(dealloc|new|iter|append|get|concat|subscript|repr)",
    "(^|/)lib(64)?/python[\\d.]+/[^-]*\\.py",
    "^<frozen ",
    NULL,
};

static const char *const node_hides[] = {
    "^(node|v8|uv|internal|std)::",
    "^uv__",
    "^Builtins_",
    "^(Builtin|Stub|BytecodeHandler|Handler|RegExp):",
    "node:internal|(^|/)node_modules/",
    "^node:",
    "^\\((program|idle|garbage collector)\\)$",
    NULL,
};

static const char *const java_hides[] = {
    "^(java|javax|jdk|sun|com[./]sun)[./]",
    "^(java_start|thread_(native_)?entry|call_stub|Interpreter|SpinPause|[iv]table "
    "\\w+|\\w+_arraycopy)(_\\[j\\])?$",
    "^(Java_(java|sun|jdk)_|JVM_|jni_|Java(Calls|Thread)|Thread::|VM(_|Thread|Op)|(G1|PS|Par(allel)"
    "?)[A-Z]|GC\\w+::|StealTask::|C(ompileBroker|[12]Compiler)|Compile::|\\w+Runtime::)",
    "\\b(lib)?jvm[.](so|dll|dylib)$",
    NULL,
};

static const char *const dotnet_hides[] = {
    "^(\\w+ )?\\[?(System|Microsoft|Interop|Internal)[.!\\]]",
    "(^|/"
    ")(lib)?(coreclr|clrjit|hostpolicy|hostfxr|System[.]\\S+|Microsoft[.]\\S+)[.](so|dll|dylib)$",
    "^(CallDescrWorkerInternal|MethodDesc::|ManagedThreadBase|PreStub|ThePreStub|JIT_)",
    NULL,
};

static const char *const php_hides[] = {
    "^(php|zend|execute|ZEND|_zend|spl)_",
    "^(zif|zim)_",
    "^(Composer|Symfony|Illuminate|Doctrine|Psr|Monolog|Twig)\\\\",
    "(^|/)vendor/",
    NULL,
};

static const char *const ruby_hides[] = {
    "^(rb|vm|ruby|iseq|invoke|rbimpl|enumerator)_",
    "^(ary|str|hash|call|each)_\\w+$",
    "^<internal:",
    NULL,
};

static const char *const kernel_hides[] = {
    "_\\[k\\]$",
    "^\\[kernel",
    "^(entry_SYSCALL_64|do_syscall_64|x64_sys_call|__x64_sys_|ret_from_fork)",
    NULL,
};

static const struct rule_preset presets[] = {
    {.name = "native", .hides = native_hides},
    {.name = "go", .hides = go_hides},
    {.name = "rust", .hides = rust_hides},
    {.name = "cpp", .hides = cpp_hides},
    {.name = "python", .hides = python_hides},
    {.name = "node", .hides = node_hides},
    {.name = "java", .hides = java_hides},
    {.name = "dotnet", .hides = dotnet_hides},
    {.name = "php", .hides = php_hides},
    {.name = "ruby", .hides = ruby_hides},
    {.name = "kernel", .hides = kernel_hides, .hides_kernel = true},
};

const struct rule_preset *rule_preset_find(struct span name)
{
    for (size_t i = 0; i < sizeof(presets) / sizeof(*presets); i++) {
        if (span_equal_text(name, presets[i].name))
            return &presets[i];
    }
    return NULL;
}

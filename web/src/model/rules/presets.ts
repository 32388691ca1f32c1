/*
 * presets: the code that is not the reader's own, by language; chain.ts names the presets. Only the
 * worker needs this module. The server needs the same for link previews:
 * lib/profile/report/rule_preset.c is equal, and a test compares both.
 */

export interface PresetFrames {
  /** Expressions for names or files, each a separate one so that it is cheap. */
  hides: readonly string[];
  /** Also hides the frames that the profile marks as the kernel's. */
  hidesKernel?: boolean;
}

/**
 * Links contain the name of a preset: its expressions may be corrected, its name must not change.
 */
export const presetFrames: Readonly<Record<string, PresetFrames>> = {
  native: {
    hides: [
      "^(_start|start_thread|__libc_start\\w*|__?clone\\d?)$",
      "^_dl_",
      "^__GI_",
      "^(__)?(malloc|calloc|realloc|c?free)$",
      "^_int_(malloc|free|realloc)$",
      "^(__)?mem(cpy|move|set|cmp)",
      "^__(mem|str)\\w+_(avx|sse|evex|erms)",
      "(^|/)(libc|libpthread|libm|ld-linux)[^/]*\\.so",
    ],
  },
  go: {
    hides: [
      "^(runtime|internal|sync|syscall|reflect|time|os|io|net|fmt|strconv|strings|bytes|sort" +
        "|bufio|encoding|crypto|compress|unicode|regexp|math|container|context|hash|log|text" +
        "|html|path|errors|slices|maps|unique|iter|vendor)[./]",
      "^((archive|database|debug|go|image|index|mime|testing)/\\w+|cmp|embed|expvar|flag|image" +
        "|mime|plugin|testing|weak)\\.([A-Z(]|[a-z]+[A-Z])",
      "^(gcWriteBarrier|type:)",
      "^(gogo|callRet|gosave|setg_gcc|aeshashbody|memeqbody|cmpbody|indexbytebody)$",
    ],
  },
  rust: {
    hides: [
      "^<?&?(dyn )?(std|core|alloc|tokio|hashbrown|backtrace|rayon_core|futures_\\w+)(::| as )",
      "^(__rust_|rust_begin_unwind|__rdl_)",
    ],
  },
  cpp: {
    hides: [
      "^((void|bool|auto) )?(std|__gnu_cxx|__cxxabiv1|boost|absl)::",
      "^operator (new|delete)",
      "^__cxa_",
    ],
  },
  python: {
    hides: [
      "^_?Py[A-Z_]",
      "^(pymain|builtin|vectorcall|gc_collect)_",
      "^(run_mod|deduce_unreachable|call_function|slot_tp_call|type_call)$",
      "^(method|function|object|cfunction|slot|type|wrapper)_\\w*call$",
      "^(list|dict|tuple|unicode|long|bytes|set)_(dealloc|new|iter|append|get|concat|subscript" +
        "|repr)",
      "(^|/)lib(64)?/python[\\d.]+/[^-]*\\.py",
      "^<frozen ",
    ],
  },
  node: {
    hides: [
      "^(node|v8|uv|internal|std)::",
      "^uv__",
      "^Builtins_",
      "^(Builtin|Stub|BytecodeHandler|Handler|RegExp):",
      "node:internal|(^|/)node_modules/",
      "^node:",
      "^\\((program|idle|garbage collector)\\)$",
    ],
  },
  java: {
    hides: [
      "^(java|javax|jdk|sun|com[./]sun)[./]",
      "^(java_start|thread_(native_)?entry|call_stub|Interpreter|SpinPause|[iv]table \\w+" +
        "|\\w+_arraycopy)(_\\[j\\])?$",
      "^(Java_(java|sun|jdk)_|JVM_|jni_|Java(Calls|Thread)|Thread::|VM(_|Thread|Op)|(G1|PS" +
        "|Par(allel)?)[A-Z]|GC\\w+::|StealTask::|C(ompileBroker|[12]Compiler)|Compile::" +
        "|\\w+Runtime::)",
      "\\b(lib)?jvm[.](so|dll|dylib)$",
    ],
  },
  dotnet: {
    hides: [
      // "System.Threading…", "System.Private.CoreLib!System…", "void [System.Private.CoreLib]
      // System…"
      "^(\\w+ )?\\[?(System|Microsoft|Interop|Internal)[.!\\]]",
      "(^|/)(lib)?(coreclr|clrjit|hostpolicy|hostfxr|System[.]\\S+|Microsoft[.]\\S+)[.](so|dll" +
        "|dylib)$",
      "^(CallDescrWorkerInternal|MethodDesc::|ManagedThreadBase|PreStub|ThePreStub|JIT_)",
    ],
  },
  php: {
    hides: [
      "^(php|zend|execute|ZEND|_zend|spl)_",
      "^(zif|zim)_",
      "^(Composer|Symfony|Illuminate|Doctrine|Psr|Monolog|Twig)\\\\",
      "(^|/)vendor/",
    ],
  },
  ruby: {
    hides: [
      "^(rb|vm|ruby|iseq|invoke|rbimpl|enumerator)_",
      "^(ary|str|hash|call|each)_\\w+$",
      "^<internal:",
    ],
  },
  kernel: {
    hides: [
      "_\\[k\\]$",
      "^\\[kernel",
      "^(entry_SYSCALL_64|do_syscall_64|x64_sys_call|__x64_sys_|ret_from_fork)",
    ],
    hidesKernel: true,
  },
};

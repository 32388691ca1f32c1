import assert from "node:assert/strict";
import { test } from "node:test";
import { presets, type Rule } from "../../../src/model/rules/chain.ts";
import {
  derive,
  FrameFlag,
  parentOf,
  withTree,
  type Columns,
  type Flame,
} from "../../../src/model/tree/flame.ts";
import { exactPattern } from "../../../src/model/search/escape_regex.ts";
import { listFunctions } from "../../../src/model/functions/functions.ts";
import { compileSearch, search } from "../../../src/model/search/search.ts";
import { applyRule, calleesOf, callersOf, matchRule } from "../../../src/model/rules/transform.ts";
import { decode, small, type Tree } from "../../trees.ts";

let seed = 5;
const random = (below: number) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % below;

const fileOf = (name: string) => (name < "d" ? "first.c" : name < "f" ? "second.c" : "");

/** Few names, so that recursion is common; no two siblings share one. */
function randomTree(count: number, spread: number, isDiff: boolean): Tree {
  const root: Tree = { name: "root", children: [] };
  const all = [root];
  while (all.length < count) {
    const parent = all[Math.max(0, all.length - 1 - random(spread))];
    const name = "abcdefgh"[random(8)];
    if (parent.children!.some((child) => child.name === name)) {
      if (parent === root) break;
      spread++;
      continue;
    }
    const node: Tree = {
      name,
      file: fileOf(name),
      mapping: "x.so",
      self: random(3) ? random(100) - (isDiff ? 20 : 0) : 0,
      base: random(50),
      children: [],
    };
    parent.children!.push(node);
    all.push(node);
  }
  return root;
}

/** Stacks as text, "a;b;c", with their values: the tree as a list, without shared code. */
type Stacks = Map<string, [number, number]>;

function add(stacks: Stacks, path: string[], values: [number, number]): void {
  const key = path.join(";");
  const old = stacks.get(key) ?? [0, 0];
  stacks.set(key, [old[0] + values[0], old[1] + values[1]]);
}

function stacksOf(flame: Flame): Stacks {
  const paths: string[][] = [];
  const stacks: Stacks = new Map();
  for (let i = 0; i < flame.nodeCount; i++) {
    paths.push(i === 0 ? [] : [...paths[parentOf(flame, i)], flame.frames.name(flame.frame[i])]);
    if (flame.self[i] !== 0 || (flame.baseSelf && flame.baseSelf[i] !== 0))
      add(stacks, paths[i], [flame.self[i], flame.baseSelf?.[i] ?? 0]);
  }
  return stacks;
}

function collapse(path: string[], isMatch: (name: string) => boolean): string[] {
  const kept: string[] = [];
  for (const name of path) {
    const outer = isMatch(name) ? kept.indexOf(name) : -1;
    if (outer >= 0) kept.length = outer + 1;
    else kept.push(name);
  }
  return kept;
}

function expected(stacks: Stacks, rule: Rule): Stacks {
  const pattern = new RegExp(rule.text);
  const isMatch = (name: string) => pattern.test(name) || pattern.test(fileOf(name));
  const made: Stacks = new Map();
  for (const [key, values] of stacks) {
    const path = key.split(";");
    const first = path.findIndex(isMatch);
    if (rule.action === "focus" && first >= 0) add(made, path, values);
    if (rule.action === "ignore" && first < 0) add(made, path, values);
    const left = path.filter((name) => isMatch(name) === (rule.action === "show"));
    if ((rule.action === "hide" || rule.action === "show") && left.length) add(made, left, values);
    if (rule.action === "merge") add(made, first < 0 ? path : path.slice(0, first + 1), values);
    if (rule.action === "recursion") add(made, collapse(path, isMatch), values);
  }
  for (const [key, [self, base]] of made) if (self === 0 && base === 0) made.delete(key);
  return made;
}

function checkOrder(flame: Flame): void {
  const seen = new Set<string>();
  for (let i = 1; i < flame.nodeCount; i++) {
    const parent = parentOf(flame, i);
    const key = `${parent} ${flame.frame[i]}`;
    assert.ok(!seen.has(key), "siblings with the same frame are one node");
    seen.add(key);
    const next = flame.end[i];
    if (next < flame.end[parent])
      assert.ok(flame.width[i] >= flame.width[next], "the widest sibling first");
  }
}

const rule = (action: Rule["action"], text: string): Rule => ({ action, text, isOff: false });
const remake = (flame: Flame, columns: Columns) => withTree(flame, columns, derive(columns));
const patterns = ["^a$", "[bc]", "^[a-f]$", "second\\.c", "h", "^[^h]$", "nothing"];

for (const isDiff of [false, true])
  test(`rules and chains equal a brute-force reader${isDiff ? ", for a diff" : ""}`, () => {
    for (let round = 0; round < 120; round++) {
      const tree = randomTree(3 + random(400), 1 + random(12), isDiff);
      let flame = decode(tree, { isDiff });
      let stacks = stacksOf(flame);
      for (let step = 0; step < 3; step++) {
        const action = (["focus", "ignore", "hide", "show", "merge", "recursion"] as const)[
          random(6)
        ];
        const made = rule(action, patterns[random(patterns.length)]);
        flame = remake(flame, applyRule(flame, flame.frames, made));
        stacks = expected(stacks, made);
        assert.deepEqual(
          new Map([...stacksOf(flame)].sort()),
          new Map([...stacks].sort()),
          `${action} ${made.text}`,
        );
        checkOrder(flame);
      }
    }
  });

test("stacks that lose all frames are dropped, and the other numbers stay", () => {
  const flame = decode({
    name: "root",
    self: 7,
    children: [
      { name: "a", self: 1, children: [{ name: "b", self: 2 }] },
      { name: "b", self: 4 },
    ],
  });
  const hidden = remake(flame, applyRule(flame, flame.frames, rule("hide", "^b$")));
  assert.deepEqual([...stacksOf(hidden)], [["a", [3, 0]]]);
  assert.equal(hidden.total, 14, "percentages still refer to the whole profile");
  const merged = remake(flame, applyRule(flame, flame.frames, rule("merge", "^a$")));
  assert.equal(merged.cum[0], 14);
});

test("rules and presets match functions with and without an address before the name", () => {
  const flame = decode({
    name: "root",
    children: [
      {
        name: "0x10 main.main",
        children: [
          { name: "0x20 runtime.mcall", self: 3 },
          { name: "0x24 runtime.mcall", self: 4 },
          { name: "0x30 main.work", self: 5 },
        ],
      },
    ],
  });
  const left = (one: Rule) =>
    [...stacksOf(remake(flame, applyRule(flame, flame.frames, one))).values()].reduce(
      (sum, [value]) => sum + value,
      0,
    );
  assert.equal(left(rule("focus", exactPattern("runtime.mcall"))), 7);
  assert.equal(left(rule("ignore", exactPattern("0x24 runtime.mcall"))), 8);
  assert.deepEqual(
    [...stacksOf(remake(flame, applyRule(flame, flame.frames, rule("only", "go"))))].length,
    2,
  );
  assert.equal(search(flame, compileSearch("^runtime\\.")).functionCount, 2);
});

test("label values are not functions: rules do not match and searches do not count them", () => {
  const flame = decode({
    name: "root",
    children: [
      { name: "/thing/1", flags: FrameFlag.Label, children: [{ name: "main", self: 3 }] },
      { name: "/other", flags: FrameFlag.Label, children: [{ name: "thing", self: 4 }] },
    ],
  });
  const left = (one: Rule) =>
    [...stacksOf(remake(flame, applyRule(flame, flame.frames, one)))].map(
      ([path, [value]]) => `${path} ${value}`,
    );
  assert.deepEqual(left(rule("focus", "thing")), left(rule("focus", "^thing$")));
  assert.equal(left(rule("ignore", "other")).length, 2);
  assert.deepEqual(left(rule("hide", "/")), left(rule("hide", "nothing")));
  assert.deepEqual(left(rule("show", "main|thing")), left(rule("hide", "nothing")));
  assert.equal(search(flame, compileSearch("thing")).functionCount, 1);
});

test("a preset hides frames with the kernel flag", () => {
  const flame = decode({
    name: "root",
    children: [
      { name: "main", self: 1, children: [{ name: "vfs_read", self: 2, flags: FrameFlag.Kernel }] },
    ],
  });
  const made = remake(flame, applyRule(flame, flame.frames, rule("only", "kernel")));
  assert.deepEqual([...stacksOf(made)], [["main", [3, 0]]]);
});

test("presets hide code that is not the reader's own and keep the rest", () => {
  const cases: Record<string, { gone: string[]; kept: string[] }> = {
    native: {
      gone: [
        "_start",
        "__libc_start_main",
        "malloc",
        "_int_free",
        "__memmove_avx_unaligned_erms",
        "_dl_fini",
      ],
      kept: ["main", "my_malloc", "start_server"],
    },
    go: {
      gone: [
        "runtime.mallocgc",
        "net/http.(*conn).serve",
        "encoding/json.Marshal",
        "sync.(*Mutex).Lock",
        "sort.Sort",
      ],
      kept: ["main.main", "github.com/acme/net/http.Serve", "sortable.Run", "timeseries.Add"],
    },
    rust: {
      gone: [
        "core::ops::function::FnOnce::call_once",
        "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
        "std::rt::lang_start",
        "tokio::runtime::park",
        "__rust_alloc",
      ],
      kept: ["ripgrep::main", "<ripgrep::Searcher as core::fmt::Debug>::fmt", "stdx::run"],
    },
    cpp: {
      gone: [
        "std::vector<int>::push_back",
        "void std::__introsort_loop<int*>",
        "operator new",
        "__cxa_throw",
      ],
      kept: ["acme::run", "standard::run", "main"],
    },
    python: {
      gone: ["_PyEval_EvalFrameDefault", "PyObject_Call", "pymain_run_python", "method_vectorcall"],
      kept: ["handler", "myapp.views.index", "list_users_page"],
    },
    node: {
      gone: [
        "node::Start",
        "v8::internal::Heap::Scavenge",
        "uv__io_poll",
        "Builtins_JSEntry",
        "(program)",
        "(idle)",
      ],
      kept: ["render", "LazyCompile:*render /app/src/page.js:12", "uvula"],
    },
    java: {
      gone: [
        "java.util.HashMap.get",
        "jdk.internal.misc.Unsafe.park",
        "Interpreter",
        "G1ParScanThread",
      ],
      kept: ["com.acme.Main.run", "javax2.Thing", "org.apache.Foo"],
    },
    dotnet: {
      gone: [
        "System.Threading.Tasks.Task.Run",
        "System.Private.CoreLib!System.String.Concat",
        "void [System.Private.CoreLib] System.Threading.Thread::StartCallback()",
        "CallDescrWorkerInternal",
      ],
      kept: ["Acme.Orders.Handler.Handle", "Systems.Run", "void [Acme] Acme.Program::Main()"],
    },
    php: {
      gone: [
        "zend_execute_scripts",
        "zif_preg_match",
        "Symfony\\Component\\HttpKernel\\Kernel::handle",
        "php_execute_main",
      ],
      kept: ["App\\Controller\\Home::index", "phpinfo_page"],
    },
    ruby: {
      gone: ["rb_ary_each", "vm_exec_core", "<internal:kernel>#loop"],
      kept: ["UsersController#index", "ribbon"],
    },
    kernel: {
      gone: [
        "entry_SYSCALL_64_after_hwframe",
        "do_syscall_64",
        "vfs_read_[k]",
        "[kernel.kallsyms]",
      ],
      kept: ["main", "kernel_of_truth"],
    },
  };
  assert.deepEqual(Object.keys(cases).sort(), Object.keys(presets).sort());
  for (const [name, { gone, kept }] of Object.entries(cases)) {
    const flame = decode({
      name: "root",
      children: [...gone, ...kept].map((text) => ({ name: text, self: 1 })),
    });
    const matches = matchRule(flame.frames, rule("only", name));
    const hidden = Array.from({ length: flame.frames.count }, (_, i) => i)
      .filter((i) => matches[i])
      .map((i) => flame.frames.name(i));
    assert.deepEqual(hidden.sort(), [...gone].sort(), name);
  }
});

test("callers and callees of a function equal a brute-force reader", () => {
  for (let round = 0; round < 60; round++) {
    const flame = decode(randomTree(300, 1 + random(12), false));
    const name = flame.frames.name(flame.frame[1 + random(flame.nodeCount - 1)]);
    const callees: Stacks = new Map();
    const callers: Stacks = new Map();
    for (const [key, values] of stacksOf(flame)) {
      const path = key.split(";");
      const first = path.indexOf(name);
      if (first < 0) continue;
      add(callees, path.slice(first), values);
      add(callers, path.slice(0, first + 1).reverse(), values);
    }
    const below = remake(flame, calleesOf(flame, flame.frames, name));
    const above = remake(flame, callersOf(flame, flame.frames, name));
    assert.deepEqual(new Map([...stacksOf(below)].sort()), new Map([...callees].sort()));
    assert.deepEqual(new Map([...stacksOf(above)].sort()), new Map([...callers].sort()));
    assert.equal(below.cum[0], above.cum[0]);
  }
});

test("a rule for one function does not match another whose name differs only in case", () => {
  const flame = decode({
    name: "root",
    children: [
      { name: "main.run", self: 1 },
      { name: "main.Run", self: 2 },
    ],
  });
  assert.deepEqual(
    [
      ...stacksOf(
        remake(flame, applyRule(flame, flame.frames, rule("hide", exactPattern("main.run")))),
      ),
    ],
    [["main.Run", [2, 0]]],
  );
  assert.equal(search(flame, compileSearch(exactPattern("main.run"))).functionCount, 1);
  assert.equal(search(flame, compileSearch("main")).functionCount, 2);
  assert.equal(applyRule(flame, flame.frames, rule("focus", "(?i)RUN")).frame.length, 3);
});

test("a search counts the same functions as the table under rules, without merged boxes", () => {
  const other: Tree = { name: "other", self: 1, flags: FrameFlag.Other };
  const flame = decode({
    name: "root",
    children: [...small.children!, { name: "d", self: 1, children: [other] }],
  });
  for (const [action, text] of [
    ["hide", "^[ab]$"],
    ["focus", "c"],
    ["ignore", "a"],
    ["show", "d"],
  ] as const) {
    const left = remake(flame, applyRule(flame, flame.frames, rule(action, text)));
    for (const pattern of [".", "[ac]", "d", "^other$", "nothing"].map(compileSearch))
      assert.equal(
        search(left, pattern).functionCount,
        listFunctions(left).filter(({ name }) => pattern.test(name)).length,
        `${action}:${text}`,
      );
  }
});

test("collapsing recursion takes linear time in a chain of 60,000 different frames", () => {
  const root: Tree = { name: "root", children: [] };
  let at = root;
  for (let i = 0; i < 60_000; i++) {
    const child: Tree = { name: `g${i}`, self: 1, children: [] };
    at.children!.push(child);
    at = child;
  }
  const flame = decode(root);
  const before = process.cpuUsage();
  assert.equal(applyRule(flame, flame.frames, rule("recursion", "")).frame.length, 60_001);
  const { user, system } = process.cpuUsage(before);
  assert.ok(user + system < 2e6, "following each path to the root would take five times as long");
});

test("rules work on a tree of depth 50,000, and callers may outnumber its nodes", () => {
  const root: Tree = { name: "root", children: [] };
  let at = root;
  for (let i = 0; i < 50_000; i++) {
    const child: Tree = { name: `f${i % 7}`, self: 1, children: [] };
    at.children!.push(child);
    at = child;
  }
  const flame = decode(root);
  assert.equal(
    remake(flame, applyRule(flame, flame.frames, rule("hide", "f[0-5]"))).nodeCount,
    Math.floor(50_000 / 7) + 1,
  );
  assert.equal(remake(flame, applyRule(flame, flame.frames, rule("recursion", ""))).nodeCount, 8);
  const wide: Tree = { name: "root", children: [] };
  for (let i = 0; i < 60; i++) {
    let place = wide;
    for (let depth = 0; depth < 60; depth++) {
      const child: Tree = { name: `g${i}_${depth}`, self: 0, children: [] };
      place.children!.push(child);
      place = child;
    }
    place.children!.push({ name: "leaf", self: 1 });
  }
  const many = decode(wide);
  const above = remake(many, callersOf(many, many.frames, "leaf"));
  assert.equal(above.nodeCount, 60 * 60 + 2);
  assert.equal(above.cum[1], 60);
});

test("the callers and callees of an unknown function are empty", () => {
  const flame = decode({ name: "root", children: [{ name: "a", self: 1 }] });
  for (const make of [callersOf, calleesOf])
    assert.equal(remake(flame, make(flame, flame.frames, "b")).nodeCount, 1);
});

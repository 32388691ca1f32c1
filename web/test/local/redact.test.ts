import assert from "node:assert/strict";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { MessageWriter } from "../../src/local/protobuf_writer.ts";
import { findRedactable, redact } from "../../src/local/redact.ts";
import { readProfile } from "../../src/local/read.ts";
import { nothingRedacted, type Redaction } from "../../src/local/redaction.ts";

/** One sample of main.run with labels, in the first of the binaries. */
function pprofOf({
  labels = {},
  binaries = [],
  comments = [],
}: {
  labels?: Record<string, string>;
  binaries?: string[];
  comments?: string[];
}): Blob {
  const strings = ["", "cpu", "nanoseconds", "main.run"];
  const intern = (text: string) =>
    strings.includes(text) ? strings.indexOf(text) : strings.push(text) - 1;
  const out = new MessageWriter();
  out.message(1, (type) => (type.number(1, 1), type.number(2, 2)));
  out.message(2, (sample) => {
    sample.packed(1, [1]);
    sample.packed(2, [7]);
    for (const [key, text] of Object.entries(labels))
      sample.message(3, (label) => (label.number(1, intern(key)), label.number(2, intern(text))));
  });
  binaries.forEach((path, i) =>
    out.message(3, (mapping) => (mapping.number(1, i + 1), mapping.number(5, intern(path)))),
  );
  out.message(
    4,
    (place) => (
      place.number(1, 1),
      place.number(2, binaries.length && 1),
      place.message(4, (line) => line.number(1, 1))
    ),
  );
  out.message(5, (func) => (func.number(1, 1), func.number(2, 3)));
  out.packed(13, comments.map(intern));
  for (const text of strings) out.bytes(6, new TextEncoder().encode(text));
  return new Blob([out.take()]);
}

const redacted = async (file: Blob, wish: Partial<Redaction>): Promise<string> =>
  gunzipSync(
    new Uint8Array(await (await redact(file, { ...nothingRedacted, ...wish })).arrayBuffer()),
  ).toString("utf8");

test("removing the command line removes it from all labels, whatever their name", async () => {
  const keys = [
    "cmd",
    "cmdline",
    "process.command_line",
    "process_command_line",
    "process.command_args",
    "process.command",
    "process.command_args.0",
    "processCommandLine",
    "jvmArgs",
    "argv[1]",
    "ARGS",
    "java-command",
    "command.line",
  ];
  const kept = {
    region: "eu S3 west",
    commander: "Kirk",
    recommended: "yes",
    thread: "psql worker-3",
    target: "/v1/cart",
  };
  for (const key of keys) {
    const text = await redacted(
      pprofOf({ labels: { ...kept, [key]: "app --token=S3CRET" }, binaries: ["/usr/bin/psql"] }),
      { commandLine: true },
    );
    assert.ok(!text.includes("S3CRET") && !text.includes(key), key);
    for (const word of Object.entries(kept).flat())
      assert.ok(text.includes(word), `${word} beside ${key}`);
  }
  for (const held of [
    "/opt/x --token=S3CRET",
    "psql postgres://u:S3CRET@h",
    "/usr/bin/psql\0-cS3CRET",
    "psql a=S3CRET",
  ]) {
    const text = await redacted(
      pprofOf({ labels: { process: held }, binaries: ["/usr/bin/psql"] }),
      { commandLine: true },
    );
    assert.ok(!text.includes("S3CRET"), held);
  }
});

test("removing paths also removes them from label values", async () => {
  const file = pprofOf({
    labels: {
      path: "/home/alice/data/secret.csv",
      note: "see C:\\Users\\alice\\x.txt",
      region: "eu",
    },
  });
  const [named, numbered, whole] = await Promise.all([
    redacted(file, { paths: "base" }),
    redacted(file, { paths: "number" }),
    redacted(file, {}),
  ]);
  assert.ok(whole.includes("/home/alice/data/secret.csv"));
  for (const text of [named, numbered])
    assert.ok(!text.includes("alice") && text.includes("region") && text.includes("eu"));
  assert.ok(
    named.includes("secret.csv") && named.includes("x.txt") && !numbered.includes("secret"),
  );
});

test("removing the command line also removes it from paths and comments", async () => {
  const programs: [given: string, left: string][] = [
    ["/usr/bin/psql postgres://u:S3CRET@h", "/usr/bin/psql"],
    ["/usr/bin/psql S3CRET", "/usr/bin/psql"],
    ["psql\0S3CRET\0x", "psql"],
    ["/opt/psql --token=S3CRET", "/opt/psql"],
    ["C:\\Program Files\\pg\\psql.exe S3CRET.exe", "C:\\Program Files\\pg\\psql.exe"],
    ["/usr/bin/psql /lib/S3CRET.so", "/usr/bin/psql"],
  ];
  for (const [given, left] of programs) {
    const file = pprofOf({
      binaries: [given, `${given} again`],
      comments: ["started as psql S3CRET"],
    });
    const text = await redacted(file, { commandLine: true });
    assert.ok(!text.includes("S3CRET"), given);
    assert.ok(text.includes(left), given);
    assert.ok((await redacted(file, {})).includes("started as psql S3CRET"));
    const numbered = await redacted(file, { commandLine: true, paths: "base" });
    assert.ok(!numbered.includes("S3CRET") && numbered.includes("psql"), given);
  }
  const others = ["[anon: thread stack]", "/opt/My Program/lib/libx.so.6", "/usr/lib/libc.so.6"];
  const text = await redacted(pprofOf({ binaries: ["/usr/bin/psql", ...others] }), {
    commandLine: true,
  });
  for (const other of others) assert.ok(text.includes(other), other);
});

test("removing the command line removes every comment that may contain it", async () => {
  const out = [
    "process.command_line=x S3CRET",
    "process_args: S3CRET",
    "command: S3CRET",
    "cmdline S3CRET",
    "argv S3CRET",
    '"cmd": "S3CRET"',
    "run with -c S3CRET",
  ];
  const comments = [...out, "seen on Friday", "a commander’s remark", "built from main"];
  const text = await redacted(pprofOf({ comments }), { commandLine: true });
  assert.ok(!text.includes("S3CRET"));
  for (const comment of comments.slice(out.length)) assert.ok(text.includes(comment), comment);
});

test("a file too large for a tab is reported as too large, not as another format", async () => {
  const huge = Object.defineProperty(new Blob(["main;run 1\n"]), "size", { value: 2 ** 30 });
  for (const look of [findRedactable, readProfile]) await assert.rejects(look(huge), /too large/);
});

test("folded stacks lose their comments but no stack that looks like a comment", async () => {
  const lines =
    "//main;x 10\r\n# hello;world 5\n\na;b 3\n# host db-7\n// by vera\n#\n//nothing;more\nhost " +
    "db-7 of vera\n";
  const sum = async (blob: Blob) =>
    (await readProfile(blob))!.values.reduce((all, value) => all + value, 0);
  const file = new Blob([lines]);
  for (const wish of [{ comments: true }, { commandLine: true }]) {
    const made = await redact(file, { ...nothingRedacted, ...wish });
    assert.equal(await redacted(file, wish), "//main;x 10\r\n# hello;world 5\n\na;b 3\n");
    assert.deepEqual([await sum(file), await sum(made)], [18, 18]);
  }
  assert.equal(await redacted(file, {}), lines);
  assert.deepEqual(await findRedactable(file), { format: "folded", labelKeys: [] });
});

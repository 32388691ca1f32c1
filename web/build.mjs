// Builds web/dist (embedded by the server), with --tests the unit tests into build/web-tests, or
// with --bench the benchmarks into build/web-bench.
//
//   dist/index.html            the page shell; the server inserts its head lines at the marker
//   dist/favicon.svg
//   dist/licenses.txt          licenses of the packages in the scripts and of the server's font
//   dist/assets/<name>-<hash>  scripts and style sheets, immutable, with .gz and .br beside them;
//                              page_frame is the viewer in one file, which an export fills
//                              (src/export/page.ts)
import { build, transform } from "esbuild";
import { minify } from "terser";
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { brotliCompressSync, constants } from "node:zlib";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(fileURLToPath(import.meta.url));
const dist = join(root, "dist");
const browsers = ["es2022", "chrome109", "firefox115", "safari16.4"];
const headMarker = "<!--perfolio:head-->";

/** `import text from "x.css?text"`: for style sheets of later chunks (addStyle in ui/later.tsx). */
const cssAsText = {
  name: "css-as-text",
  setup(plugin) {
    plugin.onResolve({ filter: /\.css\?text$/ }, ({ path, resolveDir }) => {
      const folder = path.startsWith(".") ? resolveDir : join(root, "node_modules");
      return { path: join(folder, path.replace("?text", "")), namespace: "css-as-text" };
    });
    plugin.onLoad({ filter: /./, namespace: "css-as-text" }, async ({ path }) => {
      const { code } = await transform(readFileSync(path, "utf8"), {
        loader: "css",
        minify: true,
        target: browsers,
      });
      return { contents: code, loader: "text", watchFiles: [path] };
    });
  },
};

/** `import formats from "perfolio:upload-formats"`: the rows of the server's list of formats. */
const uploadFormats = {
  name: "upload-formats",
  setup(plugin) {
    const path = join(root, "../lib/profile/formats/format_list.h");
    plugin.onResolve({ filter: /^perfolio:upload-formats$/ }, () => ({
      path,
      namespace: "upload-formats",
    }));
    plugin.onLoad({ filter: /./, namespace: "upload-formats" }, () => {
      const row = /\bROW\([A-Z_]+, "([^"]+)", "([^"]+)",[\s\\]*"([^"]+)"/g;
      const rows = [...readFileSync(path, "utf8").matchAll(row)];
      if (!rows.length) throw new Error(`${path} has no rows`);
      const formats = rows.map(([, name, title, extension]) => ({ name, title, extension }));
      return { contents: JSON.stringify(formats), loader: "json", watchFiles: [path] };
    });
  },
};

const common = {
  absWorkingDir: root,
  bundle: true,
  format: "esm",
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "utf8",
  logLevel: "warning",
  legalComments: "none", // licenses.txt contains them
  plugins: [cssAsText, uploadFormats],
};

/** Bundles all test/…/x<suffix> for Node; they keep their subfolders below build/<folder>. */
async function buildForNode(folder, suffix) {
  const outdir = join(root, "../build", folder);
  rmSync(outdir, { recursive: true, force: true });
  await build({
    ...common,
    entryPoints: [`test/**/*${suffix}`],
    outbase: "test",
    outdir,
    platform: "node",
    target: "node18",
    outExtension: { ".js": ".mjs" },
  });
}

/** The path from the site's root of the file that was built from `entry`. */
function outputOf(metafile, entry) {
  const found = Object.entries(metafile.outputs).find(([, output]) => output.entryPoint === entry);
  if (!found) throw new Error(`no output for ${entry}`);
  return "/assets/" + basename(found[0]);
}

/**
 * Preload links for what a script imports, so that the page does not wait for the script to request
 * it.
 */
function preloadsOf(metafile, entry) {
  const output = Object.values(metafile.outputs).find((one) => one.entryPoint === entry);
  const imports = output.imports.filter((one) => one.kind === "import-statement" && !one.external);
  return imports
    .map((one) => `<link rel="modulepreload" href="/assets/${basename(one.path)}">`)
    .join("\n");
}

/**
 * Writes file.gz and file.br. libdeflate's level 12 is 2.5 % smaller than zlib's level 9 and takes
 * a fraction of zopfli's time.
 */
function compressBeside(file) {
  const bytes = readFileSync(file);
  writeFileSync(
    file + ".gz",
    execFileSync("libdeflate-gzip", ["-12", "-c"], { input: bytes, maxBuffer: 1 << 24 }),
  );
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
  writeFileSync(file + ".br", brotliCompressSync(bytes, quality));
}

/**
 * The licenses of all packages with a source among the inputs, and of the font; they must accompany
 * every copy.
 */
function licensesOf(metafile) {
  const packages = Object.keys(metafile.inputs).map(
    (path) => /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1],
  );
  const names = [...new Set(packages.filter(Boolean))].sort();
  const texts = names.map((name) => {
    const folder = join(root, "node_modules", name);
    const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = ["LICENSE", "LICENSE.md", "LICENSE.txt"]
      .map((one) => join(folder, one))
      .find(existsSync);
    if (!file) throw new Error(`${name} comes without its license`);
    return `${name} ${version}\n\n${readFileSync(file, "utf8").trim()}\n`;
  });
  const font =
    "DejaVu Sans (pictures that the server draws)\n\n" +
    readFileSync(join(root, "../deploy/licenses/DejaVuSans.txt"), "utf8");
  return [
    "Perfolio's pages and programs contain work of others under these licenses.\n",
    ...texts,
    font,
  ].join(`\n${"=".repeat(72)}\n\n`);
}

/** One entry with all its imports, static and dynamic, as text. */
async function bundleText(entry, options = {}) {
  const result = await build({
    ...common,
    entryPoints: [entry],
    write: false,
    minify: true,
    target: browsers,
    format: "iife",
    ...options,
  });
  return result.outputFiles[0].text;
}

/** An element of raw text must not contain its end tag or the start of a comment. */
const asScript = (text) => text.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
const hashOf = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/**
 * Builds the viewer as one page, with markers at which an export inserts title, facts and trees;
 * returns its path.
 */
async function buildPageFrame(licenses) {
  const startsFromPage = {
    name: "worker-from-page",
    setup: (plugin) =>
      plugin.onResolve({ filter: /\/start_worker\.ts$/ }, () => ({
        path: join(root, "src/standalone/start_worker.ts"),
      })),
  };
  const script = asScript(
    await bundleText("src/standalone/main.tsx", { plugins: [...common.plugins, startsFromPage] }),
  );
  const worker = asScript(await bundleText("src/workers/rules_worker.ts"));
  const graphWorker = asScript(await bundleText("src/workers/graph_worker.ts"));
  const style = (await bundleText("src/app.css", { format: undefined })).replaceAll(
    "</style",
    "<\\/style",
  );
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(script)}`,
    `style-src ${hashOf(style)}`,
    "worker-src blob:",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
  ].join("; ");
  const parts = {
    policy,
    style,
    worker,
    graphWorker,
    script,
    licenses: licenses.replaceAll("--", "- -"),
  };
  const frame = readFileSync(join(root, "src/standalone/frame.html"), "utf8").replace(
    /\{\{(\w+)\}\}/g,
    (_, name) => parts[name],
  );
  const name =
    "page_frame-" +
    `${createHash("sha256").update(frame).digest("hex").slice(0, 8).toUpperCase()}.txt`;
  writeFileSync(join(dist, "assets", name), frame);
  return `/assets/${name}`;
}

/**
 * Modules that share a later chunk, because a page that needs one will soon need another, and small
 * files compress badly. Every other dynamic import is a chunk of its own.
 */
const laterTogether = {
  reading: [
    "views/empty.tsx",
    "views/controls/frame_menu.tsx",
    "views/controls/key_sheet.tsx",
    "views/tables/labels.tsx",
    "views/tables/peek.tsx",
    "views/controls/rule_menu.tsx",
    "views/tables/sandwich.tsx",
    "views/foot/source_place.tsx",
    "views/tables/table.tsx",
    "pages/share/step_share.ts",
  ],
  sharing: [
    "export/dialog.tsx",
    "pages/share/comments.tsx",
    "pages/share/downloads.tsx",
    "pages/share/share_dialogs.tsx",
    "pages/share/share_prompts.tsx",
  ],
  rare: [
    "ui/contrast.ts",
    "pages/share/embed.tsx",
    "pages/missing_names.tsx",
    "pages/share/side_problem.tsx",
    "views/loading/carry_over.ts",
    "views/loading/resolve_old_link.ts",
  ],
  account: [
    "pages/account/account.tsx",
    "pages/share/delete.tsx",
    "pages/account/retention.tsx",
    "pages/account/sources.tsx",
    "pages/account/source_links.tsx",
  ],
};

/**
 * Returns a name that two of the modules export, if any: `export *` of both would silently drop it.
 */
function exportedTwice(files) {
  const names = files.flatMap((file) => {
    const source = readFileSync(join(root, "src", file), "utf8");
    return [
      ...source.matchAll(/^export (?:async )?(?:function\*?|class|const|let|enum) (\w+)/gm),
    ].map((match) => match[1]);
  });
  return names.find((name, at) => names.indexOf(name) !== at);
}

/**
 * Makes every later chunk import the first load, which is loaded by then. Otherwise the bundler
 * would split the first load into a chunk for each set of modules that some later chunk needs: 22
 * files that compress far worse than one.
 */
const afterFirstLoad = {
  name: "after-first-load",
  setup(plugin) {
    const filesOf = (name) => laterTogether[name] ?? [name];
    plugin.onResolve({ filter: /./ }, ({ path, kind, resolveDir }) => {
      if (kind !== "dynamic-import" || !path.startsWith(".")) return;
      const file = relative(join(root, "src"), join(resolveDir, path));
      const together = Object.keys(laterTogether).find((name) => filesOf(name).includes(file));
      return { path: together ?? file, namespace: "later" };
    });
    plugin.onLoad({ filter: /./, namespace: "later" }, ({ path }) => {
      const twice = exportedTwice(filesOf(path));
      if (twice)
        return {
          errors: [{ text: `two modules of the chunk "${path}" export "${twice}": rename one` }],
        };
      const exports = filesOf(path).map((file) => `export * from "./${file}";\n`);
      return {
        contents: `import "./app.tsx";\n${exports.join("")}`,
        resolveDir: join(root, "src"),
      };
    });
  },
};

/**
 * Minifies a script further, by 3 % after compression. The hash in a file's name is that of the
 * bundler's output; another version of terser would produce another file with the same name and
 * behaviour. unsafe_arrows: no anonymous function here is a constructor.
 */
const smallest = async (script) =>
  (
    await minify(script, {
      module: true,
      ecma: 2020,
      compress: { passes: 3, inline: 1, lhs_constants: false, unsafe_arrows: true },
    })
  ).code;

/** The names of the files that an output imports statically, directly or indirectly. */
function importedAtOnce(metafile, path, found = new Set()) {
  for (const one of metafile.outputs[path].imports) {
    if (one.kind !== "import-statement" || found.has(basename(one.path))) continue;
    found.add(basename(one.path));
    importedAtOnce(metafile, one.path, found);
  }
  return found;
}

/**
 * Removes imports of the first load that a later chunk has only for side effects: it is loaded
 * already, and the imports take space.
 */
function withoutFirstLoad(metafile, path, script) {
  if (!metafile.outputs[path].entryPoint?.startsWith("later:")) return script;
  const app = Object.keys(metafile.outputs).find(
    (one) => metafile.outputs[one].entryPoint === "src/app.tsx",
  );
  const first = importedAtOnce(metafile, app).add(basename(app));
  return script.replace(/import"\.\/([\w-]+\.js)";/g, (whole, name) =>
    first.has(name) ? "" : whole,
  );
}

/** Bundles several entries with shared chunks; returns the metadata of the outputs. */
async function buildScripts(entryPoints, plugins = []) {
  const result = await build({
    ...common,
    entryPoints,
    outdir: join(dist, "assets"),
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    splitting: true,
    minify: true,
    target: browsers,
    metafile: true,
    write: false,
    plugins: [...plugins, ...common.plugins],
  });
  for (const { path, text } of result.outputFiles) {
    const isScript = path.endsWith(".js");
    writeFileSync(
      path,
      isScript
        ? withoutFirstLoad(result.metafile, relative(root, path), await smallest(text))
        : text,
    );
  }
  return result.metafile;
}

async function buildSite() {
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(join(dist, "assets"), { recursive: true });
  const entries = [
    "app.tsx",
    "boot.ts",
    "app.css",
    "workers/rules_worker.ts",
    "workers/local_worker.ts",
    "workers/graph_worker.ts",
  ];
  const metafile = await buildScripts(
    entries.map((name) => `src/${name}`),
    [afterFirstLoad],
  );
  const licenses = licensesOf(metafile);
  writeFileSync(join(dist, "licenses.txt"), licenses);
  let shell = readFileSync(join(root, "src/index.html"), "utf8");
  for (const { entryPoint } of Object.values(metafile.outputs))
    if (entryPoint) shell = shell.replaceAll(`{{${entryPoint}}}`, outputOf(metafile, entryPoint));
  shell = shell.replace("{{page_frame}}", await buildPageFrame(licenses));
  shell = shell.replace("{{preloads}}", preloadsOf(metafile, "src/app.tsx"));
  if (!shell.includes(headMarker)) throw new Error("index.html has lost " + headMarker);
  if (shell.includes("{{")) throw new Error("index.html names an entry that is not built");
  writeFileSync(join(dist, "index.html"), shell);
  cpSync(join(root, "public"), dist, { recursive: true });
  for (const name of readdirSync(join(dist, "assets"))) compressBeside(join(dist, "assets", name));
}

if (process.argv.includes("--tests")) await buildForNode("web-tests", ".test.ts");
else if (process.argv.includes("--bench")) await buildForNode("web-bench", ".bench.ts");
else await buildSite();

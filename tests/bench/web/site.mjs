// Pages with the other viewers, built from npm packages under build/bench-web/, and a server for
// them on loopback.
import { build } from "../../../web/node_modules/esbuild/lib/main.js";
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
export const work = join(here, "../../../build/bench-web");
const packages = join(work, "packages");
const contentTypes = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
};

/**
 * Installs the packages of package-lock.json, once per version of that file. Throws if the registry
 * cannot be reached. react-data-grid is overridden because Grafana's own is a branch on GitHub;
 * only its tables, which are not shown, use it.
 */
function install() {
  const lock = readFileSync(join(here, "package-lock.json"));
  const stamp = join(packages, ".installed");
  if (existsSync(stamp) && readFileSync(stamp).equals(lock)) return;
  mkdirSync(packages, { recursive: true });
  for (const name of ["package.json", "package-lock.json"])
    copyFileSync(join(here, name), join(packages, name));
  console.log(
    "(installing the other viewers from npm into build/bench-web/packages: some minutes)",
  );
  execFileSync("npm", ["ci", "--legacy-peer-deps", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: packages,
    stdio: ["ignore", "inherit", "inherit"],
  });
  writeFileSync(stamp, lock);
}

const common = {
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  logLevel: "error",
  define: { "process.env.NODE_ENV": '"production"' },
  loader: {
    ".svg": "dataurl",
    ".woff2": "dataurl",
    ".ttf": "dataurl",
    ".png": "dataurl",
  },
};

/** Bundles one page with the installed packages. */
async function bundle(files, name, source) {
  const outfile = join(work, "pages", `${name}.js`);
  const alias = {
    "@grafana/assistant": join(here, "pages/assistant.js"),
    "react-custom-scrollbars-2": join(here, "pages/scrollbars.js"),
  };
  await build({
    ...common,
    entryPoints: [join(here, "pages", source)],
    outfile,
    alias,
    nodePaths: [join(packages, "node_modules")],
    jsx: "automatic",
  });
  files.set(`/${name}.js`, pack(readFileSync(outfile), ".js"));
  const css = existsSync(outfile.replace(".js", ".css"))
    ? readFileSync(outfile.replace(".js", ".css"))
    : Buffer.from("");
  files.set(`/${name}.css`, pack(css, ".css"));
  const page = readFileSync(join(here, "pages/page.html"), "utf8").replaceAll("{{name}}", name);
  files.set(`/${name}.html`, pack(Buffer.from(page), ".html"));
  return outfile;
}

/** Compressed in advance, so that serving is cheap. */
function pack(bytes, extension) {
  const type = contentTypes[extension] ?? "application/octet-stream";
  return type === "application/octet-stream"
    ? { bytes, type }
    : { bytes: gzipSync(bytes), type, encoding: "gzip" };
}

export class Site {
  files = new Map();
  /** Why the other viewers are not available, or "". */
  problem = "";

  static async open() {
    const site = new Site();
    mkdirSync(join(work, "pages"), { recursive: true });
    site.modelPath = await bundle(site.files, "model", "model.ts");
    site.files.set(
      "/blank.html",
      pack(Buffer.from("<!doctype html><title>blank</title><link rel=icon href=data:,>"), ".html"),
    );
    try {
      install();
      const d3Css = readFileSync(
        join(packages, "node_modules/d3-flame-graph/dist/d3-flamegraph.css"),
      );
      await bundle(site.files, "d3", "d3.js");
      site.files.set("/d3.css", pack(d3Css, ".css"));
      await bundle(site.files, "grafana", "grafana.jsx");
      const release = join(packages, "node_modules/speedscope/dist/release");
      for (const name of readdirSync(release))
        site.files.set(
          `/speedscope/${name}`,
          pack(readFileSync(join(release, name)), extname(name)),
        );
    } catch (error) {
      site.problem = String(error.message).split("\n")[0];
    }
    await site.listen();
    return site;
  }

  listen() {
    this.server = createServer((request, response) => {
      const file = this.files.get(new URL(request.url, "http://localhost").pathname);
      if (!file) return response.writeHead(404).end();
      response.writeHead(200, {
        "Content-Type": file.type,
        "Content-Length": file.bytes.length,
        ...(file.encoding ? { "Content-Encoding": file.encoding } : {}),
      });
      response.end(file.bytes);
    });
    return new Promise((resolve) => {
      this.server.listen(0, "127.0.0.1", () => {
        this.url = `http://127.0.0.1:${this.server.address().port}`;
        resolve();
      });
    });
  }

  /** Serves a tree in a format; returns its path. */
  add(tree, format) {
    const path = `/${tree.name}.${format}`;
    const isJson = format === "d3" || format === "nested";
    this.files.set(
      path,
      isJson
        ? {
            bytes: tree.file(format),
            type: "application/json",
            encoding: "gzip",
          }
        : { bytes: tree.file(format), type: "application/octet-stream" },
    );
    return path;
  }

  close() {
    this.server.close();
  }
}

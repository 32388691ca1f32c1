// Compares Perfolio's pages with other viewers: the same trees, the same browser, the same run.
//
//   make bench-web                  table on the terminal, build/bench-web/results.csv
//   BENCH_NODES=10000,1000000       sizes of the generated trees
//   BENCH_VIEWERS=Perfolio,d3       only viewers whose name starts with one of these
//   BENCH_ROUNDS=3                  each figure is the median of this many fresh browsers
//   BENCH_LIMIT_SECONDS=120         longer measurements are reported as this limit
//
// A missed goal is marked but is not a failure, because hosts differ.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromiumPath } from "../../browser/harness.mjs";
import { root, Server } from "../../browser/server.mjs";
import {
  costUntilQuiet,
  countBytes,
  frameCosts,
  heapMemory,
  median,
  percentile,
  Processes,
  twoFrames,
} from "./measure.mjs";
import { Site, work } from "./site.mjs";
import { fromFlame, makeTree, StoredTree } from "./trees.mjs";
import { d3, findPprof, grafana, perfolio, pprof, speedscope } from "./viewers.mjs";

const { chromium } = createRequire(join(root, "web/package.json"))("playwright-core");
const list = (name, otherwise) => (process.env[name] ?? otherwise).split(",").filter(Boolean);
const sizes = list("BENCH_NODES", "10000,100000,1000000").map(Number);
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
const limitMs = Number(process.env.BENCH_LIMIT_SECONDS ?? 120) * 1000;
const frameSteps = 40;
const viewport = { width: 1600, height: 900 };

/* ---- one viewer, one tree, once ---- */

async function withBrowser(use) {
  const args = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-unsafe-swiftshader",
  ];
  const host = await chromium.launchServer({
    executablePath: chromiumPath(),
    args,
  });
  try {
    const browser = await chromium.connect(host.wsEndpoint());
    const context = await browser.newContext({
      viewport,
      ignoreHTTPSErrors: true,
      colorScheme: "light",
    });
    const page = await context.newPage();
    page.setDefaultTimeout(limitMs);
    const processes = new Processes(host.process().pid);
    // the browser's own work after its start
    await costUntilQuiet(processes, () => twoFrames(page), limitMs);
    return await use(page, processes, await context.newCDPSession(page));
  } finally {
    await host.close();
  }
}

/** Runs one part; if it fails, the error becomes its figure. */
async function part(figures, name, run) {
  const timer = new AbortController();
  const tooLong = new Promise((_, reject) => {
    const timeout = setTimeout(() => reject(new Error("Timeout")), limitMs);
    timer.signal.addEventListener("abort", () => clearTimeout(timeout));
  });
  try {
    await Promise.race([run(), tooLong]);
  } catch (error) {
    figures.problems[name] = /Timeout|not done after|not start in time/.test(error.message)
      ? `over ${limitMs / 1000} s`
      : error.message.split("\n")[0].slice(0, 90);
  } finally {
    timer.abort();
  }
  return !(name in figures.problems);
}

async function open(figures, viewer, prepared, page, processes, session) {
  const counted = await countBytes(session);
  const before = processes.cpuSeconds();
  const begun = performance.now();
  await page.goto(prepared.url, { waitUntil: "commit" });
  await viewer.ready(page);
  await twoFrames(page);
  figures.readyWallS = (performance.now() - begun) / 1000;
  figures.readyCpuS = processes.cpuSeconds() - before;
  await costUntilQuiet(processes, async () => undefined, limitMs);
  figures.restCpuS = processes.cpuSeconds() - before;
  figures.serverCpuS = prepared.processes
    ? prepared.processes.cpuSeconds() - prepared.cpuBefore
    : 0;
  figures.transferredKib = counted.bytes / 1024;
  const { heap, buffers } = await heapMemory(session);
  const { pss, rss } = processes.rendererMemory();
  Object.assign(figures, {
    heapMib: heap,
    buffersMib: buffers,
    pssMib: pss,
    rssMib: rss,
  });
}

async function moveAbout(figures, viewer, page, processes) {
  const keep = (name, costs) =>
    Object.assign(figures, {
      [`${name}P50Ms`]: percentile(costs, 0.5),
      [`${name}P95Ms`]: percentile(costs, 0.95),
    });
  await viewer.wake?.(page);
  await page.mouse.move(...(await viewer.at(page)));
  if (viewer.zoomStep) {
    keep("zoom", await frameCosts(page, processes, frameSteps, (i) => viewer.zoomStep(page, i)));
    for (let i = 0; i < 6; i++) await viewer.zoomStep(page, i);
    await twoFrames(page);
    keep("pan", await frameCosts(page, processes, frameSteps, (i) => viewer.pan(page, i)));
  }
  if (viewer.zoomClick) {
    const costs = [];
    for (let i = 0; i < 4; i++)
      costs.push((await costUntilQuiet(processes, () => viewer.zoomClick(page, i), limitMs)).cpuMs);
    figures.zoomClickMs = median(costs);
  }
}

async function searchFor(figures, viewer, page, processes, text) {
  await viewer.search?.(page);
  await costUntilQuiet(processes, async () => undefined, limitMs);
  const costs = [];
  for (let i = 0; i < text.length; i++) {
    const act = () =>
      viewer.type ? viewer.type(page, text.slice(0, i + 1)) : page.keyboard.press(text[i]);
    costs.push(await costUntilQuiet(processes, act, limitMs));
  }
  figures.searchCpuMs = median(costs.map((cost) => cost.cpuMs));
  figures.searchWallMs = median(costs.map((cost) => cost.wallMs));
}

async function transform(figures, viewer, page, processes, server, tree) {
  for (const [name, { run, undo }] of Object.entries(viewer.transforms)) {
    const before = server?.cpuSeconds() ?? 0;
    const cost = await costUntilQuiet(processes, () => run(page, tree), limitMs);
    figures[`${name}CpuMs`] = cost.cpuMs + ((server?.cpuSeconds() ?? 0) - before) * 1000;
    figures[`${name}WallMs`] = cost.wallMs;
    await undo(page);
    await costUntilQuiet(processes, async () => undefined, limitMs);
  }
}

async function measure(viewer, tree) {
  const figures = { problems: {} };
  let prepared = null;
  const isStarted = await part(
    figures,
    "ready",
    async () => (prepared = await viewer.start(tree, limitMs)),
  );
  if (!isStarted) return figures;
  try {
    await withBrowser(async (page, processes, session) => {
      if (
        !(await part(figures, "ready", () =>
          open(figures, viewer, prepared, page, processes, session),
        ))
      )
        return;
      if (process.env.BENCH_SHOTS)
        await page.screenshot({
          path: join(work, `${viewer.name.replace(/\W/g, "-")}-${tree.name}.png`),
        });
      if (viewer.at) await part(figures, "move", () => moveAbout(figures, viewer, page, processes));
      if (viewer.search || viewer.type)
        await part(figures, "search", () =>
          searchFor(figures, viewer, page, processes, tree.sought),
        );
      await page.keyboard.press("Escape");
      if (viewer.transforms)
        await part(figures, "transform", () =>
          transform(figures, viewer, page, processes, prepared.processes, tree),
        );
    });
  } finally {
    await prepared.stop();
  }
  return figures;
}

/** The cost of the page's own code for each step, without page and server. */
async function measureModel(site, tree, flameBytes) {
  site.files.set("/flame", {
    bytes: flameBytes,
    type: "application/octet-stream",
  });
  return withBrowser(async (page, processes) => {
    const figures = { problems: {} };
    await page.goto(`${site.url}/model.html`);
    await page.evaluate(async () => {
      globalThis.model = await import("/model.js");
      globalThis.bytes = await (await fetch("/flame")).arrayBuffer();
    });
    processes.hold();
    const cost = async (run, argument) => {
      const before = processes.fine().ran;
      await page.evaluate(run, argument);
      return processes.fine().ran - before;
    };
    figures.decodeMs = await cost(
      () => void (globalThis.flame = globalThis.model.decodeFlame(globalThis.bytes)),
    );
    figures.layoutMs = await cost(() => void globalThis.model.layOut(globalThis.flame, 1600));
    figures.firstSearchMs = await cost(
      (text) => globalThis.model.find(globalThis.flame, text),
      tree.sought.slice(0, 1),
    );
    const searches = [];
    for (let i = 2; i <= tree.sought.length; i++)
      searches.push(
        await cost(
          (text) => globalThis.model.find(globalThis.flame, text),
          tree.sought.slice(0, i),
        ),
      );
    figures.searchMs = median(searches);
    for (const action of ["hide", "focus"])
      figures[`${action}Ms`] = await cost(
        ([what, text]) => globalThis.model.transform(globalThis.flame, what, text),
        [action, `${tree.sought}7`],
      );
    return figures;
  });
}

/* ---- trees ---- */

const folder = join(work, "trees");

async function flameOf(server, bytes) {
  const { id } = await server.share(bytes);
  const response = await server.call("GET", `/api/v1/shares/${id}/flame`, {
    headers: { Accept: "application/vnd.perfolio.flame" },
  });
  if (response.status !== 200) throw new Error(`flame: ${response.status}`);
  return response.bytes;
}

const decode = (model, bytes) =>
  model.decodeFlame(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));

/** The trees with Perfolio's response for each; a generated tree must arrive complete. */
async function makeTrees(site) {
  mkdirSync(folder, { recursive: true });
  const model = await import(site.modelPath);
  const server = await Server.start();
  try {
    const trees = [];
    for (const nodeCount of sizes) {
      const tree = new StoredTree(folder, String(nodeCount), nodeCount, {
        make: () => makeTree(nodeCount),
      });
      tree.flame = await flameOf(server, tree.file("pprof"));
      const arrived = decode(model, tree.flame).nodeCount;
      if (arrived !== nodeCount) throw new Error(`${arrived} nodes of ${nodeCount} arrived`);
      trees.push(tree);
    }
    const real = join(
      process.env.PERFOLIO_SHARED ?? join(root, "../shared"),
      "data/pprof/large-cpu.pb.gz",
    );
    if (existsSync(real) && process.env.BENCH_REAL !== "0") {
      const bytes = readFileSync(real);
      const flame = await flameOf(server, bytes);
      const decoded = decode(model, flame);
      const tree = new StoredTree(folder, "real", decoded.nodeCount, {
        make: () => fromFlame(decoded),
        files: { pprof: real },
        sought: "malloc",
      });
      trees.push(Object.assign(tree, { flame }));
    }
    return trees;
  } finally {
    await server.stop();
  }
}

/* ---- the table ---- */

const columns = [
  ["readyCpuS", "CPU to ready, s", 2],
  ["serverCpuS", "server CPU, s", 2],
  ["restCpuS", "CPU to rest, s", 2],
  ["readyWallS", "wall to ready, s", 2],
  ["heapMib", "heap, MiB", 0],
  ["buffersMib", "buffers, MiB", 0],
  ["pssMib", "PSS, MiB", 0],
  ["rssMib", "RSS, MiB", 0],
  ["aboveBlankMib", "RSS above blank, MiB", 0],
  ["transferredKib", "wire, KiB", 0],
  ["panP50Ms", "pan p50, ms", 1],
  ["panP95Ms", "pan p95, ms", 1],
  ["zoomP50Ms", "zoom p50, ms", 1],
  ["zoomP95Ms", "zoom p95, ms", 1],
  ["zoomClickMs", "zoom by press, ms", 0],
  ["searchCpuMs", "search CPU, ms", 0],
  ["searchWallMs", "search wall, ms", 0],
  ["hideCpuMs", "hide CPU, ms", 0],
  ["hideWallMs", "hide wall, ms", 0],
  ["focusCpuMs", "focus CPU, ms", 0],
  ["focusWallMs", "focus wall, ms", 0],
];
const modelColumns = [
  ["decodeMs", "decode, CPU ms", 1],
  ["layoutMs", "first layout, CPU ms", 1],
  ["firstSearchMs", "first search, CPU ms", 1],
  ["searchMs", "search, CPU ms", 1],
  ["hideMs", "hide, CPU ms", 1],
  ["focusMs", "focus, CPU ms", 1],
];

function together(all) {
  const joined = {
    problems: Object.assign({}, ...all.map((one) => one.problems)),
  };
  for (const key of new Set(all.flatMap((one) => Object.keys(one))))
    if (key !== "problems") joined[key] = median(all.map((one) => one[key] ?? NaN));
  return joined;
}

const shown = (value, digits) => (Number.isFinite(value) ? value.toFixed(digits) : "-");

function printTable(names, byName, lines) {
  const width = Math.max(24, ...lines.map(([, title]) => title.length));
  console.log(
    "".padEnd(width) + names.map((name) => name.padStart(Math.max(12, name.length + 2))).join(""),
  );
  for (const [key, title, digits] of lines)
    console.log(
      title.padEnd(width) +
        names
          .map((name) =>
            shown(byName.get(name)[key], digits).padStart(Math.max(12, name.length + 2)),
          )
          .join(""),
    );
  for (const name of names)
    for (const [where, problem] of Object.entries(byName.get(name).problems))
      console.log(`  ${name}, ${where}: ${problem}`);
}

const csv = [["tree", "nodes", "viewer", "figure", "value"]];

function keep(tree, viewer, figures, lines) {
  for (const [key, title] of lines)
    if (Number.isFinite(figures[key]))
      csv.push([tree.name, tree.nodeCount, viewer, title, figures[key].toFixed(3)]);
  for (const [where, problem] of Object.entries(figures.problems))
    csv.push([tree.name, tree.nodeCount, viewer, `problem: ${where}`, problem]);
}

/* ---- goals ---- */

function goal(tree, text, value, most, unit = "") {
  if (!Number.isFinite(value)) return console.log(`  goal ${text}: not measured`);
  const isMet = value <= most;
  console.log(
    `  goal ${text}: ${value.toFixed(most < 1 ? 3 : 1)}${unit}, at most ${most}${unit}: ` +
      (isMet ? "met" : "MISSED"),
  );
  csv.push([
    tree.name,
    tree.nodeCount,
    "goal",
    text,
    `${value.toFixed(3)} of ${most}${isMet ? "" : " MISSED"}`,
  ]);
}

function checkGoals(tree, byName, model) {
  const ours = byName.get("Perfolio");
  if (!ours) return;
  const cpu = (figures) => figures?.readyCpuS + figures?.serverCpuS;
  const memory = (figures) => figures?.heapMib + figures?.buffersMib;
  const compare = (name, most, words) => {
    const other = byName.get(name);
    goal(tree, `CPU, share of ${name}'s (${words})`, cpu(ours) / cpu(other), most);
    goal(
      tree,
      `heap and buffers, share of ${name}'s (${words})`,
      memory(ours) / memory(other),
      most,
    );
    // The process as a whole is what a system gives up; a viewer can only influence the part above
    // a page without scripts.
    goal(
      tree,
      `RSS of the renderer, share of ${name}'s (${words})`,
      ours.rssMib / other?.rssMib,
      most,
    );
    goal(
      tree,
      `RSS above a blank page's, share of ${name}'s (${words})`,
      ours.aboveBlankMib / other?.aboveBlankMib,
      most,
    );
  };
  if (tree.nodeCount >= 1_000_000) {
    compare("speedscope", 0.1, "a tenth");
    compare("@grafana/flamegraph", 0.333, "a third");
    goal(tree, "decode and layout", model.decodeMs + model.layoutMs, 170, " ms");
    goal(tree, "pan frame p50", ours.panP50Ms, 16, " ms");
    goal(tree, "zoom frame p50", ours.zoomP50Ms, 16, " ms");
  }
  if (tree.nodeCount >= 100_000) {
    const isLarge = tree.nodeCount >= 1_000_000;
    goal(tree, "search", model.searchMs, isLarge ? 30 : 10, " ms");
    for (const name of ["hide", "focus"])
      goal(tree, `${name} in the Worker`, model[`${name}Ms`], isLarge ? 300 : 50, " ms");
  }
}

/* ---- main ---- */

function viewersFor(site) {
  const blank = {
    name: "(blank page)",
    start: async () => ({
      url: `${site.url}/blank.html`,
      processes: null,
      stop: async () => undefined,
    }),
    ready: async () => undefined,
  };
  const all = [blank, perfolio];
  if (site.problem) console.log(`(the other viewers could not be installed: ${site.problem})`);
  else all.push(speedscope(site), grafana(site), d3(site));
  const program = findPprof();
  if (program) all.push(pprof(program));
  else console.log("(no Go here: go tool pprof is not measured)");
  const wanted = list("BENCH_VIEWERS", "");
  return all.filter(
    (viewer) =>
      !wanted.length ||
      wanted.some((name) => viewer.name.toLowerCase().startsWith(name.toLowerCase())),
  );
}

const site = await Site.open();
try {
  const trees = await makeTrees(site);
  const viewers = viewersFor(site);
  for (const tree of trees) {
    const raw = new Map(viewers.map((viewer) => [viewer.name, []]));
    const models = [];
    // The viewers are measured alternately, so that other load on the host affects all of them.
    for (let round = 0; round < rounds; round++) {
      for (const viewer of viewers) raw.get(viewer.name).push(await measure(viewer, tree));
      models.push(await measureModel(site, tree, tree.flame));
    }
    const byName = new Map([...raw].map(([name, all]) => [name, together(all)]));
    const blank = byName.get("(blank page)")?.rssMib;
    for (const figures of byName.values()) figures.aboveBlankMib = figures.rssMib - blank;
    const model = together(models);
    console.log(
      `\n${tree.name === "real" ? "a real profile" : "generated"}: ` +
        `${tree.nodeCount.toLocaleString("en-US")} nodes, median of ${rounds}`,
    );
    printTable([...byName.keys()], byName, columns);
    printTable(["alone"], new Map([["alone", model]]), modelColumns);
    for (const [name, figures] of byName) keep(tree, name, figures, columns);
    keep(tree, "Perfolio, alone", model, modelColumns);
    checkGoals(tree, byName, model);
  }
} finally {
  site.close();
  writeFileSync(
    join(work, "results.csv"),
    csv
      .map((row) =>
        row
          .map((cell) => (/[",]/.test(cell) ? `"${String(cell).replaceAll('"', '""')}"` : cell))
          .join(","),
      )
      .join("\n") + "\n",
  );
}

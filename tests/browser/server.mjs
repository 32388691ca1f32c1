// A real perfoliod with its own data folder, on a free port, for one run of the browser tests.
import { spawn } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { request } from "node:https";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

export const program = join(root, "build", process.env.BUILD ?? "release", "perfoliod");

const isFree = (port, host) =>
  new Promise((resolve) => {
    const probe = createServer();
    // an address family that is missing counts as free
    probe.on("error", ({ code }) => resolve(code !== "EADDRINUSE"));
    probe.listen(port, host, () => probe.close(() => resolve(true)));
  });

/** Below the range of ephemeral ports, so that no client connection takes it before the server. */
async function freePort() {
  for (let i = 0; i < 200; i++) {
    const port = 10240 + Math.floor(Math.random() * (32768 - 10240));
    if ((await isFree(port, "127.0.0.1")) && (await isFree(port, "::1"))) return port;
  }
  throw new Error("no free port between 10240 and 32767");
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Server {
  /** Starts build/$BUILD/perfoliod and waits until it is ready. */
  static async start() {
    const server = new Server();
    // Accessible to the user that the server switches to.
    server.folder = mkdtempSync("/tmp/perfolio-browser-");
    chmodSync(server.folder, 0o755);
    server.dataDir = join(server.folder, "data");
    server.port = await freePort();
    server.url = `https://localhost:${server.port}`;
    server.logPath = join(server.folder, "server.log");
    const log = openSync(server.logPath, "a");
    const environment = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !name.startsWith("PERFOLIO_")),
    );
    environment.PERFOLIO_DEBUGINFOD_URLS = "off"; // tests send no requests to the internet
    environment.PERFOLIO_PASSWORDS_PER_MINUTE = "1000000"; // all tests sign in from one address
    // Cheap password hashes (tests/preload/cheap_scrypt.c); sanitizer builds have no such library.
    const preload = join(dirname(program), "tests/preload/cheap_scrypt.so");
    if (existsSync(preload)) {
      environment.LD_PRELOAD = join(server.folder, "cheap_scrypt.so");
      copyFileSync(preload, environment.LD_PRELOAD);
    }
    const settings = ["--data-dir", server.dataDir, "--listen", `localhost:${server.port}`];
    server.process = spawn(program, ["serve", ...settings], {
      stdio: ["ignore", log, log],
      env: environment,
    });
    await server.waitReady();
    return server;
  }

  async waitReady() {
    const deadline = Date.now() + 180_000;
    while (Date.now() < deadline) {
      if (this.process.exitCode !== null) throw new Error(`perfoliod ended:\n${this.log()}`);
      const isReady =
        existsSync(join(this.dataDir, "admin.token")) &&
        (await this.call("GET", "/readyz").catch(() => null))?.status === 200;
      if (isReady) return;
      await pause(100);
    }
    throw new Error(`perfoliod is not ready:\n${this.log()}`);
  }

  log() {
    return existsSync(this.logPath) ? readFileSync(this.logPath, "utf8").slice(-4000) : "";
  }

  get token() {
    return readFileSync(join(this.dataDir, "admin.token"), "utf8").trim();
  }

  /** Sends one request; body is bytes, or an object that is sent as JSON. */
  call(method, path, { body, token, headers = {} } = {}) {
    const isJson = body !== undefined && !Buffer.isBuffer(body);
    const bytes = isJson ? Buffer.from(JSON.stringify(body)) : body;
    const fields = {
      ...headers,
      ...(isJson ? { "Content-Type": "application/json" } : {}),
      ...(token ? { Authorization: `Bearer ${token}` } : {}),
    };
    return new Promise((resolve, reject) => {
      const sent = request(
        this.url + path,
        {
          method,
          headers: fields,
          ca: readFileSync(join(this.dataDir, "tls/ca.crt")),
        },
        (response) => {
          const parts = [];
          response.on("data", (part) => parts.push(part));
          response.on("end", () => {
            const content = Buffer.concat(parts);
            const isText = (response.headers["content-type"] ?? "").includes("json");
            resolve({
              status: response.statusCode,
              headers: response.headers,
              bytes: content,
              json: isText ? JSON.parse(content) : null,
            });
          });
        },
      );
      sent.on("error", reject);
      sent.setTimeout(120_000, () => sent.destroy(new Error("no response")));
      sent.end(bytes);
    });
  }

  /** Shares bytes; settings are query parameters. As the admin by default. */
  async share(bytes, settings = {}, { isAnonymous = false, headers = {} } = {}) {
    const path = "/api/v1/shares?" + new URLSearchParams(settings);
    const response = await this.call("POST", path, {
      body: bytes,
      token: isAnonymous ? undefined : this.token,
      headers,
    });
    if (response.status !== 201) throw new Error(`share: ${response.status} ${response.bytes}`);
    return response.json;
  }

  /** A one-time sign-in link for the admin. */
  async signInLink() {
    const response = await this.call("POST", "/api/v1/admin/login-codes", {
      body: {},
      token: this.token,
    });
    if (response.status !== 201)
      throw new Error(`login code: ${response.status} ${response.bytes}`);
    return response.json.url;
  }

  async stop() {
    if (this.process.exitCode === null) {
      const ended = new Promise((resolve) => this.process.once("exit", resolve));
      this.process.kill("SIGTERM");
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
    return this.process.exitCode;
  }
}

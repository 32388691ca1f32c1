// A small substitute for the server, for work on the pages alone: `npm run dev` in web/. It serves
// web/dist and made-up responses on http://localhost:7850; nothing is stored.
import { createServer } from "node:http";
import { readFileSync, existsSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { encodeFlame } from "../../web/test/encode_flame.mjs";

const dist = join(dirname(fileURLToPath(import.meta.url)), "../../web/dist");
const port = Number(process.env.PORT ?? 7850);
const contentTypes = {
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".html": "text/html",
};
const csp =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' " +
  "data:; " +
  "form-action 'self'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const packages = [
  ["main", ["main", "run", "handleRequest", "(*server).serve", "renderPage", "loadConfig"]],
  [
    "net/http",
    [
      "(*conn).serve",
      "HandlerFunc.ServeHTTP",
      "(*ServeMux).ServeHTTP",
      "(*response).Write",
      "readRequest",
    ],
  ],
  [
    "encoding/json",
    [
      "Marshal",
      "(*encodeState).marshal",
      "(*decodeState).object",
      "structEncoder.encode",
      "Unmarshal",
    ],
  ],
  [
    "runtime",
    [
      "mallocgc",
      "gcBgMarkWorker",
      "scanobject",
      "memmove",
      "mapaccess2_faststr",
      "growslice",
      "schedule",
    ],
  ],
  [
    "compress/flate",
    ["(*compressor).deflate", "(*compressor).findMatch", "(*huffmanBitWriter).write"],
  ],
  [
    "github.com/acme/store",
    ["(*DB).Query", "(*Tx).Commit", "decodeRow", "(*Cache).Get", "hashKey"],
  ],
  ["crypto/tls", ["(*Conn).Write", "(*halfConn).encrypt", "(*Conn).readRecord"]],
];

let seed = 12345;
const random = () => {
  seed ^= seed << 13;
  seed ^= seed >>> 17;
  seed ^= seed << 5;
  return (seed >>> 0) / 2 ** 32;
};

function grow(depth, value, isDiff) {
  const [part, names] = packages[Math.floor(random() * packages.length)];
  const node = {
    name: `${part}.${names[Math.floor(random() * names.length)]}`,
    file: `/src/${part}/${part.split("/").pop()}.go`,
    line: 10 + Math.floor(random() * 900),
    mapping: "/usr/bin/shop",
    children: [],
    self: 0,
    base: 0,
  };
  let rest = value;
  const most = depth > 26 ? 0 : 1 + Math.floor(random() * 4);
  for (let i = 0; i < most && rest > value * 0.06 && rest > 3_000_000; i++) {
    const share = Math.floor(rest * (0.25 + 0.68 * random()));
    node.children.push(grow(depth + 1, share, isDiff));
    rest -= share;
  }
  node.self = rest;
  node.base = rest;
  if (isDiff && random() < 0.3)
    node.base = random() < 0.15 ? 0 : Math.round(rest * (0.4 + 1.4 * random()));
  if (isDiff && random() < 0.03) node.self = 0;
  return node;
}

const types = [
  { type: "cpu", unit: "nanoseconds" },
  { type: "alloc_space", unit: "bytes" },
  { type: "samples", unit: "count" },
];

function flame(query, isDiff) {
  seed = 12345 + (types.findIndex((type) => type.type === query.get("sample_type")) + 1);
  const type = types.find((one) => one.type === query.get("sample_type")) ?? types[0];
  const root = {
    name: "root",
    self: 0,
    base: 0,
    children: [1, 2, 3].map((i) => grow(1, 8_200_000_000 / i, isDiff)),
  };
  return encodeFlame(root, {
    isDiff,
    metadata: {
      sample_type: type.type,
      unit: type.unit,
      sample_types: types,
      group_by: query.get("group_by") ?? "function",
    },
  });
}

const share = (id, title) => ({
  id,
  url: `http://localhost:${port}/p/${id}`,
  raw_url: `http://localhost:${port}/p/${id}/raw`,
  title,
  description:
    "Checkout under load, **30 s** at 400 requests/s.\n\n- `GOMAXPROCS=8`, commit " +
    "[a1b2c3d](https://example.org/a1b2c3d)\n- the JSON encoder looks heavy",
  visibility: "unlisted",
  created_at: new Date(Date.now() - 7.3e6).toISOString(),
  expires_at: new Date(Date.now() + 3e10).toISOString(),
  views: 42,
  format: "pprof",
  filename: "checkout-cpu.pb.gz",
  raw_bytes: 284_512,
  sample_types: types,
  default_sample_type: "cpu",
  sample_count: 18_211,
  duration_ns: 30e9,
  time_ns: (Date.now() - 8e6) * 1e6,
  labels: { env: "staging", service: "checkout" },
  comments: [],
  build_ids: [],
  can_edit: true,
  mine: true,
});

let isSignedIn = true;
const session = () =>
  isSignedIn
    ? {
        kind: "user",
        user: {
          id: 1,
          email: "ada@example.org",
          name: "Ada",
          has_password: true,
        },
        tenant: { id: 2, name: "Acme" },
        role: "owner",
        scopes: ["ingest", "read", "share", "debuginfo", "admin"],
        csrf_token: "x",
        anonymous_sharing: true,
        has_local_ca: false,
        limits: { max_upload_bytes: 268435456 },
      }
    : {
        kind: "anonymous",
        tenant: null,
        role: "none",
        scopes: [],
        csrf_token: null,
        anonymous_sharing: true,
        has_local_ca: false,
        limits: { max_upload_bytes: 268435456 },
      };

const ago = (days) => new Date(Date.now() - days * 86.4e6).toISOString();
const lists = {
  "/api/v1/shares": () => ({
    shares: ["Checkout under load", "Nightly benchmark", "Before the new encoder", "Leak hunt"].map(
      (title, i) => ({
        ...share("ABCDEFGHIJKLMNOPQRSTU" + i, title),
        created_at: ago(i * 2 + 0.1),
      }),
    ),
    next_cursor: null,
  }),
  "/api/v1/tokens": () => ({
    tokens: [
      {
        id: 1,
        name: "ci",
        scopes: ["share"],
        created_at: ago(40),
        expires_at: null,
        last_used_at: ago(0.2),
      },
    ],
  }),
  "/api/v1/users": () => ({
    users: [
      {
        id: 1,
        email: "ada@example.org",
        name: "Ada",
        role: "owner",
        is_me: true,
        last_sign_in_at: ago(0.1),
      },
      {
        id: 2,
        email: "brian@example.org",
        name: "Brian",
        role: "member",
        is_me: false,
        last_sign_in_at: null,
      },
    ],
  }),
  "/api/v1/invitations": () => ({
    invitations: [
      {
        id: 1,
        email: "new@example.org",
        role: "viewer",
        expires_at: new Date(Date.now() + 5e8).toISOString(),
      },
    ],
  }),
  "/api/v1/tenant": () => ({
    id: 2,
    name: "Acme",
    usage: { bytes_stored: 3.2e9 },
    quotas: {
      max_bytes_stored: 1e10,
      uploads_per_minute: 60,
      max_upload_bytes: 2.6e8,
    },
  }),
  "/api/v1/audit": () => ({
    entries: [1, 2, 3].map((id) => ({
      id,
      at: ago(id),
      actor: "ada@example.org",
      action: "share.create",
      target: "ABCDEFGHIJKLMNOPQRSTU1",
      address: "192.0.2.7",
    })),
    next_cursor: null,
  }),
};

function respond(request, response, body) {
  const url = new URL(request.url, "http://localhost");
  const json = (value, status = 200) => {
    response.writeHead(status, {
      "Content-Type": status < 400 ? "application/json" : "application/problem+json",
    });
    response.end(JSON.stringify(value));
  };
  const bytes = (value) => {
    response.writeHead(200, {
      "Content-Type": "application/vnd.perfolio.flame",
    });
    response.end(value);
  };
  const { pathname, searchParams } = url;
  if (pathname === "/api/v1/session") {
    if (request.method !== "GET") isSignedIn = request.method === "POST";
    return json(session());
  }
  if (request.method === "POST" && pathname === "/api/v1/shares") {
    const id = "ABCDEFGHIJKLMNOPQRSTU0";
    return json(
      {
        ...share(id, ""),
        delete_token: "t",
        delete_url: `http://localhost:${port}/p/${id}/delete#t`,
        markdown: `[Profile](http://localhost:${port}/p/${id})`,
      },
      201,
    );
  }
  if (pathname.endsWith("/flame")) return bytes(flame(searchParams, false));
  if (pathname === "/api/v1/diff") return bytes(flame(searchParams, true));
  if (lists[pathname] && request.method === "GET") return json(lists[pathname]());
  const one = /^\/api\/v1\/shares\/(\w+)$/.exec(pathname);
  if (one?.[1].startsWith("gone"))
    return json(
      {
        type: "/problems/gone",
        title: "Gone",
        status: 410,
        detail: "the share has expired",
      },
      410,
    );
  if (one?.[1].startsWith("locked"))
    return json({ type: "/problems/unauthenticated", title: "Password", status: 401 }, 401);
  if (one)
    return json(
      share(one[1], one[1].endsWith("1") ? "Checkout after the fix" : "Checkout under load"),
    );
  if (pathname.startsWith("/api/"))
    return json(
      {
        type: "/problems/not_found",
        title: "Not found",
        status: 404,
        detail: "no such thing",
        request_id: "r-1",
      },
      404,
    );
  const file = join(dist, pathname);
  const name = pathname !== "/" && existsSync(file) ? file : join(dist, "index.html");
  response.writeHead(200, {
    "Content-Type": contentTypes[extname(name)] ?? "application/octet-stream",
    "Content-Security-Policy": csp,
  });
  response.end(readFileSync(name));
}

createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => respond(request, response, Buffer.concat(parts)));
}).listen(port, "localhost", () =>
  console.log(`http://localhost:${port}/p/ABCDEFGHIJKLMNOPQRSTU0`),
);

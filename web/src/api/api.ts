/*
 * api: requests of session, shares, trees, tables and labels. Only the modules in this folder talk
 * to the server.
 *
 * Responses are JSON or the binary form of a tree. An error is thrown as a Problem (RFC 9457).
 */
import {
  decodeFlame,
  FlameVersionError,
  type Flame,
  type SampleType,
  type Symbolization,
} from "../model/tree/flame.ts";
import type { FunctionSums } from "../model/functions/functions.ts";
import type { LabelsResponse, LabelsRequest } from "../model/rules/labels.ts";
import type { ServedRequest } from "../model/rules/served_rules.ts";

export class Problem extends Error {
  constructor(
    readonly status: number,
    /** The last part of the problem's type, such as "not_found"; "" without one. */
    readonly kind: string,
    readonly title: string,
    readonly detail: string,
    readonly requestId: string,
    readonly retryAfter: number | null,
  ) {
    super(detail || title);
  }
}

export type Visibility = "public" | "unlisted" | "team" | "password";

export interface Share {
  id: string;
  url: string;
  raw_url: string;
  title: string;
  description: string;
  visibility: Visibility;
  created_at: string;
  expires_at: string | null;
  views: number;
  format: string;
  filename: string;
  raw_bytes: number;
  sample_types: SampleType[];
  /** One total per sample type; null if the sum exceeds the range. */
  totals: (number | null)[];
  default_sample_type: string;
  default_sample_type_index: number;
  sample_count: number;
  duration_ns: number;
  time_ns: number;
  labels: Record<string, string>;
  comments: string[];
  build_ids: string[];
  /** Labels of the samples; absent for profiles uploaded before the server listed them. */
  sample_labels?: string[];
  /** Number of comments by readers; `comments` are in the file. */
  reader_comments?: number;
  /** Missing symbol names; absent for profiles uploaded before the server recorded them. */
  symbolization?: Symbolization;
  can_edit: boolean;
  mine: boolean;
}

export interface Created {
  id: string;
  url: string;
  raw_url: string;
  delete_token: string;
  delete_url: string;
  expires_at: string | null;
  markdown: string;
}

export interface ShareSettings {
  title?: string;
  description?: string;
  expires?: string;
  visibility?: Visibility;
  password?: string;
  filename?: string;
}

export interface Session {
  kind: string;
  user?: { id: number; email: string; name: string; has_password: boolean };
  tenant: { id: number; name: string } | null;
  role: string;
  scopes: string[];
  csrf_token: string | null;
  anonymous_sharing: boolean;
  /** The server uses its own certificate authority; its certificate is at /ca.crt. */
  has_local_ca: boolean;
  limits: { max_upload_bytes: number };
}

/** The session to assume if the server reports none. */
export const anonymousSession: Session = {
  kind: "anonymous",
  tenant: null,
  role: "none",
  scopes: [],
  csrf_token: null,
  anonymous_sharing: true,
  has_local_ca: false,
  limits: { max_upload_bytes: 0 },
};

let csrfToken = "";
/** The CSRF token for requests by XMLHttpRequest. */
export const csrf = (): string => csrfToken;

let sessionPromise: Promise<Session> | null = null;

export async function problemOf(response: Response): Promise<Problem> {
  let body: Record<string, unknown> = {};
  try {
    const parsed: unknown = await response.json();
    if (typeof parsed === "object" && parsed !== null) body = parsed as Record<string, unknown>;
  } catch {
    // The response of a proxy may not be JSON. Then the status is reported.
  }
  const text = (name: string) => (typeof body[name] === "string" ? (body[name] as string) : "");
  const retry = Number(response.headers.get("Retry-After"));
  return new Problem(
    response.status,
    text("type").replace(/^.*\//, "").replaceAll("-", "_"),
    text("title") || response.statusText || "Something went wrong",
    text("detail"),
    text("request_id") || response.headers.get("X-Request-Id") || "",
    retry > 0 ? retry : null,
  );
}

/** The pages are from another version of the server and cannot read its responses. */
const outdated = () => new Problem(0, "updated", "", "", "", null);

export async function request(path: string, options: RequestInit = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  const method = options.method ?? "GET";
  if (csrfToken && method !== "GET") headers.set("X-CSRF-Token", csrfToken);
  let response: Response;
  try {
    response = await fetch(path, { ...options, headers, credentials: "same-origin" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(
      0,
      "offline",
      "The server cannot be reached",
      "Check the connection and try again.",
      "",
      null,
    );
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

/**
 * Why a script of this site could not be loaded. Browsers word this failure differently, so the
 * server is contacted. If it responds, it has other scripts by now, or the browser refuses a second
 * request; in both cases the page must be reloaded.
 */
export const lostScript = (): Promise<Problem> =>
  request("/", { method: "HEAD", cache: "no-store" }).then(outdated, (problem: Problem) => problem);

export async function getJson<T>(
  path: string,
  signal?: AbortSignal,
  headers: Record<string, string> = {},
): Promise<T> {
  return (
    await request(path, { signal, headers: { ...headers, Accept: "application/json" } })
  ).json() as Promise<T>;
}

export async function sendJson<T>(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<T> {
  const options: RequestInit = { method, headers: { ...headers, Accept: "application/json" } };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = { ...options.headers, "Content-Type": "application/json" };
  }
  const response = await request(path, options);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

const share = (id: string) => `/api/v1/shares/${encodeURIComponent(id)}`;

export function queryOf(
  parameters: Record<string, string | number | readonly string[] | undefined | null>,
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    if (Array.isArray(value)) for (const one of value) query.append(name, one);
    else if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
  const text = query.toString();
  return text ? "?" + text : "";
}

/* ---- session ---- */

export function getSession(): Promise<Session> {
  sessionPromise ??= getJson<Session>("/api/v1/session").then((session) => {
    csrfToken = session.csrf_token ?? "";
    return session;
  });
  return sessionPromise;
}

export async function signIn(
  credentials: { email: string; password: string } | { code: string },
): Promise<void> {
  const response = await sendJson<Session>("POST", "/api/v1/session", credentials);
  csrfToken = response.csrf_token ?? "";
  sessionPromise = null;
}

export async function signOut(): Promise<void> {
  await getSession();
  await sendJson("DELETE", "/api/v1/session");
}

/**
 * Unsafe requests with a cookie carry the CSRF token of the session, so the session is loaded
 * first.
 */
export async function change<T>(
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
): Promise<T> {
  await getSession().catch(() => undefined);
  return sendJson<T>(method, path, body, headers);
}

/* ---- shares ---- */

export const getShare = (id: string) => getJson<Share>(share(id));

export const unlockShare = (id: string, password: string) =>
  change<void>("POST", `${share(id)}/unlock`, { password });

/** The delete token permits changing and deleting without a session. */
const withToken = (deleteToken: string): Record<string, string> =>
  deleteToken ? { "X-Perfolio-Delete-Token": deleteToken } : {};

export const editShare = (id: string, settings: ShareSettings, deleteToken: string) =>
  change<Share | undefined>("PATCH", share(id), settings, withToken(deleteToken));

export const deleteShare = (id: string, deleteToken: string) =>
  change<void>("DELETE", share(id), undefined, withToken(deleteToken));

export const reportShare = (id: string, reason: string) =>
  change<void>("POST", `${share(id)}/reports`, { reason });

export interface SharePage {
  shares: Share[];
  next_cursor: string | null;
}

export const listShares = (search: string, cursor: string, signal?: AbortSignal) =>
  getJson<SharePage>("/api/v1/shares" + queryOf({ q: search, cursor, limit: 50 }), signal);

export interface FlameQuery {
  sampleType: string;
  group: string;
  /** Path hash of the root node of the requested tree; "" for the whole tree. Trees only. */
  root?: string;
  /** Rules of model/rules/labels.ts. */
  labels: readonly string[];
  /** NameMode of view_state.ts. */
  names: string;
  /** Rules that the server applies. */
  rules?: ServedRequest;
}

export async function getFlameAt(
  path: string,
  signal: AbortSignal,
  onResponse?: (response: Response) => void,
): Promise<Flame> {
  const response = await request(path, {
    signal,
    headers: { Accept: "application/vnd.perfolio.flame" },
  });
  onResponse?.(response);
  const bytes = await response.arrayBuffer();
  try {
    return decodeFlame(bytes);
  } catch (error) {
    throw error instanceof FlameVersionError ? outdated() : error;
  }
}

const unless = (usual: string, word: string) => (word === usual ? "" : word);
const namesParameter = ({ names }: { names: string }) => unless("simple", names);

/** Parameters of every report. */
export const viewParameters = (query: FlameQuery) => ({
  sample_type: query.sampleType,
  group_by: unless("function", query.group),
  names: namesParameter(query),
  label: query.labels,
  ...query.rules,
});

export const diffMode = ({ isNormalised }: { isNormalised: boolean }) =>
  isNormalised ? "normalised" : "absolute";

export const getFlame = (id: string, query: FlameQuery, signal: AbortSignal) =>
  getFlameAt(
    `${share(id)}/flame` + queryOf({ ...viewParameters(query), root: query.root }),
    signal,
  );

export const getDiff = (
  a: string,
  b: string,
  query: FlameQuery & { isNormalised: boolean },
  signal: AbortSignal,
) =>
  getFlameAt(
    "/api/v1/diff" +
      queryOf({ a, b, ...viewParameters(query), mode: diffMode(query), root: query.root }),
    signal,
  );

interface TopResponse {
  functions: { name: string; file: string; flat: number; cum: number }[];
}
interface DiffTopResponse {
  functions: {
    name: string;
    file: string;
    flat_a: number;
    flat_b: number;
    cum_a: number;
    cum_b: number;
  }[];
}

/** All rows of the table, counted by the server; for truncated trees. */
export async function getTopAt(path: string, signal: AbortSignal): Promise<FunctionSums[]> {
  const response = await getJson<TopResponse>(path, signal);
  return response.functions.map(({ name, file, flat, cum }) => ({
    name,
    file,
    flat,
    cum,
    baseFlat: 0,
    baseCum: 0,
  }));
}

export async function getDiffTopAt(path: string, signal: AbortSignal): Promise<FunctionSums[]> {
  const response = await getJson<DiffTopResponse>(path, signal);
  return response.functions.map((row) => ({
    name: row.name,
    file: row.file,
    flat: row.flat_b,
    cum: row.cum_b,
    baseFlat: row.flat_a,
    baseCum: row.cum_a,
  }));
}

export const getTop = (id: string, query: FlameQuery, signal: AbortSignal) =>
  getTopAt(`${share(id)}/top${queryOf({ ...viewParameters(query), limit: 0 })}`, signal);

export const getDiffTop = (
  a: string,
  b: string,
  query: FlameQuery & { isNormalised: boolean },
  signal: AbortSignal,
) =>
  getDiffTopAt(
    "/api/v1/diff/top" +
      queryOf({ a, b, ...viewParameters(query), mode: diffMode(query), limit: 0 }),
    signal,
  );

/** The selection whose labels are counted. */
export type LabelsQuery = Pick<FlameQuery, "sampleType" | "names">;

export const labelParameters = (
  query: LabelsQuery,
  { rules, ...labelsRequest }: LabelsRequest,
) => ({
  ...labelsRequest,
  sample_type: query.sampleType,
  names: namesParameter(query),
  label: rules,
});

export const getLabels = (
  id: string,
  query: LabelsQuery,
  labelsRequest: LabelsRequest,
  signal: AbortSignal,
) =>
  getJson<LabelsResponse>(
    `${share(id)}/labels` + queryOf(labelParameters(query, labelsRequest)),
    signal,
  );

export const getDiffLabels = (
  a: string,
  b: string,
  query: LabelsQuery & { isNormalised: boolean },
  labelsRequest: LabelsRequest,
  signal: AbortSignal,
) =>
  getJson<LabelsResponse>(
    "/api/v1/diff/labels" +
      queryOf({ a, b, mode: diffMode(query), ...labelParameters(query, labelsRequest) }),
    signal,
  );

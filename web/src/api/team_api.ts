/*
 * team_api: requests of the settings and of the pages for invitations. Separate from api.ts because
 * readers of a share do not need it.
 *
 * A list or object that several people may change is a Part. It has a version. A change contains
 * the version that the reader saw and is refused with 412 if someone else has changed the part
 * since.
 */
import { change, getJson, queryOf, request, sendJson, type Session } from "./api.ts";
import type { ListEntry } from "../model/account/settings_changes.ts";
import type { SourceRule } from "../model/symbols/source_link.ts";
import { describeRetention } from "../model/account/retention_text.ts";

export interface Part<T> {
  path: string;
  /** The items of the value as text, to report how two versions differ. */
  entriesOf: (value: T) => ListEntry[];
}

/** version: "" for a part whose items are only created and deleted. */
export async function readPart<T>({ path }: Part<T>): Promise<{ value: T; version: string }> {
  const response = await request(path, { headers: { Accept: "application/json" } });
  return { value: (await response.json()) as T, version: response.headers.get("ETag") ?? "" };
}

const ifMatch = (version: string): Record<string, string> =>
  version ? { "If-Match": version } : {};

/* ---- tokens: never changed, so a change cannot undo another one ---- */

export interface Token {
  id: number;
  name: string;
  scopes: string[];
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
  token?: string;
}

export const tokensPart: Part<{ tokens: Token[] }> = {
  path: "/api/v1/tokens",
  entriesOf: ({ tokens }) =>
    tokens.map(({ id, name, scopes }) => ({
      key: id,
      name: `Token “${name}”`,
      text: scopes.join(", "),
    })),
};
export const createToken = (name: string, scopes: readonly string[], expires: string) =>
  change<Token>("POST", tokensPart.path, { name, scopes, expires });
export const revokeToken = (id: number) => change<void>("DELETE", `${tokensPart.path}/${id}`);

/* ---- people ---- */

export interface User {
  id: number;
  email: string;
  name: string;
  role: string;
  last_sign_in_at: string | null;
  is_me: boolean;
}

export const peoplePart: Part<{ users: User[] }> = {
  path: "/api/v1/users",
  entriesOf: ({ users }) =>
    users.map(({ id, email, role }) => ({ key: id, name: email, text: role })),
};
export const changeRole = (id: number, role: string, version: string) =>
  change<void>("PATCH", `${peoplePart.path}/${id}`, { role }, ifMatch(version));
export const removeUser = (id: number, version: string) =>
  change<void>("DELETE", `${peoplePart.path}/${id}`, undefined, ifMatch(version));

/* ---- invitations: a new one to the same address replaces the older one ---- */

/** The content of an invitation, as shown to the holder of its link. */
export interface Invited {
  email: string;
  role: string;
  /** The server sends build ids of the team's binaries to public debuginfod servers. */
  queries_public_debuginfod: boolean;
}

export interface Invitation {
  id: number;
  email: string;
  role: string;
  expires_at: string;
  /** Contained only in the response that created the invitation. */
  url?: string;
}

export const invitationsPart: Part<{ invitations: Invitation[] }> = {
  path: "/api/v1/invitations",
  entriesOf: ({ invitations }) =>
    invitations.map(({ id, email, role }) => ({
      key: id,
      name: `Invitation of ${email}`,
      text: role,
    })),
};
export const invite = (email: string, role: string, version: string) =>
  change<Invitation>("POST", invitationsPart.path, { email, role }, ifMatch(version));
export const withdrawInvitation = (id: number) =>
  change<void>("DELETE", `${invitationsPart.path}/${id}`);
export const getInvitation = (token: string) =>
  sendJson<Invited>("POST", `${invitationsPart.path}/look`, { token });
export const acceptInvitation = (token: string, name: string, password: string) =>
  sendJson<Session>("POST", `${invitationsPart.path}/accept`, { token, name, password });

/* ---- password ---- */

export const changePassword = (old: string, fresh: string) =>
  change<void>("POST", "/api/v1/password", old ? { old, new: fresh } : { new: fresh });

/* ---- failed sign-ins ---- */

export interface FailedSignIns {
  /** The last sign-in before this session; null if there was none. */
  since: string | null;
  addresses: { address: string; count: number; last_at: string }[];
  count: number;
  /** False when there may have been more than the server keeps. */
  is_complete: boolean;
}
export const listFailedSignIns = () => getJson<FailedSignIns>("/api/v1/failed-sign-ins");

/* ---- the team ---- */

export interface Team {
  id: number;
  name: string;
  /** Separated by commas. */
  sample_labels: string;
  usage: { bytes_stored: number };
  /** rule_keep_s: 0 is unlimited. */
  quotas: {
    max_bytes_stored: number;
    uploads_per_minute: number;
    max_upload_bytes: number;
    rule_keep_s: number;
  };
}

export const labelsText = (labels: string) => labels.replaceAll(",", ", ");
export const teamPart: Part<Team> = {
  path: "/api/v1/tenant",
  entriesOf: ({ name, sample_labels }) => [
    { key: "name", name: "The team’s name", text: name },
    { key: "labels", name: "Series labels", text: labelsText(sample_labels) || "none" },
  ],
};
export const renameTeam = (name: string, version: string) =>
  change<Team>("PATCH", teamPart.path, { name }, ifMatch(version));
/** null: the server's default. */
export const setSampleLabels = (sample_labels: string | null, version: string) =>
  change<Team>("PATCH", teamPart.path, { sample_labels }, ifMatch(version));

/* ---- retention of continuous profiles ---- */

export interface Rule {
  id: number;
  /** Starts at 1. */
  position: number;
  query: string;
  /** 0: forever. */
  keep_s: number;
  totals_s: number | null;
}
export interface Rules {
  /** In order of position. */
  rules: Rule[];
  default_keep_s: number;
}
/**
 * Durations as text ("90d"). Without a position, the rule keeps its place or becomes the last one.
 */
export interface RuleInput {
  query: string;
  keep: string;
  totals?: string;
  position?: number;
  /** false: refused if the selector already has a rule. */
  replace?: boolean;
}

export const rulesPart: Part<Rules> = {
  path: "/api/v1/retention",
  entriesOf: ({ rules }) =>
    rules.map(({ id, query, keep_s, totals_s }) => ({
      key: id,
      name: `Rule ${query}`,
      text: describeRetention(keep_s, totals_s),
    })),
};
export const setRule = (input: RuleInput, version: string) =>
  change<Rule>("POST", rulesPart.path, input, ifMatch(version));
export const removeRule = (id: number, version: string) =>
  change<void>("DELETE", `${rulesPart.path}/${id}`, undefined, ifMatch(version));

/* ---- links to source code ---- */

export type SourceRuleInput = Pick<
  SourceRule,
  "url" | "path_prefix" | "build_id" | "label" | "revision" | "audience"
>;

/** In order of precedence. */
export const listSourceLinks = async () =>
  (await getJson<{ links: SourceRule[] }>("/api/v1/source-links")).links;
export const addSourceLink = (input: SourceRuleInput) =>
  change<SourceRule>("POST", "/api/v1/source-links", input);
export const removeSourceLink = (id: number) =>
  change<void>("DELETE", `/api/v1/source-links/${id}`);

/* ---- audit log ---- */

export interface AuditEntry {
  id: number;
  at: string;
  actor: string;
  action: string;
  target: string;
  address: string;
}
export interface AuditPage {
  /** Newest first. */
  entries: AuditEntry[];
  next_cursor: string | null;
}
export const listAudit = (cursor: string) =>
  getJson<AuditPage>("/api/v1/audit" + queryOf({ cursor, limit: 50 }));

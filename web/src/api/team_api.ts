/*
 * team_api: what the settings and the pages of invitations ask of the server; apart from api.ts, since who reads a share
 * does not need it.
 *
 * What several people may change is a Part. It comes with a version; a change names the version that was looked at, and is
 * refused with 412 once somebody else has changed the part.
 */
import { change, getJson, queryOf, request, sendJson, type Session } from "./api.ts";
import type { Told } from "../model/settings_changes.ts";
import { ruleWords } from "../model/retention_text.ts";

export interface Part<T> {
  path: string;
  /** What people said in it, thing by thing. */
  tell: (value: T) => Told[];
}

/** version: "" for a part whose things are only made and removed. */
export async function readPart<T>({ path }: Part<T>): Promise<{ value: T; version: string }> {
  const response = await request(path, { headers: { Accept: "application/json" } });
  return { value: (await response.json()) as T, version: response.headers.get("ETag") ?? "" };
}

const ifMatch = (version: string): Record<string, string> =>
  version ? { "If-Match": version } : {};

/* ---- tokens: none is ever changed, so nothing of them is undone by who has not looked ---- */

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
  tell: ({ tokens }) =>
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
  tell: ({ users }) => users.map(({ id, email, role }) => ({ key: id, name: email, text: role })),
};
export const changeRole = (id: number, role: string, version: string) =>
  change<void>("PATCH", `${peoplePart.path}/${id}`, { role }, ifMatch(version));
export const removeUser = (id: number, version: string) =>
  change<void>("DELETE", `${peoplePart.path}/${id}`, undefined, ifMatch(version));

/* ---- invitations: another to the same address takes the place of the first ---- */

/** Whom an invitation link is for, as told to whoever holds it. */
export interface Invited {
  email: string;
  role: string;
  /** Build ids of the team's binaries are told to public debuginfod servers, for their names. */
  asks_public_debuginfod: boolean;
}

export interface Invitation {
  id: number;
  email: string;
  role: string;
  expires_at: string;
  /** Only in the answer that made it. */
  url?: string;
}

export const invitationsPart: Part<{ invitations: Invitation[] }> = {
  path: "/api/v1/invitations",
  tell: ({ invitations }) =>
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
export const lookAtInvitation = (token: string) =>
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
  /** With commas between them. */
  sample_labels: string;
  usage: { bytes_stored: number };
  /** rule_keep_s: 0 is any time. */
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
  tell: ({ name, sample_labels }) => [
    { key: "name", name: "The team’s name", text: name },
    { key: "labels", name: "Series labels", text: labelsText(sample_labels) || "none" },
  ],
};
export const renameTeam = (name: string, version: string) =>
  change<Team>("PATCH", teamPart.path, { name }, ifMatch(version));
/** null: those of the server's setting. */
export const setSampleLabels = (sample_labels: string | null, version: string) =>
  change<Team>("PATCH", teamPart.path, { sample_labels }, ifMatch(version));

/* ---- for how long the team keeps which continuous profiles ---- */

export interface Rule {
  id: number;
  /** 1 is the first. */
  position: number;
  query: string;
  /** 0: for ever. */
  keep_s: number;
  totals_s: number | null;
}
export interface Rules {
  /** In their order. */
  rules: Rule[];
  default_keep_s: number;
}
/** Durations as people write them; no position: where it is, or the last. */
export interface RuleWish {
  query: string;
  keep: string;
  totals?: string;
  position?: number;
  /** false: refused where the selector has a rule already. */
  replace?: boolean;
}

export const rulesPart: Part<Rules> = {
  path: "/api/v1/retention",
  tell: ({ rules }) =>
    rules.map(({ id, query, keep_s, totals_s }) => ({
      key: id,
      name: `Rule ${query}`,
      text: ruleWords(keep_s, totals_s),
    })),
};
export const setRule = (wish: RuleWish, version: string) =>
  change<Rule>("POST", rulesPart.path, wish, ifMatch(version));
export const removeRule = (id: number, version: string) =>
  change<void>("DELETE", `${rulesPart.path}/${id}`, undefined, ifMatch(version));

/* ---- what happened ---- */

export interface AuditEntry {
  id: number;
  at: string;
  actor: string;
  action: string;
  target: string;
  address: string;
}
export interface AuditPage {
  /** The newest first. */
  entries: AuditEntry[];
  next_cursor: string | null;
}
export const listAudit = (cursor: string) =>
  getJson<AuditPage>("/api/v1/audit" + queryOf({ cursor, limit: 50 }));

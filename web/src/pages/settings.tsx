/* settings: tokens, people, password, use, retention and audit log of the team. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import * as api from "../api.ts";
import { formatAgo, formatBytes, formatCount, formatDate } from "../model/units.ts";
import { asProblem, Button, CopyField, ErrorLine, Field, IconButton, Loading, say, Select, useTitle } from "../ui/kit.tsx";
import { later } from "../ui/later.tsx";
import { SureButton } from "../ui/sure_button.tsx";
import { Shell } from "../ui/shell.tsx";
import { useMustSignIn } from "../ui/must_sign_in.ts";

type Session = api.Session;

const RetentionRules = later(async () => (await import("./retention.tsx")).RetentionRules).Component;
const SampleLabels = later(async () => (await import("./retention.tsx")).SampleLabels).Component;

const roleChoices = [
  { value: "viewer", label: "Viewer: reads" },
  { value: "member", label: "Member: shares" },
  { value: "owner", label: "Owner: manages" },
];
/** Those that a route asks for; the API knows more, for what is to come. */
const scopeTexts: [string, string][] = [
  ["read", "read the team’s profiles"],
  ["share", "create, edit and delete profiles"],
  ["ingest", "send profiles all the time, as agents do"],
  ["debuginfo", "send the binaries and debug files that names come from"],
  ["admin", "manage people, tokens and settings"],
];
const tokenExpiries = [
  { value: "30d", label: "In 30 days" },
  { value: "90d", label: "In 90 days" },
  { value: "365d", label: "In a year" },
  { value: "never", label: "Never" },
];

/** A list from the server that can be loaded again, and the last error of loading or changing. */
function useList<T>(load: () => Promise<T>) {
  const [value, setValue] = useState<T | null>(null);
  const [error, setError] = useState<api.Problem | null>(null);
  const reload = () => load().then(setValue, (caught) => setError(asProblem(caught)));
  useEffect(() => void reload(), []);
  const attempt = async (change: () => Promise<unknown>, done: string) => {
    setError(null);
    try {
      await change();
      say(done);
      await reload();
      return true;
    } catch (caught) {
      setError(asProblem(caught));
      return false;
    }
  };
  return { value, error, reload, attempt };
}

function Section({ id, title, text, children }: { id: string; title: string; text: string; children: ComponentChildren }) {
  return (
    <section class="setting" id={id} aria-labelledby={`${id}-title`}>
      <div class="setting-head">
        <h2 id={`${id}-title`}>{title}</h2>
        <p>{text}</p>
      </div>
      <div class="setting-body">{children}</div>
    </section>
  );
}

/* ---- tokens ---- */

function NewToken({ mine, onMade }: { mine: string[]; onMade: (token: api.Token) => void }) {
  const offered = scopeTexts.filter(([scope]) => mine.includes(scope));
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<string[]>(() => ["read", "share"].filter((scope) => mine.includes(scope)));
  const [expires, setExpires] = useState("365d");
  const [error, setError] = useState<api.Problem | null>(null);
  const toggle = (scope: string) => setScopes((old) => (old.includes(scope) ? old.filter((one) => one !== scope) : [...old, scope]));
  const send = async (event: Event) => {
    event.preventDefault();
    try {
      onMade(await api.createToken(name, scopes, expires));
      setName("");
      setError(null);
    } catch (caught) {
      setError(asProblem(caught));
    }
  };
  return (
    <form class="inset" onSubmit={send}>
      <div class="field-row">
        <Field label="Name of the new token">
          {(id) => <input id={id} required maxLength={100} placeholder="ci" value={name} onInput={(event) => setName(event.currentTarget.value)} />}
        </Field>
        <Field label="Expires">
          {(id) => <Select id={id} value={expires} choices={tokenExpiries} onChange={setExpires} />}
        </Field>
      </div>
      <fieldset>
        <legend>It may</legend>
        {offered.map(([scope, text]) => (
          <label class="check" key={scope}>
            <input type="checkbox" value={scope} checked={scopes.includes(scope)} onChange={() => toggle(scope)} /> {text}
          </label>
        ))}
      </fieldset>
      <ErrorLine error={error} />
      <div class="actions start">
        <Button look="primary" type="submit" disabled={!name.trim() || scopes.length === 0}>Create token</Button>
      </div>
    </form>
  );
}

function Tokens({ session }: { session: Session }) {
  const { value, error, reload, attempt } = useList(api.listTokens);
  const [made, setMade] = useState<api.Token | null>(null);
  return (
    <Section id="tokens" title="Tokens" text="For the command line, CI and agents. A token is shown once; only a hash of it is stored.">
      {made?.token && (
        <div class="made">
          <p><strong>{made.name}</strong> is ready. Copy it now: it will not be shown again.</p>
          <CopyField text={made.token} what="Token" isSecret />
        </div>
      )}
      <NewToken mine={session.scopes} onMade={(token) => (setMade(token), void reload())} />
      <ErrorLine error={error} />
      {!value ? <Loading /> : value.length === 0 ? <p class="hint">No tokens yet.</p> : (
        <ul class="rows-list">
          {value.map((token) => (
            <li key={token.id}>
              <span class="grow">
                <strong>{token.name}</strong>
                <span class="hint">
                  {token.scopes.join(", ")} · {token.last_used_at ? `used ${formatAgo(token.last_used_at)}` : "never used"} ·{" "}
                  {token.expires_at ? `expires ${formatAgo(token.expires_at)}` : "does not expire"}
                </span>
              </span>
              <SureButton label="Revoke" again="Revoke for ever" onSure={() => void attempt(() => api.revokeToken(token.id), "Token revoked")} />
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

/* ---- people ---- */

function Invite({ onMade }: { onMade: (invitation: api.Invitation) => void }) {
  const [email, setEmail] = useState("");
  const [role, setRole] = useState("member");
  const [error, setError] = useState<api.Problem | null>(null);
  const send = async (event: Event) => {
    event.preventDefault();
    try {
      onMade(await api.invite(email, role));
      setEmail("");
      setError(null);
    } catch (caught) {
      setError(asProblem(caught));
    }
  };
  return (
    <form class="inset" onSubmit={send}>
      <div class="field-row">
        <Field label="Invite by e-mail address">
          {(id) => <input id={id} type="email" required value={email} onInput={(event) => setEmail(event.currentTarget.value)} />}
        </Field>
        <Field label="As">{(id) => <Select id={id} value={role} choices={roleChoices} onChange={setRole} />}</Field>
      </div>
      <ErrorLine error={error} />
      <div class="actions start">
        <Button look="primary" type="submit">Make invitation link</Button>
      </div>
    </form>
  );
}

function People() {
  const users = useList(api.listUsers);
  const invitations = useList(api.listInvitations);
  const [made, setMade] = useState<api.Invitation | null>(null);
  return (
    <Section id="people" title="People" text="Owners manage, members share, viewers read.">
      {made?.url && (
        <div class="made">
          <p>Send this link to <strong>{made.email}</strong>. It works once.</p>
          <CopyField text={made.url} what="Invitation link" isSecret />
        </div>
      )}
      <Invite onMade={(invitation) => (setMade(invitation), void invitations.reload())} />
      <ErrorLine error={users.error ?? invitations.error} />
      {!users.value ? <Loading /> : (
        <ul class="rows-list">
          {users.value.map((user) => (
            <li key={user.id}>
              <span class="grow">
                <strong>{user.name || user.email}</strong>
                <span class="hint">{user.name ? `${user.email} · ` : ""}{user.last_sign_in_at ? `signed in ${formatAgo(user.last_sign_in_at)}` : "never signed in"}</span>
              </span>
              {!user.is_me ? (
                <>
                  <Select label={`Role of ${user.email}`} value={user.role} choices={roleChoices} onChange={(role) => void users.attempt(() => api.changeRole(user.id, role), "Role changed")} />
                  <IconButton icon="trash" label={`Remove ${user.email}`} onClick={() => void users.attempt(() => api.removeUser(user.id), "Removed")} />
                </>
              ) : (
                <em>{user.role}</em>
              )}
            </li>
          ))}
          {(invitations.value ?? []).map((invitation) => (
            <li key={`i${invitation.id}`}>
              <span class="grow">
                <strong>{invitation.email}</strong>
                <span class="hint">invited as {invitation.role} · expires {formatAgo(invitation.expires_at)}</span>
              </span>
              <IconButton icon="close" label={`Withdraw the invitation of ${invitation.email}`} onClick={() => void invitations.attempt(() => api.withdrawInvitation(invitation.id), "Invitation withdrawn")} />
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

/* ---- password, use, audit ---- */

function Password({ hasOld }: { hasOld: boolean }) {
  const [old, setOld] = useState("");
  const [fresh, setFresh] = useState("");
  const [error, setError] = useState<api.Problem | null>(null);
  const send = async (event: Event) => {
    event.preventDefault();
    setError(null);
    try {
      await api.changePassword(old, fresh);
      setOld("");
      setFresh("");
      say("Password changed");
    } catch (caught) {
      setError(asProblem(caught));
    }
  };
  return (
    <Section id="password" title="Password" text={hasOld ? "Changing it ends your other sessions." : "You sign in by links so far. With a password you need none."}>
      <form onSubmit={send}>
        <div class="field-row">
          {hasOld && <Field label="Old password">
            {(id) => <input id={id} type="password" autocomplete="current-password" required value={old} onInput={(event) => setOld(event.currentTarget.value)} />}
          </Field>}
          <Field label="New password">
            {(id) => <input id={id} type="password" autocomplete="new-password" required minLength={10} value={fresh} onInput={(event) => setFresh(event.currentTarget.value)} />}
          </Field>
        </div>
        <ErrorLine error={error} />
        <div class="actions start"><Button look="primary" type="submit">{hasOld ? "Change password" : "Set password"}</Button></div>
      </form>
    </Section>
  );
}

function Meter({ label, value, most }: { label: string; value: number; most: number }) {
  return (
    <div class="meter">
      <p>
        <span>{label}</span>
        <em>{formatBytes(value)} of {formatBytes(most)}</em>
      </p>
      <meter min={0} max={most || 1} high={most * 0.85} value={Math.min(value, most)} aria-label={label} />
    </div>
  );
}

function Use({ session }: { session: Session }) {
  const { value, error, attempt } = useList(api.getTenant);
  const [name, setName] = useState("");
  useEffect(() => setName(value?.name ?? ""), [value]);
  const isOwner = session.scopes.includes("admin");
  return (
    <Section id="team" title="Team" text="What it is called, what it stores and may store.">
      <ErrorLine error={error} />
      {!value ? <Loading /> : (
        <>
          {isOwner && (
            <form class="inline-form" onSubmit={(event) => (event.preventDefault(), void attempt(() => api.renameTenant(name), "Renamed"))}>
              <Field label="Name">{(id) => <input id={id} required maxLength={100} value={name} onInput={(event) => setName(event.currentTarget.value)} />}</Field>
              <Button type="submit" disabled={name === value.name || !name.trim()}>Rename</Button>
            </form>
          )}
          <Meter label="Stored" value={value.usage.bytes_stored} most={value.quotas.max_bytes_stored} />
          <p class="hint">
            Largest upload {formatBytes(value.quotas.max_upload_bytes)}; {formatCount(value.quotas.uploads_per_minute)} uploads a minute.
          </p>
        </>
      )}
    </Section>
  );
}

function Audit() {
  const [entries, setEntries] = useState<api.AuditEntry[] | null>(null);
  const [next, setNext] = useState<string | null>(null);
  const [error, setError] = useState<api.Problem | null>(null);
  const load = async (cursor: string) => {
    try {
      const page = await api.listAudit(cursor);
      setEntries((old) => [...(cursor ? (old ?? []) : []), ...page.entries]);
      setNext(page.next_cursor);
    } catch (caught) {
      setError(asProblem(caught));
    }
  };
  useEffect(() => void load(""), []);
  return (
    <Section id="audit" title="Audit log" text="Who did what, when, from where.">
      <ErrorLine error={error} />
      {!entries ? <Loading /> : (
        <>
          <div class="scroll" tabIndex={0} role="region" aria-label="Audit log">
            <table class="list small">
              <thead>
                <tr>
                  <th scope="col">When</th>
                  <th scope="col">Who</th>
                  <th scope="col">What</th>
                  <th scope="col">From</th>
                </tr>
              </thead>
              <tbody>
                {entries.map((entry) => (
                  <tr key={entry.id}>
                    <td title={formatDate(entry.at)}>{formatAgo(entry.at)}</td>
                    <td>{entry.actor || "the server"}</td>
                    <td><code>{entry.action}</code> {entry.target}</td>
                    <td>{entry.address}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {next && <p class="pager"><Button onClick={() => void load(next)}>Show more</Button></p>}
        </>
      )}
    </Section>
  );
}

export function SettingsPage({ session }: { session: Session | null }) {
  useMustSignIn(session);
  useTitle("Settings");
  if (!session?.user) return <Shell session={session}><Loading /></Shell>;
  const isOwner = session.scopes.includes("admin");
  const places: [string, string][] = [["tokens", "Tokens"], ["password", "Password"], ["team", "Team"]];
  if (isOwner) places.push(["people", "People"], ["retention", "Retention"], ["series", "Series"], ["audit", "Audit log"]);
  return (
    <Shell session={session}>
      <div class="page-head">
        <h1>Settings</h1>
        <nav class="places" aria-label="Settings">
          {places.map(([id, label]) => <a key={id} href={`#${id}`}>{label}</a>)}
        </nav>
      </div>
      <Tokens session={session} />
      <Password hasOld={session.user.has_password} />
      <Use session={session} />
      {isOwner && <People />}
      {isOwner && (
        <>
          <Section id="retention" title="Retention" text="How long continuous profiles are kept. The first rule that finds a series counts.">
            <RetentionRules />
          </Section>
          <Section id="series" title="Labels that make series" text="Samples that differ in these labels become series of their own, which can be listed and asked for fast. All other labels stay with their samples.">
            <SampleLabels />
          </Section>
          <Audit />
        </>
      )}
    </Shell>
  );
}

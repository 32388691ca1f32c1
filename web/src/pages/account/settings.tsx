/* settings: tokens, people, password, usage, retention and audit log of the team. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Problem, Session } from "../../api/api.ts";
import { formatAgo, formatBytes, formatCount, formatDate } from "../../model/text/units.ts";
import * as api from "../../api/team_api.ts";
import {
  asProblem,
  Button,
  CopyField,
  ErrorLine,
  Field,
  IconButton,
  Loading,
  Name,
  showMessage,
  Select,
  useTitle,
} from "../../ui/kit.tsx";
import { later } from "../../ui/later.tsx";
import { ConfirmButton } from "../../ui/confirm_button.tsx";
import { Shell, useMustSignIn } from "../../ui/shell.tsx";
import { customName, presetNameOf, tokenPresets } from "../../model/account/token_presets.ts";
import { RefusalLine, notifyChanged, useChangeListener, usePart } from "./use_part.tsx";
import { StartAgent } from "../how_to_send.tsx";

const RetentionRules = later(
  async () => (await import("./retention.tsx")).RetentionRules,
).Component;
const SourceLinks = later(async () => (await import("./source_links.tsx")).SourceLinks).Component;
const SampleLabels = later(async () => (await import("./retention.tsx")).SampleLabels).Component;

const roleChoices = [
  { value: "viewer", label: "Viewer: reads" },
  { value: "member", label: "Member: shares" },
  { value: "owner", label: "Owner: manages" },
];
/** Every scope that a route requires, except those of the server's operator. */
const scopeTexts: [string, string][] = [
  ["read", "Query and download the team’s profiles"],
  ["share", "Share profiles, edit and delete shares"],
  ["ingest", "Send continuous profiles"],
  ["debuginfo", "Upload symbol tables and debug information"],
  ["admin", "Manage people, tokens and settings"],
];
const tokenExpiries = [
  { value: "30d", label: "In 30 days" },
  { value: "90d", label: "In 90 days" },
  { value: "365d", label: "In a year" },
  { value: "never", label: "Never" },
];

function Section({
  id,
  title,
  text,
  children,
}: {
  id: string;
  title: string;
  text: string;
  children: ComponentChildren;
}) {
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

/** A link may name the preset: /settings?token=agent#tokens. */
function firstPreset(offered: readonly string[]): string {
  const wanted = new URLSearchParams(location.search).get("token") ?? "";
  return offered.includes(wanted) ? wanted : offered[0];
}

interface NewTokenProps {
  /** The scopes that this person may grant. */
  mine: string[];
  onMade: (token: api.Token) => void;
}

function NewToken({ mine, onMade }: NewTokenProps) {
  const offered = Object.keys(tokenPresets).filter((key) =>
    tokenPresets[key].scopes.every((scope) => mine.includes(scope)),
  );
  const [name, setName] = useState("");
  const [preset, setPreset] = useState(() => firstPreset(offered));
  const [custom, setCustom] = useState<string[]>([]);
  const [expires, setExpires] = useState("365d");
  const { refusal, submit, isSending } = usePart(api.tokensPart);
  const toggle = (scope: string) =>
    setCustom((old) =>
      old.includes(scope) ? old.filter((one) => one !== scope) : [...old, scope],
    );
  const scopes = tokenPresets[preset]?.scopes ?? custom;
  const send = async (event: Event) => {
    event.preventDefault();
    const made = await submit(() => api.createToken(name, scopes, expires), "Token created");
    if (!made) return;
    onMade(made.response);
    setName("");
  };
  const choice = (key: string, label: string, purpose: string, scopes: readonly string[]) => (
    <label class="check preset" key={key}>
      <input
        type="radio"
        name="preset"
        value={key}
        checked={preset === key}
        onChange={() => setPreset(key)}
      />
      <span>
        <strong>{label}</strong> <span class="hint">{purpose}</span>{" "}
        {scopes.length > 0 && <code>{scopes.join(", ")}</code>}
      </span>
    </label>
  );
  return (
    <form class="inset" aria-busy={isSending} onSubmit={send}>
      <div class="field-row">
        <Field label="Name of the new token">
          {(id) => (
            <input
              id={id}
              required
              maxLength={100}
              placeholder={preset}
              value={name}
              onInput={(event) => setName(event.currentTarget.value)}
            />
          )}
        </Field>
        <Field label="Expires">
          {(id) => <Select id={id} value={expires} choices={tokenExpiries} onChange={setExpires} />}
        </Field>
      </div>
      <fieldset>
        <legend>Permissions</legend>
        {offered.map((key) =>
          choice(key, tokenPresets[key].name, tokenPresets[key].purpose, tokenPresets[key].scopes),
        )}
        {choice("custom", customName, "Choose the scopes", [])}
        {preset === "custom" && (
          <div class="scopes">
            {scopeTexts
              .filter(([scope]) => mine.includes(scope))
              .map(([scope, text]) => (
                <label class="check preset" key={scope}>
                  <input
                    type="checkbox"
                    value={scope}
                    checked={custom.includes(scope)}
                    onChange={() => toggle(scope)}
                  />
                  <span>
                    <code>{scope}</code> <span class="hint">{text}</span>
                  </span>
                </label>
              ))}
          </div>
        )}
      </fieldset>
      <RefusalLine refusal={refusal} />
      <div class="actions start">
        <Button look="primary" type="submit" disabled={!name.trim() || scopes.length === 0}>
          Create token
        </Button>
      </div>
    </form>
  );
}

function Tokens({ session }: { session: Session }) {
  const { value, refusal, attempt } = usePart(api.tokensPart);
  const [made, setMade] = useState<api.Token | null>(null);
  return (
    <Section
      id="tokens"
      title="Tokens"
      text={
        "For the command line, CI and agents. A token is shown only once; the server stores " +
        "only its hash."
      }
    >
      {made?.token && (
        <div class="made">
          <p>
            <strong>{made.name}</strong> is ready. Copy it now: it will not be shown again.
          </p>
          <CopyField text={made.token} what="Token" isSecret />
          {presetNameOf(made.scopes) === tokenPresets.agent.name && (
            <StartAgent session={session} />
          )}
        </div>
      )}
      <NewToken mine={session.scopes} onMade={setMade} />
      <RefusalLine refusal={refusal} />
      {!value ? (
        !refusal && <Loading />
      ) : value.tokens.length === 0 ? (
        <p class="hint">No tokens yet.</p>
      ) : (
        <ul class="rows-list">
          {value.tokens.map((token) => (
            <li key={token.id}>
              <span class="grow">
                <strong>
                  <Name text={token.name} />
                </strong>
                <span class="hint">
                  {presetNameOf(token.scopes)} (<code>{token.scopes.join(", ")}</code>) ·{" "}
                  {token.last_used_at ? `used ${formatAgo(token.last_used_at)}` : "never used"}
                  {" · "}
                  {token.expires_at ? `expires ${formatAgo(token.expires_at)}` : "does not expire"}
                </span>
              </span>
              <ConfirmButton
                label="Revoke"
                what={token.name}
                again="Revoke forever"
                onSure={() => void attempt(() => api.revokeToken(token.id), "Token revoked")}
              />
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
  const { refusal, submit, isSending } = usePart(api.invitationsPart);
  const send = async (event: Event) => {
    event.preventDefault();
    const made = await submit(
      (version) => api.invite(email, role, version),
      "Invitation link created",
    );
    if (!made) return;
    onMade(made.response);
    setEmail("");
  };
  return (
    <form class="inset" aria-busy={isSending} onSubmit={send}>
      <div class="field-row">
        <Field label="Invite by e-mail address">
          {(id) => (
            <input
              id={id}
              type="email"
              required
              value={email}
              onInput={(event) => setEmail(event.currentTarget.value)}
            />
          )}
        </Field>
        <Field label="As">
          {(id) => <Select id={id} value={role} choices={roleChoices} onChange={setRole} />}
        </Field>
      </div>
      <RefusalLine refusal={refusal} />
      <div class="actions start">
        <Button look="primary" type="submit">
          Create invitation link
        </Button>
      </div>
    </form>
  );
}

function People() {
  const people = usePart(api.peoplePart);
  const invitations = usePart(api.invitationsPart);
  const [made, setMade] = useState<api.Invitation | null>(null);
  return (
    <Section id="people" title="People" text="Owners manage, members share, viewers read.">
      {made?.url && (
        <div class="made">
          <p>
            Send this link to <strong>{made.email}</strong>. It works once.
          </p>
          <CopyField text={made.url} what="Invitation link" isSecret />
        </div>
      )}
      <Invite onMade={setMade} />
      <RefusalLine refusal={people.refusal ?? invitations.refusal} />
      {!people.value ? (
        !people.refusal && <Loading />
      ) : (
        <ul class="rows-list">
          {people.value.users.map((user) => (
            <li key={user.id}>
              <span class="grow">
                <strong>{user.name || user.email}</strong>
                <span class="hint">
                  {user.name ? `${user.email} · ` : ""}
                  {user.last_sign_in_at
                    ? `signed in ${formatAgo(user.last_sign_in_at)}`
                    : "never signed in"}
                </span>
              </span>
              {!user.is_me ? (
                <>
                  <Select
                    label={`Role of ${user.email}`}
                    value={user.role}
                    choices={roleChoices}
                    onChange={(role) =>
                      void people.attempt(
                        (version) => api.changeRole(user.id, role, version),
                        "Role changed",
                      )
                    }
                  />
                  <ConfirmButton
                    label="Remove"
                    what={user.email}
                    again="Remove from the team"
                    onSure={() =>
                      void people.attempt(
                        (version) => api.removeUser(user.id, version),
                        `${user.email} removed`,
                      )
                    }
                  />
                </>
              ) : (
                <em>{user.role}</em>
              )}
            </li>
          ))}
          {invitations.value?.invitations.map((invitation) => (
            <li key={`i${invitation.id}`}>
              <span class="grow">
                <strong>{invitation.email}</strong>
                <span class="hint">
                  invited as {invitation.role} · expires {formatAgo(invitation.expires_at)}
                </span>
              </span>
              <IconButton
                icon="close"
                label={`Withdraw the invitation of ${invitation.email}`}
                onClick={() =>
                  void invitations.attempt(
                    () => api.withdrawInvitation(invitation.id),
                    "Invitation withdrawn",
                  )
                }
              />
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
  const [error, setError] = useState<Problem | null>(null);
  const send = async (event: Event) => {
    event.preventDefault();
    setError(null);
    try {
      await api.changePassword(old, fresh);
      setOld("");
      setFresh("");
      showMessage("Password changed");
      notifyChanged();
    } catch (caught) {
      setError(asProblem(caught));
    }
  };
  return (
    <Section
      id="password"
      title="Password"
      text={
        hasOld
          ? "Changing your password ends your other sessions."
          : "Set a password to sign in without a one-time link."
      }
    >
      <form onSubmit={send}>
        <div class="field-row">
          {hasOld && (
            <Field label="Old password">
              {(id) => (
                <input
                  id={id}
                  type="password"
                  autocomplete="current-password"
                  required
                  value={old}
                  onInput={(event) => setOld(event.currentTarget.value)}
                />
              )}
            </Field>
          )}
          <Field label="New password">
            {(id) => (
              <input
                id={id}
                type="password"
                autocomplete="new-password"
                required
                minLength={10}
                value={fresh}
                onInput={(event) => setFresh(event.currentTarget.value)}
              />
            )}
          </Field>
        </div>
        <ErrorLine error={error} />
        <div class="actions start">
          <Button look="primary" type="submit">
            {hasOld ? "Change password" : "Set password"}
          </Button>
        </div>
      </form>
    </Section>
  );
}

const shownAddresses = 10;
const times = (count: number) => (count === 1 ? "once" : `${formatCount(count)} times`);

/** Failed sign-ins to this account. */
function FailedSignIns() {
  const [seen, setSeen] = useState<api.FailedSignIns | null>(null);
  const [error, setError] = useState<Problem | null>(null);
  useEffect(
    () => void api.listFailedSignIns().then(setSeen, (caught) => setError(asProblem(caught))),
    [],
  );
  const hidden = (seen?.addresses.length ?? 0) - shownAddresses;
  return (
    <Section
      id="sign-ins"
      title="Failed sign-ins"
      text={
        "Wrong passwords entered for your account since your last visit. If they were not " +
        "yours, choose a new password that you use nowhere else."
      }
    >
      <ErrorLine error={error} />
      {!seen ? (
        !error && <Loading />
      ) : seen.count === 0 ? (
        <p class="hint">None{seen.since && ` since ${formatDate(seen.since)}`}.</p>
      ) : (
        <>
          <p>
            {seen.is_complete ? "" : "At least "}
            {formatCount(seen.count)}
            {seen.since && ` since ${formatDate(seen.since)}`}:
          </p>
          <ul class="rows-list">
            {seen.addresses.slice(0, shownAddresses).map(({ address, count, last_at }) => (
              <li key={address}>
                <span class="grow">
                  <strong>{address}</strong>
                  <span class="hint">
                    {times(count)}, last {formatAgo(last_at)}
                  </span>
                </span>
              </li>
            ))}
          </ul>
          {hidden > 0 && (
            <p class="hint">
              and {formatCount(hidden)} more {hidden === 1 ? "address" : "addresses"}
            </p>
          )}
        </>
      )}
    </Section>
  );
}

function Meter({ label, value, most }: { label: string; value: number; most: number }) {
  return (
    <div class="meter">
      <p>
        <span>{label}</span>
        <em>
          {formatBytes(value)} of {formatBytes(most)}
        </em>
      </p>
      <meter
        min={0}
        max={most || 1}
        high={most * 0.85}
        value={Math.min(value, most)}
        aria-label={label}
      />
    </div>
  );
}

function Use({ session }: { session: Session }) {
  const { value, refusal, submit, isSending } = usePart(api.teamPart);
  const [typed, setTyped] = useState<string | null>(null);
  const name = typed ?? value?.name ?? "";
  const rename = async (event: Event) => {
    event.preventDefault();
    if (await submit((version) => api.renameTeam(name, version), "Team renamed")) setTyped(null);
  };
  const isOwner = session.scopes.includes("admin");
  return (
    <Section id="team" title="Team" text="Its name, and how much storage it uses.">
      <RefusalLine refusal={refusal} />
      {!value ? (
        !refusal && <Loading />
      ) : (
        <>
          {isOwner && (
            <form class="inline-form" aria-busy={isSending} onSubmit={rename}>
              <Field label="Name">
                {(id) => (
                  <input
                    id={id}
                    required
                    maxLength={100}
                    value={name}
                    onInput={(event) => setTyped(event.currentTarget.value)}
                  />
                )}
              </Field>
              <Button type="submit" disabled={name === value.name || !name.trim()}>
                Rename
              </Button>
            </form>
          )}
          <Meter
            label="Stored"
            value={value.usage.bytes_stored}
            most={value.quotas.max_bytes_stored}
          />
          <p class="hint">
            Largest upload {formatBytes(value.quotas.max_upload_bytes)};{" "}
            {formatCount(value.quotas.uploads_per_minute)} uploads a minute.
          </p>
        </>
      )}
    </Section>
  );
}

function Audit() {
  const [log, setLog] = useState<api.AuditPage | null>(null);
  const [error, setError] = useState<Problem | null>(null);
  const load = (
    cursor: string,
    join: (old: api.AuditPage | null, page: api.AuditPage) => api.AuditPage,
  ) =>
    api.listAudit(cursor).then(
      (page) => (setError(null), setLog((old) => join(old, page))),
      (caught) => setError(asProblem(caught)),
    );
  const more = (cursor: string) =>
    load(cursor, (old, page) => ({ ...page, entries: [...(old?.entries ?? []), ...page.entries] }));
  /** New entries are put before those shown. */
  const update = () =>
    load("", (old, page) => {
      const known = page.entries.findIndex(({ id }) => id === old?.entries[0]?.id);
      return old && known >= 0
        ? { ...old, entries: [...page.entries.slice(0, known), ...old.entries] }
        : page;
    });
  useEffect(() => void update(), []);
  useChangeListener(update);
  return (
    <Section
      id="audit"
      title="Audit log"
      text="Changes by team members: what, when and from where."
    >
      <ErrorLine error={error} />
      {!log ? (
        !error && <Loading />
      ) : (
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
                {log.entries.map((entry) => (
                  <tr key={entry.id}>
                    <td title={formatDate(entry.at)}>{formatAgo(entry.at)}</td>
                    <td>{entry.actor || "the server"}</td>
                    <td>
                      <code>{entry.action}</code> <Name text={entry.target} />
                    </td>
                    <td>{entry.address}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {log.next_cursor && (
            <p class="pager">
              <Button onClick={() => void more(log.next_cursor!)}>Show more</Button>
            </p>
          )}
        </>
      )}
    </Section>
  );
}

export function SettingsPage({ session }: { session: Session | null }) {
  useMustSignIn(session);
  useTitle("Settings");
  if (!session?.user)
    return (
      <Shell session={session}>
        <Loading />
      </Shell>
    );
  const isOwner = session.scopes.includes("admin");
  const places: [string, string][] = [
    ["tokens", "Tokens"],
    ["password", "Password"],
    ["sign-ins", "Failed sign-ins"],
    ["team", "Team"],
  ];
  if (isOwner)
    places.push(
      ["people", "People"],
      ["retention", "Retention"],
      ["series", "Series labels"],
      ["source", "Source code"],
      ["audit", "Audit log"],
    );
  return (
    <Shell session={session}>
      <div class="page-head">
        <h1>Settings</h1>
        <nav class="places" aria-label="Settings">
          {places.map(([id, label]) => (
            <a key={id} href={`#${id}`}>
              {label}
            </a>
          ))}
        </nav>
      </div>
      <Tokens session={session} />
      <Password hasOld={session.user.has_password} />
      <FailedSignIns />
      <Use session={session} />
      {isOwner && <People />}
      {isOwner && (
        <>
          <Section
            id="retention"
            title="Retention"
            text={
              "How long continuous profiles are kept. If several rules match a series, the " +
              "first one applies."
            }
          >
            <RetentionRules />
          </Section>
          <Section
            id="series"
            title="Series labels"
            text={
              "Sample labels that split profiles into series, which are fast to list, " +
              "filter and graph. Other labels stay with the samples; filtering by them is " +
              "slower."
            }
          >
            <SampleLabels />
          </Section>
          <Section
            id="source"
            title="Source code"
            text={
              "Links from file and line to your repositories: in the table, in the peek " +
              "view and below the flame graph."
            }
          >
            <SourceLinks />
          </Section>
          <Audit />
        </>
      )}
    </Shell>
  );
}

/* tokens: the section with the tokens of the team, and the form for a new one. */
import { useState } from "preact/hooks";
import type { Session } from "../../api/api.ts";
import { formatAgo } from "../../model/text/units.ts";
import * as api from "../../api/team_api.ts";
import { Button, CopyField, Field, Loading, Name, Select } from "../../ui/kit.tsx";
import { ConfirmButton } from "../../ui/confirm_button.tsx";
import { customName, presetNameOf, tokenPresets } from "../../model/account/token_presets.ts";
import { RefusalLine, usePart } from "./use_part.tsx";
import { StartAgent } from "../how_to_send.tsx";
import { Section } from "./section.tsx";

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

/** A link may name the preset: /settings?token=agent#tokens. */
function firstPreset(offered: readonly string[]): string {
  const wanted = new URLSearchParams(location.search).get("token") ?? "";
  return offered.includes(wanted) ? wanted : offered[0];
}

/** The presets that a person with these scopes may grant, as keys of tokenPresets. */
const presetsWithin = (mine: readonly string[]): string[] =>
  Object.keys(tokenPresets).filter((key) =>
    tokenPresets[key].scopes.every((scope) => mine.includes(scope)),
  );

interface PresetProps {
  value: string;
  label: string;
  purpose: string;
  scopes: readonly string[];
  isChosen: boolean;
  onChoose: () => void;
}

function Preset({ value, label, purpose, scopes, isChosen, onChoose }: PresetProps) {
  return (
    <label class="check preset">
      <input type="radio" name="preset" value={value} checked={isChosen} onChange={onChoose} />
      <span>
        <strong>{label}</strong> <span class="hint">{purpose}</span>{" "}
        {scopes.length > 0 && <code>{scopes.join(", ")}</code>}
      </span>
    </label>
  );
}

interface ScopesProps {
  /** The scopes that this person may grant. */
  mine: readonly string[];
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
}

/** The scopes of a token without a preset. */
function Scopes({ mine, chosen, onChange }: ScopesProps) {
  const toggle = (scope: string) =>
    onChange(chosen.includes(scope) ? chosen.filter((one) => one !== scope) : [...chosen, scope]);
  return (
    <div class="scopes">
      {scopeTexts
        .filter(([scope]) => mine.includes(scope))
        .map(([scope, text]) => (
          <label class="check preset" key={scope}>
            <input
              type="checkbox"
              value={scope}
              checked={chosen.includes(scope)}
              onChange={() => toggle(scope)}
            />
            <span>
              <code>{scope}</code> <span class="hint">{text}</span>
            </span>
          </label>
        ))}
    </div>
  );
}

interface PermissionsProps {
  mine: readonly string[];
  offered: readonly string[];
  /** A key of tokenPresets, or "custom". */
  preset: string;
  custom: readonly string[];
  onPreset: (preset: string) => void;
  onCustom: (scopes: string[]) => void;
}

function Permissions({ mine, offered, preset, custom, onPreset, onCustom }: PermissionsProps) {
  const choice = (value: string, label: string, purpose: string, scopes: readonly string[]) => (
    <Preset
      key={value}
      {...{ value, label, purpose, scopes }}
      isChosen={preset === value}
      onChoose={() => onPreset(value)}
    />
  );
  return (
    <fieldset>
      <legend>Permissions</legend>
      {offered.map((key) =>
        choice(key, tokenPresets[key].name, tokenPresets[key].purpose, tokenPresets[key].scopes),
      )}
      {choice("custom", customName, "Choose the scopes", [])}
      {preset === "custom" && <Scopes mine={mine} chosen={custom} onChange={onCustom} />}
    </fieldset>
  );
}

interface NewTokenProps {
  /** The scopes that this person may grant. */
  mine: string[];
  onMade: (token: api.Token) => void;
}

function NewToken({ mine, onMade }: NewTokenProps) {
  const offered = presetsWithin(mine);
  const [name, setName] = useState("");
  const [preset, setPreset] = useState(() => firstPreset(offered));
  const [custom, setCustom] = useState<string[]>([]);
  const [expires, setExpires] = useState("365d");
  const { refusal, submit, isSending } = usePart(api.tokensPart);
  const scopes = tokenPresets[preset]?.scopes ?? custom;
  const send = async (event: Event) => {
    event.preventDefault();
    const made = await submit(() => api.createToken(name, scopes, expires), "Token created");
    if (!made) return;
    onMade(made.response);
    setName("");
  };
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
      <Permissions
        {...{ mine, offered, preset, custom }}
        onPreset={setPreset}
        onCustom={setCustom}
      />
      <RefusalLine refusal={refusal} />
      <div class="actions start">
        <Button look="primary" type="submit" disabled={!name.trim() || scopes.length === 0}>
          Create token
        </Button>
      </div>
    </form>
  );
}

export function Tokens({ session }: { session: Session }) {
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

/* settings_form: title, description, expiry, visibility and password of a share. */
import type { ShareSettings, Visibility } from "../../api/api.ts";
import { Field, Select, type Choice } from "../../ui/kit.tsx";
import { visibilityNames } from "../share/share.tsx";

const expiryChoices: Choice[] = [
  { value: "", label: "Server default" },
  { value: "1h", label: "In 1 hour" },
  { value: "1d", label: "In 1 day" },
  { value: "7d", label: "In 7 days" },
  { value: "30d", label: "In 30 days" },
  { value: "52w", label: "In a year" },
  { value: "never", label: "Never" },
];

function visibilityChoices(hasTeam: boolean): Choice[] {
  const choices = Object.entries(visibilityNames).map(([value, name]) => ({
    value,
    label: name[0].toUpperCase() + name.slice(1),
  }));
  return choices.filter(({ value }) => hasTeam || value !== "team");
}

export interface SettingsFormProps {
  settings: ShareSettings;
  hasTeam: boolean;
  /** When editing: the choice that keeps the expiry unchanged. */
  keepExpiry?: string;
  onChange: (settings: ShareSettings) => void;
}

export function SettingsForm({ settings, hasTeam, keepExpiry, onChange }: SettingsFormProps) {
  const set = (patch: Partial<ShareSettings>) => onChange({ ...settings, ...patch });
  const expiries = keepExpiry
    ? [{ value: "", label: keepExpiry }, ...expiryChoices.slice(1)]
    : expiryChoices;
  return (
    <>
      <Field label="Title">
        {(id) => (
          <input
            id={id}
            value={settings.title ?? ""}
            maxLength={200}
            placeholder="What you measured"
            onInput={(event) => set({ title: event.currentTarget.value })}
          />
        )}
      </Field>
      <Field label="Description" hint="Markdown: lists, links, `code`.">
        {(id) => (
          <textarea
            id={id}
            rows={3}
            value={settings.description ?? ""}
            placeholder="How, where, why"
            onInput={(event) => set({ description: event.currentTarget.value })}
          />
        )}
      </Field>
      <div class="field-row">
        <Field label="Who can see it">
          {(id) => (
            <Select
              id={id}
              value={settings.visibility ?? "unlisted"}
              choices={visibilityChoices(hasTeam)}
              onChange={(value) => set({ visibility: value as Visibility })}
            />
          )}
        </Field>
        <Field label="Expires">
          {(id) => (
            <Select
              id={id}
              value={settings.expires ?? ""}
              choices={expiries}
              onChange={(expires) => set({ expires })}
            />
          )}
        </Field>
      </div>
      {settings.visibility === "password" && (
        <Field
          label="Password"
          hint="Everyone who opens the link must enter it. The link does not contain it."
        >
          {(id) => (
            <input
              id={id}
              type="password"
              autocomplete="new-password"
              minLength={6}
              maxLength={256}
              value={settings.password ?? ""}
              onInput={(event) => set({ password: event.currentTarget.value })}
            />
          )}
        </Field>
      )}
    </>
  );
}

/** Only the fields that were filled in; a password only if the visibility requires one. */
export function cleanSettings(settings: ShareSettings): ShareSettings {
  const clean: ShareSettings = {};
  for (const [name, value] of Object.entries(settings))
    if (value !== undefined && value !== "") Object.assign(clean, { [name]: value });
  if (clean.visibility !== "password") delete clean.password;
  return clean;
}

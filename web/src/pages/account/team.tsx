/* team: the section with the name of the team and the storage that it uses. */
import { useState } from "preact/hooks";
import type { Session } from "../../api/api.ts";
import { formatBytes, formatCount } from "../../model/text/units.ts";
import * as api from "../../api/team_api.ts";
import { Button, Field, Loading } from "../../ui/kit.tsx";
import { RefusalLine, usePart } from "./use_part.tsx";
import { Section } from "./section.tsx";

/** The browser draws a meter that is filled by more than 85 % as a warning. */
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

export function Team({ session }: { session: Session }) {
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

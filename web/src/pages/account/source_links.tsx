/*
 * source_links: a part of the settings: which source files link to which pages of the team's
 * repositories.
 */
import { useEffect, useState } from "preact/hooks";
import type { Problem } from "../../api/api.ts";
import type { SourceRule } from "../../model/symbols/source_link.ts";
import {
  addSourceLink,
  listSourceLinks,
  removeSourceLink,
  type SourceRuleInput,
} from "../../api/team_api.ts";
import {
  asProblem,
  Button,
  ErrorLine,
  Field,
  Loading,
  showMessage,
  Select,
} from "../../ui/kit.tsx";
import { notifyChanged } from "./use_part.tsx";
import { ConfirmButton } from "../../ui/confirm_button.tsx";

const audiences = [
  { value: "team", label: "The team" },
  { value: "everyone", label: "Everyone who may see a share" },
];
const nothing: SourceRuleInput = {
  url: "",
  path_prefix: "",
  build_id: "",
  label: "",
  revision: "",
  audience: "team",
};

function NewRule({ onAdd }: { onAdd: (input: SourceRuleInput) => Promise<boolean> }) {
  const [input, setInput] = useState(nothing);
  const field =
    (name: keyof SourceRuleInput, placeholder: string, maxLength: number, isRequired = false) =>
    (id: string) => (
      <input
        id={id}
        value={input[name]}
        placeholder={placeholder}
        maxLength={maxLength}
        required={isRequired}
        spellcheck={false}
        autocapitalize="off"
        autocomplete="off"
        onInput={(event) => setInput({ ...input, [name]: event.currentTarget.value })}
      />
    );
  const send = async (event: Event) => {
    event.preventDefault();
    if (await onAdd(input)) setInput(nothing);
  };
  return (
    <form class="inset" onSubmit={send} aria-label="New source link">
      <Field
        label="Page of a file"
        hint="An https address that contains {path}, and optionally {line} and {revision}."
      >
        {field("url", "https://example.com/shop/blob/{revision}/{path}#L{line}", 2048, true)}
      </Field>
      <div class="field-row">
        <Field label="Paths begin with" hint="Whole path components; the rest is {path}.">
          {field("path_prefix", "/build/shop/", 1024)}
        </Field>
        <Field label="Revision" hint="A tag, commit or branch.">
          {field("revision", "main", 256)}
        </Field>
      </div>
      <div class="field-row">
        <Field label="Only for the build id" hint="* matches any text.">
          {field("build_id", "2d6912*", 256)}
        </Field>
        <Field label="Only for samples with the label" hint="A label of the samples.">
          {field("label", "service=shop", 1024)}
        </Field>
        <Field label="Shown to">
          {(id) => (
            <Select
              id={id}
              value={input.audience}
              choices={audiences}
              onChange={(audience) =>
                setInput({ ...input, audience: audience as SourceRule["audience"] })
              }
            />
          )}
        </Field>
      </div>
      <div class="actions start">
        <Button look="primary" type="submit" disabled={!input.url.trim()}>
          Add link
        </Button>
      </div>
    </form>
  );
}

/** Describes the files that a rule applies to, and who sees its links. */
function wordsOf({ path_prefix, build_id, label, revision, audience }: SourceRule): string {
  const words = [path_prefix ? `files below ${path_prefix}` : "all files"];
  if (build_id) words.push(`of build id ${build_id}`);
  if (label) words.push(`with ${label}`);
  if (revision) words.push(`at ${revision}`);
  return (
    `${words.join(" ")} · shown to ` +
    (audience === "team" ? "the team" : "everyone who may see a share")
  );
}

export function SourceLinks() {
  const [rules, setRules] = useState<SourceRule[] | null>(null);
  const [error, setError] = useState<Problem | null>(null);
  const load = () => listSourceLinks().then(setRules, (caught) => setError(asProblem(caught)));
  useEffect(() => void load(), []);
  const attempt = async (change: () => Promise<unknown>, done: string) => {
    setError(null);
    try {
      await change();
      showMessage(done);
      notifyChanged();
      await load();
      return true;
    } catch (caught) {
      setError(asProblem(caught));
      return false;
    }
  };
  return (
    <>
      <NewRule onAdd={(input) => attempt(() => addSourceLink(input), "Link added")} />
      <ErrorLine error={error} />
      {!rules ? (
        !error && <Loading />
      ) : rules.length === 0 ? (
        <p class="hint">No source links yet.</p>
      ) : (
        <ul class="rows-list" aria-label="Source links">
          {rules.map((rule) => (
            <li key={rule.id}>
              <span class="grow">
                <code class="rule-query">{rule.url}</code>
                <span class="hint">{wordsOf(rule)}</span>
              </span>
              <ConfirmButton
                label="Remove"
                again="Remove link"
                onSure={() => void attempt(() => removeSourceLink(rule.id), "Link removed")}
              />
            </li>
          ))}
        </ul>
      )}
      <p class="hint">
        A link for a build id takes precedence over one for a label, and that over the longest path
        prefix.
      </p>
    </>
  );
}

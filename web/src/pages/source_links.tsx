/* source_links: a part of the settings: which files of profiles lead to which pages of the team's repositories. */
import { useEffect, useState } from "preact/hooks";
import type { Problem } from "../api/api.ts";
import type { SourceRule } from "../model/source_link.ts";
import {
  addSourceLink,
  listSourceLinks,
  removeSourceLink,
  type SourceRuleWish,
} from "../api/source_links_api.ts";
import { asProblem, Button, ErrorLine, Field, Loading, say, Select } from "../ui/kit.tsx";
import { tellChanged } from "./changed.ts";
import { SureButton } from "../ui/sure_button.tsx";

const audiences = [
  { value: "team", label: "The team" },
  { value: "everyone", label: "Everyone who may see a share" },
];
const nothing: SourceRuleWish = {
  url: "",
  path_prefix: "",
  build_id: "",
  label: "",
  revision: "",
  audience: "team",
};

function NewRule({ onAdd }: { onAdd: (wish: SourceRuleWish) => Promise<boolean> }) {
  const [wish, setWish] = useState(nothing);
  const field =
    (name: keyof SourceRuleWish, placeholder: string, maxLength: number, isRequired = false) =>
    (id: string) => (
      <input
        id={id}
        value={wish[name]}
        placeholder={placeholder}
        maxLength={maxLength}
        required={isRequired}
        spellcheck={false}
        autocapitalize="off"
        autocomplete="off"
        onInput={(event) => setWish({ ...wish, [name]: event.currentTarget.value })}
      />
    );
  const send = async (event: Event) => {
    event.preventDefault();
    if (await onAdd(wish)) setWish(nothing);
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
        <Field label="Only for samples with the label" hint="Of samples.">
          {field("label", "service=shop", 1024)}
        </Field>
        <Field label="Shown to">
          {(id) => (
            <Select
              id={id}
              value={wish.audience}
              choices={audiences}
              onChange={(audience) =>
                setWish({ ...wish, audience: audience as SourceRule["audience"] })
              }
            />
          )}
        </Field>
      </div>
      <div class="actions start">
        <Button look="primary" type="submit" disabled={!wish.url.trim()}>
          Add link
        </Button>
      </div>
    </form>
  );
}

/** For which files it is, in words. */
function wordsOf({ path_prefix, build_id, label, revision, audience }: SourceRule): string {
  const words = [path_prefix ? `files below ${path_prefix}` : "all files"];
  if (build_id) words.push(`of build id ${build_id}`);
  if (label) words.push(`with ${label}`);
  if (revision) words.push(`at ${revision}`);
  return `${words.join(" ")} · shown to ${audience === "team" ? "the team" : "everyone who may see a share"}`;
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
      say(done);
      tellChanged();
      await load();
      return true;
    } catch (caught) {
      setError(asProblem(caught));
      return false;
    }
  };
  return (
    <>
      <NewRule onAdd={(wish) => attempt(() => addSourceLink(wish), "Link added")} />
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
              <SureButton
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

/* upload_done: the result of an upload with its links. */
import { useEffect, useRef } from "preact/hooks";
import { formatAgo } from "../../model/text/units.ts";
import { Button, CopyField } from "../../ui/kit.tsx";
import { Icon } from "../../ui/icons.tsx";
import type { Sent } from "./sending.ts";

export type Together = "single" | "compare" | "merge";

/** The created shares, and the link to the result. */
export interface Outcome {
  together: Together;
  shares: Sent[];
  url: string;
  markdown: string;
  expiresAt: string | null;
}

/** Escapes a text for square brackets in Markdown. */
const inBrackets = (text: string) => text.replace(/[\\[\]]/g, "\\$&");

export function outcomeOf(together: Together, shares: Sent[]): Outcome {
  const [first, second] = shares.map(({ created }) => created);
  if (together !== "compare")
    return {
      together,
      shares,
      url: first.url,
      markdown: first.markdown,
      expiresAt: first.expires_at,
    };
  const url = `${location.origin}/d/${first.id}..${second.id}`;
  const name = shares.map(({ title }) => inBrackets(title)).join(" → ");
  return { together, shares, url, markdown: `[${name}](${url})`, expiresAt: first.expires_at };
}

/** The link leads to the view that the preview showed. */
export function UploadDone({
  outcome,
  query,
  onAgain,
}: {
  outcome: Outcome;
  query: string;
  onAgain: () => void;
}) {
  const { together, shares, url, markdown, expiresAt } = outcome;
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => link.current?.focus(), []);
  const isOne = shares.length === 1;
  return (
    <section class="card done" aria-label="The link">
      <h2>
        <Icon name="check" /> Your link is ready
      </h2>
      <CopyField text={url + query} what="Link" />
      <div class="actions start">
        <a class="button primary" href={url + query} ref={link}>
          <span>{together === "compare" ? "Open the comparison" : "Open the profile"}</span>
        </a>
        <Button look="quiet" onClick={onAgain}>
          Share another profile
        </Button>
      </div>
      <details>
        <summary>Markdown for a bug report</summary>
        <CopyField text={markdown} what="Markdown" />
      </details>
      <details>
        <summary>{isOne ? "Delete link, shown only now" : "Delete links, shown only now"}</summary>
        <p class="hint">
          {isOne
            ? "Anyone who has this link can delete the profile."
            : `Each link deletes one of the ${shares.length} shared profiles.`}{" "}
          This browser also stores {isOne ? "it" : "them"}.
          {expiresAt
            ? ` Otherwise the ${isOne ? "profile expires" : "profiles expire"} ` +
              `${formatAgo(expiresAt)}.`
            : ""}
        </p>
        {shares.map(({ created, title }) => (
          <div key={created.id}>
            {!isOne && <p class="file-name">{title}</p>}
            <CopyField
              text={created.delete_url}
              what={isOne ? "Delete link" : `Delete link of ${title}`}
              isSecret
            />
          </div>
        ))}
      </details>
    </section>
  );
}

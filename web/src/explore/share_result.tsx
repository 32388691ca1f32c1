/*
 * share_result: saves the result of a query as a share: the merged profile, or both sides of a
 * comparison.
 */
import { useState } from "preact/hooks";
import type { Problem, ShareSettings } from "../api/api.ts";
import { shareResult } from "../api/explore_api.ts";
import type { QueryRequest } from "../model/continuous/explore_state.ts";
import { cleanSettings, SettingsForm } from "../pages/upload/settings_form.tsx";
import { titlesOf } from "./share_title.ts";
import { asProblem, Button, CopyField, Dialog, ErrorLine } from "../ui/kit.tsx";

interface ShareResultProps {
  /** One query, or before and after. */
  request: QueryRequest[];
  /** The query string with which the share shows the current view. */
  view: string;
  /** The sample labels that the view needs. */
  labels: readonly string[];
  onClose: () => void;
}

/**
 * A side of a comparison may lack a label that the other side has, and naming a label that does not
 * exist is an error.
 */
const allLabels = ["*"];

/** The sides have their own titles, or the chosen title with a word that identifies the side. */
function sideTitle(i: number, titles: readonly string[], chosen = titles.at(-1)!): string {
  if (titles.length < 2) return chosen;
  return chosen === titles[1] ? titles[i] : `${chosen} (${i ? "after" : "before"})`;
}

async function keep(
  request: readonly QueryRequest[],
  titles: readonly string[],
  settings: ShareSettings,
  labels: readonly string[],
): Promise<string> {
  const kept = request.length > 1 && labels.length ? allLabels : labels;
  const made: { id: string; url: string }[] = [];
  for (const [i, one] of request.entries()) {
    made.push(
      await shareResult(one, { ...settings, title: sideTitle(i, titles, settings.title) }, kept),
    );
  }
  return made.length > 1
    ? `${location.origin}/d/${made.map(({ id }) => id).join("..")}`
    : made[0].url;
}

export function ShareResult({ request, view, labels, onClose }: ShareResultProps) {
  const [titles] = useState(() => titlesOf(request));
  const [settings, setSettings] = useState<ShareSettings>({
    visibility: "team",
    title: titles.at(-1),
  });
  const [link, setLink] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<Problem | null>(null);
  const send = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      setLink((await keep(request, titles, cleanSettings(settings), labels)) + view);
    } catch (caught) {
      setError(asProblem(caught));
    }
    setBusy(false);
  };
  return (
    <Dialog
      title={request.length > 1 ? "Share this comparison" : "Share this profile"}
      onClose={onClose}
    >
      {link ? (
        <>
          <p>This link keeps showing this view, even after its profiles are deleted.</p>
          <CopyField what="Link" text={link} />
          <div class="actions">
            <a class="button primary" href={link}>
              <span>Open link</span>
            </a>
          </div>
        </>
      ) : (
        <form onSubmit={send}>
          <SettingsForm settings={settings} hasTeam onChange={setSettings} />
          <ErrorLine error={error} />
          <div class="actions">
            <Button look="primary" type="submit" disabled={isBusy}>
              Create link
            </Button>
          </div>
        </form>
      )}
    </Dialog>
  );
}

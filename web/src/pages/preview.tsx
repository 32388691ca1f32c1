/* preview: a file that was chosen, shown before anything is sent. */
import { useEffect, useState } from "preact/hooks";
import { RefusedError } from "../local/profile.ts";
import { LocalFile } from "../local_file.ts";
import type { LocalSummary } from "../local_worker.ts";
import { formatLabels } from "../model/labels.ts";
import { Icon } from "../ui/icons.tsx";
import { asProblem } from "../ui/kit.tsx";
import type { Problem } from "../api.ts";
import { useViewState, Viewer } from "../views/viewer.tsx";

/** The type that a link's word means: a name, a number where names are empty or repeat, or nothing. */
function typeOf(token: string, summary: LocalSummary): number {
  if (token === "") return summary.defaultType;
  const named = summary.sampleTypes.findIndex(({ type }) => type === token);
  const index = /^\d+$/.test(token) ? Number(token) : named;
  return index >= 0 && index < summary.sampleTypes.length ? index : summary.defaultType;
}

interface Opened {
  local: LocalFile;
  summary: LocalSummary | null;
}

export function Preview({ file, isRedacted }: { file: File; isRedacted: boolean }) {
  const [opened, setOpened] = useState<Opened | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isRefused, setRefused] = useState(false);
  const [state, update] = useViewState();
  useEffect(() => {
    const local = new LocalFile(file);
    let isLeft = false;
    local.read().then(
      (summary) => !isLeft && setOpened({ local, summary }),
      (error) => {
        if (isLeft) return;
        setRefused(error instanceof RefusedError);
        setProblem(asProblem(error));
      },
    );
    return () => {
      isLeft = true;
      local.close();
    };
  }, [file]);

  if (problem)
    return (
      <p class="preview-note" role="status">
        <Icon name="alert" /> {problem.detail || problem.message} {!isRefused && "The server may still understand it."}
      </p>
    );
  if (!opened) return null;
  const { local, summary } = opened;
  if (!summary)
    return <p class="preview-note" role="status">There is no preview of this format: only the server reads it.</p>;
  return (
    <section class="preview" aria-label="Preview, not uploaded">
      <p class="preview-note" role="status">
        <Icon name="lock" /> Read in your browser: nothing has been uploaded yet. {isRedacted ? "This is what would be sent. " : ""}{summary.notes.join(" ")}
      </p>
      <Viewer
        isReady
        hasGroups={false}
        state={state}
        update={update}
        flameKey={`${file.name}\n${file.lastModified}\n${typeOf(state.sampleType, summary)}\n${formatLabels(state.labels)}`}
        load={() => local.flame(typeOf(state.sampleType, summary), state.labels)}
        loadRows={() => Promise.resolve([])}
        loadLabels={(question) => local.labels(typeOf(state.sampleType, summary), question)}
      />
    </section>
  );
}

/* preview: a file that was chosen, or two that are compared, shown before anything is sent. */
import { useEffect, useState } from "preact/hooks";
import { PairError, RefusedError } from "../local/profile.ts";
import { LocalFile } from "../local_file.ts";
import type { LocalSummary } from "../local_worker.ts";
import { formatLabels } from "../model/labels.ts";
import { Icon } from "../ui/icons.tsx";
import { asProblem, Button } from "../ui/kit.tsx";
import type { Problem } from "../api.ts";
import type { Flame } from "../model/flame.ts";
import { Verdict } from "../views/legend.tsx";
import { useViewState, Viewer } from "../views/viewer.tsx";

interface Opened {
  local: LocalFile;
  summary: LocalSummary | null;
}

interface SidesProps {
  files: readonly File[];
  flame: Flame;
  isNormalised: boolean;
  onSwap: () => void;
}

function Sides({ files, flame, isNormalised, onSwap }: SidesProps) {
  return (
    <header class="preview-sides">
      <span>
        <em>Before</em> {files[0].name} · <em>After</em> {files[1].name}
      </span>
      <Verdict flame={flame} isNormalised={isNormalised} />
      <Button icon="swap" onClick={onSwap} title="Swap sides (x)">Swap</Button>
    </header>
  );
}

/** Two files of one that holds both sides of a comparison. */
async function splitFile(file: File): Promise<File[]> {
  const local = new LocalFile([file]);
  try {
    const sides = await local.split();
    return sides.map((side, i) => new File([side], `${i ? "after" : "before"}-${file.name.replace(/\.gz$/i, "")}`, { lastModified: file.lastModified }));
  } finally {
    local.close();
  }
}

interface PreviewProps {
  files: readonly File[];
  isRedacted: boolean;
  /** Others are chosen in their place. */
  onFiles: (files: File[]) => void;
  onSwap: () => void;
}

/** files: one, or before and after; another list means other files. */
export function Preview({ files, isRedacted, onFiles, onSwap }: PreviewProps) {
  const isDiff = files.length === 2;
  const [opened, setOpened] = useState<Opened | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [refusal, setRefusal] = useState<RefusedError | null>(null);
  const [flame, setFlame] = useState<Flame | null>(null);
  const [state, update] = useViewState();
  useEffect(() => {
    const local = new LocalFile(files);
    let isLeft = false;
    local.read().then(
      (summary) => !isLeft && setOpened({ local, summary }),
      (error) => {
        if (isLeft) return;
        setRefusal(error instanceof RefusedError ? error : null);
        setProblem(asProblem(error));
      },
    );
    return () => {
      isLeft = true;
      local.close();
    };
  }, [files]);

  if (problem)
    return (
      <p class="preview-note" role="status">
        <Icon name="alert" /> {problem.detail || problem.message} {!refusal && "The server may still understand it."}
        {refusal instanceof PairError && !isDiff && <Button onClick={() => void splitFile(files[0]).then(onFiles)}>Split it into before and after</Button>}
      </p>
    );
  if (!opened) return null;
  const { local, summary } = opened;
  if (!summary)
    return <p class="preview-note" role="status">There is no preview of {isDiff ? "these two: the format of one is read by the server alone" : "this format: only the server reads it"}.</p>;
  const { sampleType, group, labels, isNormalised } = state;
  const normalise = () => update({ isNormalised: !isNormalised });
  return (
    <section class="preview" aria-label="Preview, not uploaded">
      <p class="preview-note" role="status">
        <Icon name="lock" /> Read in your browser: nothing has been uploaded yet. {isRedacted ? "This is what would be sent. " : ""}{summary.notes.join(" ")}
      </p>
      {isDiff && flame && <Sides files={files} flame={flame} isNormalised={isNormalised} onSwap={onSwap} />}
      <Viewer
        isReady
        isDiff={isDiff}
        state={state}
        update={update}
        flameKey={[...files.flatMap(({ name, lastModified }) => [name, lastModified]), sampleType, group, isNormalised, formatLabels(labels)].join("\n")}
        load={(_, __, other) => local.flame(sampleType, { group: other ?? group, labels, isNormalised })}
        loadRows={() => Promise.resolve([])}
        loadLabels={(question) => local.labels(sampleType, question, isNormalised)}
        labelKeys={summary.labelKeys}
        onFlame={setFlame}
        extraKeys={isDiff ? { "%": normalise, x: onSwap } : undefined}
        tools={
          isDiff && (
            <Button class="toggle" aria-pressed={isNormalised} onClick={normalise} title="Scale both sides to the same total (%)">
              Normalise
            </Button>
          )
        }
      />
    </section>
  );
}

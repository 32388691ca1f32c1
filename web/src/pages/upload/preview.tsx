/* preview: shows a chosen file, or two that are compared, before anything is sent. */
import { useEffect, useState } from "preact/hooks";
import { LocalError, PairError, RefusedError } from "../../local/profile.ts";
import { LocalFile } from "../../workers/local_file.ts";
import type { LocalSummary, Unread } from "../../workers/local_worker.ts";
import { formatLabels } from "../../model/rules/labels.ts";
import { Icon } from "../../ui/icons.tsx";
import { asProblem, Button, showMessage } from "../../ui/kit.tsx";
import type { Problem } from "../../api/api.ts";
import type { Flame } from "../../model/tree/flame.ts";
import { DiffSummary } from "../../views/foot/legend.tsx";
import { nameAmong } from "./choose_files.tsx";
import { useViewState } from "../../views/view_address.ts";
import { Viewer } from "../../views/viewer.tsx";

interface Opened {
  local: LocalFile;
  summary: LocalSummary | Unread;
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
        <em>Before</em> {nameAmong(files, 0)} · <em>After</em> {nameAmong(files, 1)}
      </span>
      <DiffSummary flame={flame} isNormalised={isNormalised} />
      <Button icon="swap" onClick={onSwap} title="Swap sides (x)">
        Swap
      </Button>
    </header>
  );
}

/** Splits a file that contains both sides of a comparison into two. */
async function splitFile(file: File): Promise<File[]> {
  const local = new LocalFile([file]);
  try {
    const sides = await local.split();
    return sides.map(
      (side, i) =>
        new File([side], `${i ? "after" : "before"}-${file.name.replace(/\.gz$/i, "")}`, {
          lastModified: file.lastModified,
        }),
    );
  } finally {
    local.close();
  }
}

/**
 * The part of the upload that the server is expected to refuse: everything that needs one of these
 * files, or only their comparison; "" for none, "unknown" while they are being read.
 */
export type ExpectedRefusal = "" | "file" | "comparison" | "unknown";

interface PreviewProps {
  files: readonly File[];
  isRedacted: boolean;
  /** Replaces the chosen files. */
  onFiles: (files: File[]) => void;
  onRemove: (index: number) => void;
  onSwap: () => void;
  onExpectedRefusal: (what: ExpectedRefusal) => void;
}

/** files: one, or before and after; a new list means other files. */
export function Preview({
  files,
  isRedacted,
  onFiles,
  onRemove,
  onSwap,
  onExpectedRefusal,
}: PreviewProps) {
  const isDiff = files.length === 2;
  const [opened, setOpened] = useState<Opened | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [refusal, setRefusal] = useState<RefusedError | null>(null);
  const [wrong, setWrong] = useState(-1); // the index of the file that cannot be read; -1: unknown
  const [flame, setFlame] = useState<Flame | null>(null);
  const [state, update] = useViewState();
  useEffect(() => {
    const local = new LocalFile(files);
    let isLeft = false;
    onExpectedRefusal("");
    local.read().then(
      (summary) => !isLeft && setOpened({ local, summary }),
      (error) => {
        if (isLeft) return;
        setRefusal(error instanceof RefusedError ? error : null);
        setWrong(error instanceof LocalError ? error.file : -1);
        onExpectedRefusal(error instanceof RefusedError ? "file" : "");
        setProblem(asProblem(error));
      },
    );
    return () => {
      isLeft = true;
      local.close();
    };
  }, [files]);

  if (problem) {
    const name = isDiff && wrong >= 0 ? nameAmong(files, wrong) : "";
    return (
      <p class="preview-note" role="status">
        <Icon name="alert" />
        {name && <strong> {name}:</strong>}
        {` ${problem.detail || problem.message} `}
        {!refusal && "The server may still be able to read it."}
        {refusal instanceof PairError && !isDiff && (
          <Button onClick={() => void splitFile(files[0]).then(onFiles)}>
            Split it into before and after
          </Button>
        )}
        {isDiff && wrong >= 0 && (
          <Button onClick={() => onRemove(wrong)}>Continue without it</Button>
        )}
      </p>
    );
  }
  if (!opened) return null;
  const { local, summary } = opened;
  if ("unread" in summary)
    return (
      <p class="preview-note" role="status">
        {isDiff
          ? "There is no preview of these files: only the server can read " +
            `${nameAmong(files, summary.unread)}.`
          : "There is no preview of this file: only the server can read its format."}
      </p>
    );
  const { sampleType, group, labels, isNormalised } = state;
  const normalise = () => update({ isNormalised: !isNormalised });
  return (
    <section class="preview" id="preview" aria-label="Preview, not uploaded">
      <p class="preview-note" role="status">
        <Icon name="lock" /> Shown from your browser before any upload.{" "}
        {isRedacted ? "This is what will be uploaded. " : ""}
        {summary.notes.join(" ")}
      </p>
      {isDiff && flame && (
        <Sides files={files} flame={flame} isNormalised={isNormalised} onSwap={onSwap} />
      )}
      <Viewer
        isReady
        isDiff={isDiff}
        state={state}
        update={update}
        flameKey={[
          ...files.flatMap(({ name, lastModified, size }) => [name, lastModified, size]),
          sampleType,
          group,
          isNormalised,
          formatLabels(labels),
        ].join("\n")}
        load={(_, __, other) =>
          local.flame(sampleType, { group: other ?? group, labels, isNormalised }).then(
            (tree) => (onExpectedRefusal(""), tree),
            (caught) => {
              // Another type may be comparable.
              if (isDiff && !sampleType) onExpectedRefusal("comparison");
              throw caught;
            },
          )
        }
        loadRows={() => Promise.resolve([])}
        loadLabels={(labelsRequest) => local.labels(sampleType, labelsRequest, isNormalised)}
        labelKeys={summary.labelKeys}
        onFlame={setFlame}
        extraKeys={{
          y: () => showMessage("There is no link yet: share the profile first"),
          ...(isDiff && { "%": normalise, x: onSwap }),
        }}
        tools={
          isDiff && (
            <Button
              class="toggle"
              aria-pressed={isNormalised}
              onClick={normalise}
              title="Scale both sides to the same total (%)"
            >
              Normalise
            </Button>
          )
        }
      />
    </section>
  );
}

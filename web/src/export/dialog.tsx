/*
 * dialog: saves the view as a file. The browser creates every file; only a page with all groups
 * loads their trees from the server.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { ExportForm } from "./write.ts";
import { formatBytes, formatPercent, formatValue } from "../model/text/units.ts";
import { asProblem, Button, Dialog, ErrorLine, showMessage } from "../ui/kit.tsx";
import { Icon } from "../ui/icons.tsx";
import type { PaneContext } from "../views/panes.tsx";
import { picturesShown } from "../views/icicle/stage.ts";
import type { Problem } from "../api/api.ts";
import { describeFilters, makePage, maxPageBytes, type PackedTree, type PageHues } from "./page.ts";
import { loadGroups, type LoadedGroups } from "./load_groups.ts";
import { fileNameOf, makeParts, save, type Seen } from "./make.ts";
import { parentOf } from "../model/tree/flame.ts";
import { FrameColours } from "../model/colours/frame_colours.ts";
import { groupOfLabel } from "../model/rules/labels.ts";
import { servedRules, splitRules, type ServedRules } from "../model/rules/served_rules.ts";
import { graphShown, graphToPng, graphToSvg } from "./graph_picture.ts";
import { toPng, toSvg } from "./pictures.ts";
import { addStyle } from "../ui/later.tsx";
import style from "./dialog.css?text";

addStyle(style);

type Kind = ExportForm | "svg" | "png";

interface Choice {
  kind: Kind;
  label: string;
  ending: string;
  type: string;
  note: string;
}

const choices: Choice[] = [
  {
    kind: "pprof",
    label: "pprof",
    ending: ".pb.gz",
    type: "application/gzip",
    note: "for go tool pprof and most other viewers",
  },
  {
    kind: "folded",
    label: "Folded stacks",
    ending: ".folded",
    type: "text/plain",
    note: "one line per stack, with names and values only",
  },
  {
    kind: "json",
    label: "JSON",
    ending: ".json",
    type: "application/json",
    note: "the tree in the API’s format",
  },
  {
    kind: "page",
    label: "Page with the viewer",
    ending: ".html",
    type: "text/html",
    note: `one file that opens offline, up to ${formatBytes(maxPageBytes)}`,
  },
  {
    kind: "svg",
    label: "Vector picture",
    ending: ".svg",
    type: "image/svg+xml",
    note: "the current view, with text and tooltips",
  },
  { kind: "png", label: "Picture", ending: ".png", type: "image/png", note: "the current view" },
];
const isPicture = (kind: Kind): kind is "svg" | "png" => kind === "svg" || kind === "png";

/** The graph is saved if no icicle is visible; it is not a canvas. */
const hasPicture = () => picturesShown().length > 0 || graphShown() !== null;

const pageTitle = () => document.title.replace(/ · Perfolio$/, "");

/**
 * The rules that give the same samples in another grouping; null if another grouping would show
 * other samples.
 */
function rulesForAll({ state, regrouped }: PaneContext): ServedRules | undefined | null {
  const active = state.rules.filter((rule) => !rule.isOff);
  if (active.length === 0) return undefined;
  // The server applies its rules to the samples, independent of the grouping.
  const { served, rest } = splitRules(active, state.group, state.labels.length);
  return regrouped?.canServe && rest.length === 0 ? servedRules(served) : null;
}

/** The groups that the page contains besides the current one. */
function otherGroups(context: PaneContext, own: string): string[] {
  return context.regrouped && rulesForAll(context) !== null
    ? context.regrouped.groups.filter((group) => group !== own)
    : [];
}

/** A link may name a label without the "label:" prefix. */
function ownGroup({ state, regrouped }: PaneContext): string {
  return (
    regrouped?.groups.find((one) => one === state.group || one === groupOfLabel(state.group)) ??
    state.group
  );
}

/** The whole tree in another grouping, under the same rules. */
async function packGroup(
  context: PaneContext,
  group: string,
  signal: AbortSignal,
): Promise<BlobPart[]> {
  const flame = await context.regrouped!.load(signal, rulesForAll(context) ?? undefined, group);
  return makeParts({ source: flame, flame, zoom: 0, comment: "" }, "page");
}

function huesOf({ source, flame, zoom }: Seen): PageHues {
  const frames = new Set(flame.frame.subarray(zoom, flame.end[zoom]));
  for (let at = zoom; at > 0;) frames.add(flame.frame[(at = parentOf(flame, at))]);
  return Object.fromEntries(
    (["package", "binary"] as const).map((mode) => [
      mode,
      new FrameColours(source, mode).huesOf(frames),
    ]),
  );
}

/** The visible tree, followed by the trees of other groups that were loaded. */
async function packPage(
  seen: Seen,
  context: PaneContext,
  { trees }: LoadedGroups<BlobPart[]>,
): Promise<Blob> {
  const group = ownGroup(context);
  const packed: PackedTree[] = [{ group, parts: await makeParts(seen, "page") }];
  for (const other of otherGroups(context, group))
    if (trees.has(other)) packed.push({ group: other, parts: trees.get(other)! });
  return makePage(packed, {
    title: pageTitle(),
    state: { ...context.state, group },
    hues: huesOf(seen),
  });
}

async function makeFile(
  kind: Kind,
  type: string,
  seen: Seen,
  context: PaneContext,
  gathered: LoadedGroups<BlobPart[]>,
): Promise<Blob> {
  const graph = picturesShown().length ? null : graphShown();
  if (kind === "svg")
    return new Blob(
      [graph ? graphToSvg(graph, pageTitle()) : toSvg(picturesShown(), pageTitle())],
      { type },
    );
  if (kind === "png") return graph ? graphToPng(graph) : toPng(picturesShown());
  if (kind === "page") return packPage(seen, context, gathered);
  return new Blob(await makeParts(seen, kind), { type });
}

/** The groups that are being loaded. */
interface Progress {
  done: number;
  of: number;
}

/** A page for which some groups could not be loaded. */
interface Unfinished {
  choice: Choice;
  gathered: LoadedGroups<BlobPart[]>;
}

function useExport(context: PaneContext, isZoomed: boolean, hasGroups: boolean) {
  const [busy, setBusy] = useState<Kind | null>(null);
  const [error, setError] = useState<Problem | null>(null);
  const [progress, setProgress] = useState<Progress | null>(null);
  const [unfinished, setUnfinished] = useState<Unfinished | null>(null);
  const abort = useRef<AbortController | null>(null);
  const cancel = () => abort.current?.abort();
  useEffect(() => cancel, []); // closing the dialog cancels everything

  /** False if some groups failed; then the reader decides how to continue. */
  const gatherFor = async (
    choice: Choice,
    gathered: LoadedGroups<BlobPart[]>,
    signal: AbortSignal,
  ): Promise<boolean> => {
    const groups = otherGroups(context, ownGroup(context));
    const make = (group: string) => packGroup(context, group, signal);
    await loadGroups(groups, make, gathered, signal, (done) =>
      setProgress({ done, of: groups.length }),
    );
    if (gathered.failed.size > 0) setUnfinished({ choice, gathered });
    return gathered.failed.size === 0;
  };
  const write = async (
    { kind, ending, type }: Choice,
    gathered: LoadedGroups<BlobPart[]>,
    signal: AbortSignal,
  ) => {
    const { flame, source, state, zoom } = context;
    const filters = describeFilters(state).join("; ");
    const comment = `exported view of ${pageTitle()}${filters ? `, filtered: ${filters}` : ""}`;
    const blob = await makeFile(
      kind,
      type,
      { flame, source, zoom: isZoomed ? zoom : 0, comment },
      context,
      gathered,
    );
    signal.throwIfAborted();
    const name = fileNameOf(pageTitle()) + ending;
    save(blob, name);
    showMessage(`${name}, ${formatBytes(blob.size)}`);
  };
  /** Focuses the choice, because the previously focused element disappears. */
  const focusOn = ({ kind }: Choice) => document.getElementById(`export-${kind}`)?.focus();
  /** loadsMissing: load the missing groups first. */
  const run = async (
    choice: Choice,
    gathered: LoadedGroups<BlobPart[]> = { trees: new Map(), failed: new Map() },
    loadsMissing = true,
  ) => {
    if (busy !== null) return;
    focusOn(choice);
    const { signal } = (abort.current = new AbortController());
    setBusy(choice.kind);
    setError(null);
    setUnfinished(null);
    try {
      const isWhole =
        choice.kind !== "page" ||
        !hasGroups ||
        isZoomed ||
        !loadsMissing ||
        (await gatherFor(choice, gathered, signal));
      if (isWhole) await write(choice, gathered, signal);
    } catch (caught) {
      if (!signal.aborted) setError(asProblem(caught));
    }
    if (document.activeElement?.closest(".export-progress")) focusOn(choice);
    setBusy(null);
    setProgress(null);
  };
  return { busy, error, progress, unfinished, run, cancel };
}

/** The progress while groups load, and the groups that failed. */
function GroupState({
  progress,
  unfinished,
  run,
  cancel,
}: Pick<ReturnType<typeof useExport>, "progress" | "unfinished" | "run" | "cancel">) {
  const word = (group: string) => group.replace(/^label:/, "");
  const missing = useRef<HTMLDivElement>(null);
  useEffect(() => missing.current?.querySelector("button")?.focus(), [unfinished]);
  return (
    <>
      {progress && (
        <div class="actions export-progress">
          <progress max={progress.of} value={progress.done} aria-label="Groupings of the page" />
          <span role="status">
            {progress.done} of {progress.of} groupings
          </span>
          <Button onClick={cancel}>Cancel</Button>
        </div>
      )}
      {unfinished && (
        <div class="export-missing" role="alert" ref={missing}>
          <p>These groupings could not be loaded, and nothing is saved yet:</p>
          <ul>
            {[...unfinished.gathered.failed].map(([group, why]) => (
              <li key={group}>
                <strong>{word(group)}</strong> {why}
              </li>
            ))}
          </ul>
          <div class="actions">
            <Button look="primary" onClick={() => void run(unfinished.choice, unfinished.gathered)}>
              Try again
            </Button>
            <Button onClick={() => void run(unfinished.choice, unfinished.gathered, false)}>
              Save without them
            </Button>
          </div>
        </div>
      )}
    </>
  );
}

/** Describes the contents of the files; for a comparison, of side b. */
function Extent({ context, isZoomed }: { context: PaneContext; isZoomed: boolean }) {
  const { flame, source, state, zoom, unit } = context;
  const kept = flame.cum[isZoomed ? zoom : 0];
  const hasRules = describeFilters(state).length > 0;
  const isAll = kept === source.total;
  return (
    <p>
      The files contain what you see{hasRules ? ", after the rules" : ""}:{" "}
      <strong>{formatValue(kept, unit)}</strong>
      {isAll ? "" : ` of ${formatValue(source.total, unit)} (${formatPercent(kept, source.total)})`}
      , of this sample type.
      {flame.isCut
        ? " The smallest stacks of this profile are merged into “other” boxes, in the files too."
        : ""}
      {flame.isDiff ? " They contain both values, before and after." : ""}
    </p>
  );
}

interface GroupsProps {
  context: PaneContext;
  isZoomed: boolean;
  isOn: boolean;
  onChange: (isOn: boolean) => void;
}

/** Chooses whether the saved page offers other groupings; the file then contains their trees. */
function Groups({ context, isZoomed, isOn, onChange }: GroupsProps) {
  const labels = context.regrouped!.groups.flatMap(
    (group) => /^label:(.*)$/s.exec(group)?.[1] ?? [],
  );
  const isPossible = !isZoomed && rulesForAll(context) !== null;
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={isOn && isPossible}
        disabled={!isPossible}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>
        Include the other groupings in the page: function, file, line, address, binary
        {labels.map((label) => `, ${label}`)}
        {!isPossible &&
          (isZoomed
            ? " (not available when only a part is saved)"
            : " (not available with rules that apply to this grouping only)")}
      </span>
    </label>
  );
}

export interface ExportProps {
  context: PaneContext;
  onClose: () => void;
}

export function ExportDialog({ context, onClose }: ExportProps) {
  const { flame, zoom } = context;
  const [isZoomed, setZoomed] = useState(zoom > 0);
  const [hasGroups, setGroups] = useState(true);
  const { busy, error, progress, unfinished, run, cancel } = useExport(
    context,
    isZoomed,
    hasGroups,
  );
  return (
    <Dialog title="Save this view" onClose={onClose}>
      <Extent context={context} isZoomed={isZoomed} />
      {zoom > 0 && (
        <label class="check">
          <input
            type="checkbox"
            checked={isZoomed}
            onChange={(event) => setZoomed(event.currentTarget.checked)}
          />
          <span>
            Only stacks through <bdi>{flame.frames.name(flame.frame[zoom])}</bdi>, the zoomed frame
          </span>
        </label>
      )}
      {context.regrouped && (
        <Groups context={context} isZoomed={isZoomed} isOn={hasGroups} onChange={setGroups} />
      )}
      <ul class="choices export-choices">
        {choices.map((choice) => (
          <li key={choice.kind}>
            <button
              type="button"
              id={`export-${choice.kind}`}
              aria-disabled={busy !== null}
              disabled={isPicture(choice.kind) && !hasPicture()}
              onClick={() => void run(choice)}
            >
              <Icon name="download" />
              <span>
                {choice.label} <em>{choice.ending}</em>
              </span>
              <span class="hint">
                {busy === choice.kind
                  ? "creating the file…"
                  : isPicture(choice.kind) && !hasPicture()
                    ? "this view has no picture; open the icicle view"
                    : choice.note}
              </span>
            </button>
          </li>
        ))}
      </ul>
      <p class="hint">
        Your browser creates the files; only a page’s other groupings are loaded from the server.
        The files contain no link to this page.
      </p>
      <GroupState {...{ progress, unfinished, run, cancel }} />
      <ErrorLine error={error} />
    </Dialog>
  );
}

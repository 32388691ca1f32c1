/* dialog: saves what is seen as a file; everything is made in the browser; only a page with all groups asks the server for their trees. */
import { useState } from "preact/hooks";
import type { ExportForm } from "../export_worker.ts";
import { formatBytes, formatPercent, formatValue } from "../model/units.ts";
import { asProblem, Dialog, ErrorLine, say } from "../ui/kit.tsx";
import { Icon } from "../ui/icons.tsx";
import type { PaneContext } from "../views/panes.tsx";
import { picturesShown } from "../views/stage.ts";
import type { Problem } from "../api.ts";
import { filterWords } from "./filter_words.ts";
import { fileNameOf, makeParts, save, type Seen } from "./make.ts";
import { makePage, maxPageBytes, type PackedTree } from "./page.ts";
import { groupOfLabel } from "../model/labels.ts";
import { servedRules, splitRules, type ServedRules } from "../model/served_rules.ts";
import { graphShown, graphToPng, graphToSvg } from "./graph_picture.ts";
import { toPng, toSvg } from "./pictures.ts";

type Kind = ExportForm | "svg" | "png";

interface Choice {
  kind: Kind;
  label: string;
  ending: string;
  type: string;
  note: string;
}

const choices: Choice[] = [
  { kind: "pprof", label: "pprof", ending: ".pb.gz", type: "application/gzip", note: "for go tool pprof and most other viewers" },
  { kind: "folded", label: "Folded stacks", ending: ".folded", type: "text/plain", note: "one line for each stack: names and values alone" },
  { kind: "json", label: "JSON", ending: ".json", type: "application/json", note: "the tree as the API gives it" },
  { kind: "page", label: "Page with the viewer", ending: ".html", type: "text/html", note: `one file that opens without a network, up to ${formatBytes(maxPageBytes)}` },
  { kind: "svg", label: "Picture, to zoom", ending: ".svg", type: "image/svg+xml", note: "as it is on the screen now, with texts and titles" },
  { kind: "png", label: "Picture", ending: ".png", type: "image/png", note: "as it is on the screen now" },
];
const isPicture = (kind: Kind): kind is "svg" | "png" => kind === "svg" || kind === "png";

/** A graph is saved where no icicle is seen; it is no canvas. */
const hasPicture = () => picturesShown().length > 0 || graphShown() !== null;

const pageTitle = () => document.title.replace(/ · Perfolio$/, "");

/** The rules under which another group has what is seen; null where it would have something else. */
function rulesForAll({ state, regrouped }: PaneContext): ServedRules | undefined | null {
  const active = state.rules.filter((rule) => !rule.isOff);
  if (active.length === 0) return undefined;
  // The server applies its rules to the samples, whatever they are grouped by.
  const { served, rest } = splitRules(active, state.group, state.labels.length);
  return regrouped?.canServe && rest.length === 0 ? servedRules(served) : null;
}

/** What is seen, then the same by all other groups. */
async function packTrees(seen: Seen, context: PaneContext, own: string, hasGroups: boolean): Promise<PackedTree[]> {
  const { regrouped } = context;
  const trees = [{ group: own, parts: await makeParts(seen, "page") }];
  const rules = rulesForAll(context);
  if (!hasGroups || !regrouped || rules === null) return trees;
  for (const group of regrouped.groups) {
    if (group === own) continue;
    const flame = await regrouped.load(new AbortController().signal, rules, group);
    trees.push({ group, parts: await makeParts({ source: flame, flame, zoom: 0, comment: "" }, "page") });
  }
  return trees;
}

async function makeFile(kind: Kind, type: string, seen: Seen, context: PaneContext, hasGroups: boolean): Promise<Blob> {
  const graph = picturesShown().length ? null : graphShown();
  if (kind === "svg") return new Blob([graph ? graphToSvg(graph, pageTitle()) : toSvg(picturesShown(), pageTitle())], { type });
  if (kind === "png") return graph ? graphToPng(graph) : toPng(picturesShown());
  if (kind === "page") {
    const { state, regrouped } = context;
    // A link may name a label without saying that it is one.
    const group = regrouped?.groups.find((one) => one === state.group || one === groupOfLabel(state.group)) ?? state.group;
    return makePage(await packTrees(seen, context, group, hasGroups && seen.zoom === 0), { title: pageTitle(), state: { ...state, group } });
  }
  return new Blob(await makeParts(seen, kind), { type });
}

function useExport(context: PaneContext, isZoomed: boolean, hasGroups: boolean) {
  const [busy, setBusy] = useState<Kind | null>(null);
  const [error, setError] = useState<Problem | null>(null);
  const run = async ({ kind, ending, type }: Choice) => {
    setBusy(kind);
    setError(null);
    const { flame, source, state, zoom } = context;
    const filters = filterWords(state).join("; ");
    const comment = `exported view of ${pageTitle()}${filters ? `, of which: ${filters}` : ""}`;
    try {
      const blob = await makeFile(kind, type, { flame, source, zoom: isZoomed ? zoom : 0, comment }, context, hasGroups);
      const name = fileNameOf(pageTitle()) + ending;
      save(blob, name);
      say(`${name}, ${formatBytes(blob.size)}`);
    } catch (caught) {
      setError(asProblem(caught));
    }
    setBusy(null);
  };
  return { busy, error, run };
}

/** What the files hold, in words; of a comparison, side b. */
function Extent({ context, isZoomed }: { context: PaneContext; isZoomed: boolean }) {
  const { flame, source, state, zoom, unit } = context;
  const kept = flame.cum[isZoomed ? zoom : 0];
  const hasRules = filterWords(state).length > 0;
  const isAll = kept === source.total;
  return (
    <p>
      Saved is what you see{hasRules ? ", after the rules" : ""}: <strong>{formatValue(kept, unit)}</strong>
      {isAll ? "" : ` of ${formatValue(source.total, unit)} (${formatPercent(kept, source.total)})`}, of this sample type.
      {flame.isCut ? " The smallest stacks of this profile are merged into “other” boxes, and are so in the files." : ""}
      {flame.isDiff ? " Files of a comparison hold both values, before and after." : ""}
    </p>
  );
}

interface GroupsProps {
  context: PaneContext;
  isZoomed: boolean;
  isOn: boolean;
  onChange: (isOn: boolean) => void;
}

/** Whether the page can be grouped, too: its file then holds what that needs. */
function Groups({ context, isZoomed, isOn, onChange }: GroupsProps) {
  const labels = context.regrouped!.groups.flatMap((group) => /^label:(.*)$/s.exec(group)?.[1] ?? []);
  const isPossible = !isZoomed && rulesForAll(context) !== null;
  return (
    <label class="check">
      <input type="checkbox" checked={isOn && isPossible} disabled={!isPossible} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>
        The page can be grouped otherwise: by function, file, line, address, binary{labels.map((label) => `, ${label}`)}
        {isPossible ? "" : ` (not where ${isZoomed ? "only a part is saved" : "rules are of this grouping alone"})`}
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
  const { busy, error, run } = useExport(context, isZoomed, hasGroups);
  return (
    <Dialog title="Save this view" onClose={onClose}>
      <Extent context={context} isZoomed={isZoomed} />
      {zoom > 0 && (
        <label class="check">
          <input type="checkbox" checked={isZoomed} onChange={(event) => setZoomed(event.currentTarget.checked)} />
          <span>
            Only stacks through <bdi>{flame.frames.name(flame.frame[zoom])}</bdi>, which is zoomed to
          </span>
        </label>
      )}
      {context.regrouped && <Groups context={context} isZoomed={isZoomed} isOn={hasGroups} onChange={setGroups} />}
      <ul class="choices export-choices">
        {choices.map((choice) => (
          <li key={choice.kind}>
            <button type="button" disabled={busy !== null || (isPicture(choice.kind) && !hasPicture())} onClick={() => void run(choice)}>
              <Icon name="download" />
              <span>
                {choice.label} <em>{choice.ending}</em>
              </span>
              <span class="hint">{busy === choice.kind ? "being written…" : isPicture(choice.kind) && !hasPicture() ? "this view has no picture: see the icicle" : choice.note}</span>
            </button>
          </li>
        ))}
      </ul>
      <p class="hint">All of it is made in this browser; the page asks the server for its other groups. The files hold no link to this page.</p>
      <ErrorLine error={error} />
    </Dialog>
  );
}

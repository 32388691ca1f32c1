/*
 * viewer: toolbar, icicle, table and what stands below them, for one tree that a page provides.
 *
 * It knows no server: the page gives a function that loads the tree for a state. What is shown is
 * a function of the tree and the state, and the state is the address bar (use_view_state).
 */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Problem } from "../api.ts";
import { unknownRules, type Action, type Rule } from "../model/chain.ts";
import { FrameFlag, hasSigns, parentOf, pathOf, type Flame, type SampleType } from "../model/flame.ts";
import { FrameColours } from "../model/frame_colours.ts";
import { countedAs, countFunctions } from "../model/functions.ts";
import { cleanLabelRules, groupOfLabel, type LoadLabels } from "../model/labels.ts";
import { findByPathHash, pathHash } from "../model/path.ts";
import { bothMarks, exactly, nextMatch } from "../model/search.ts";
import { keyOf, Undo, type Filters } from "../model/undo.ts";
import { formatCount, formatPercent, formatValue } from "../model/units.ts";
import { colourModes, formatState, groups as allGroups, parseState, views, type ColourMode, type SeenPart, type Update, type View, type ViewState } from "../state.ts";
import { Button, copyText, Loading, ProblemView, say, Segments, Select } from "../ui/kit.tsx";
import { later } from "../ui/later.tsx";
import { usePalette } from "../ui/theme.ts";
import { describeNode } from "./describe.ts";
import { colourNames, Legend } from "./legend.tsx";
import { panes, Panes, type CommentsOf, type PaneContext } from "./panes.tsx";
import { FrameMenu, RuleBar, RuleMenu, type FrameAction, type MenuPlace } from "./rules.tsx";
import { sameNode } from "./rows.ts";
import { SearchBox, useSearch } from "./search_box.tsx";
import { useFindKey, useKeys } from "./use_keys.ts";
import { useRows, useSource, useTransformed, type Load, type LoadRows } from "./use_flame.ts";

function writeAddress(address: string, how: "push" | "replace"): void {
  if (address === location.pathname + location.search) return;
  try {
    history[how === "push" ? "pushState" : "replaceState"](null, "", address);
  } catch {
    // Some browsers refuse more than a hundred changes in half a minute; the next one will do.
  }
}

/** For another file in the same page: a view of one says nothing about the next. */
export const forgetView = () => writeAddress(location.pathname, "replace");

/** What a link to the view that is in the address bar ends with. */
export const viewQuery = () => formatState(parseState(location.search));

/** The state in the address bar; changes are written to it, back and forward are followed. */
export function useViewState(initial = ""): [ViewState, Update] {
  const [state, setState] = useState(() => parseState(location.search || initial));
  const latest = useRef(state);
  useEffect(() => {
    const follow = () => setState((latest.current = parseState(location.search)));
    addEventListener("popstate", follow);
    return () => removeEventListener("popstate", follow);
  }, []);
  const update: Update = (patch, how = "push") => {
    const halves = "marked" in patch ? { above: null, below: null } : {}; // they are of the function
    const next = { ...latest.current, ...halves, ...patch };
    writeAddress(location.pathname + formatState(next), how);
    latest.current = next;
    setState(next);
  };
  return [state, update];
}

/* ---- below the views ---- */

function DetailLine({ flame, node, unit }: { flame: Flame; node: number; unit: string }) {
  const { name, place, notes, facts } = describeNode(flame, node, unit);
  return (
    <div class="detail" aria-hidden="true">
      <strong title={name}>{name}</strong>
      {facts.map(([label, value]) => (
        <span key={label} class="fact">
          <em>{label}</em> {value}
        </span>
      ))}
      <span class="detail-place" title={place}>{[place, ...notes].filter(Boolean).join(" · ")}</span>
    </div>
  );
}

function valueWithoutSymbols({ frames, frame, self, nodeCount }: Flame): number {
  const isUnnamed = new Uint8Array(frames.count);
  let hasUnnamed = 0;
  for (let i = 0; i < isUnnamed.length; i++) hasUnnamed |= isUnnamed[i] = frames.flags(i) & FrameFlag.NotSymbolised;
  let value = 0;
  if (hasUnnamed) for (let i = 1; i < nodeCount; i++) if (isUnnamed[frame[i]]) value += Math.abs(self[i]);
  return value;
}

/** What a reader must know to read the numbers rightly. */
function notesAbout(flame: Flame): string[] {
  const notes: string[] = [];
  if (flame.isCut) {
    const count = flame.metadata.cut?.nodes;
    notes.push(`${count ? formatCount(count) + " small stacks" : "The smallest stacks"} are merged into “other” boxes.`);
  }
  if (flame.width[0] > Number.MAX_SAFE_INTEGER) notes.push("Some values are so large that their last digits are lost here.");
  if (hasSigns(flame))
    notes.push(`Values below zero are hatched. Boxes are as wide as a value is large, percentages are of the sum, ${formatValue(flame.total, flame.metadata.unit ?? "")}.`);
  const unnamed = valueWithoutSymbols(flame);
  if (unnamed > 0.005 * Math.abs(flame.total))
    notes.push(`${formatPercent(unnamed, flame.total)} is in code without symbols.`);
  return notes;
}

/** "289 of 462" where rules left a part. */
function totalText(flame: Flame, unit: string): string {
  if (flame.isDiff) return `${formatValue(flame.baseTotal, unit)} → ${formatValue(flame.total, unit)}`;
  const whole = formatValue(flame.total, unit);
  return flame.cum[0] === flame.total ? whole : `${flame.bounds.whole}${formatValue(flame.cum[0], unit)} of ${whole}`;
}

/** How much of the whole profile the rules left; of both sides of a diff. */
function shareLeft(flame: Flame, source: Flame): string {
  const shareOf = (value: number, total: number) => flame.bounds.whole + formatPercent(value, total);
  const after = shareOf(flame.cum[0], source.total);
  return flame.baseCum ? `${shareOf(flame.baseCum[0], source.baseTotal)} → ${after}` : after;
}

/* ---- sample types ---- */

/** How the state names a type: by name, or by number where names are empty, repeat or look like one. */
export function sampleTypeToken(types: readonly SampleType[], index: number): string {
  const name = types[index].type;
  const isUnique = types.filter((other) => other.type === name).length === 1;
  return name && isUnique && !/^\d+$/.test(name) ? name : String(index);
}

/**
 * The name; with the unit where names alone do not tell types apart. A type without a name is called by its index, as
 * the API and the command line do.
 */
export function sampleTypeLabel(types: readonly SampleType[], index: number): string {
  const { type, unit } = types[index];
  const isUnique = types.filter((other) => other.type === type).length === 1;
  return type && isUnique ? type : `${type || `type ${index}`}${unit ? ` (${unit})` : ""}`;
}

function shownType(flame: Flame, types: readonly SampleType[]): number {
  const byIndex = flame.metadata.sample_type_index;
  if (typeof byIndex === "number" && byIndex < types.length) return byIndex;
  return Math.max(0, types.findIndex((type) => type.type === flame.metadata.sample_type));
}

/* ---- the whole ---- */

/** Of which group a tree is asked for, and below what: of another than the state's it is all. */
export const treeOf = ({ group, root }: Pick<ViewState, "group" | "root">, other?: string) => (other ? { group: other, root: "" } : { group, root });

export interface ViewerProps {
  state: ViewState;
  update: Update;
  /** Names what load would give: a change loads anew. */
  flameKey: string;
  load: Load;
  /** All functions, for when the tree was cut. */
  loadRows: LoadRows;
  /** Absent where nothing is known but the tree: then there are no labels. */
  loadLabels?: LoadLabels;
  /** As far as they are known before there is a tree: another can be chosen where one cannot be shown. */
  sampleTypes?: readonly SampleType[];
  defaultType?: number;
  /** What the tree can be grouped by, where that is not all. */
  groups?: readonly string[];
  /** Labels that the tree can be grouped by, as far as they are known. */
  labelKeys?: readonly string[];
  /** False while what stands above is still to come: the viewer loads, but is not shown to jump later. */
  isReady: boolean;
  /** The tree below one node can be loaded (state.root), and trees under rules. */
  opensOthers?: boolean;
  /** The trees are of two profiles. */
  isDiff?: boolean;
  /** It is in a file of its own already, from where nothing is saved again. */
  isFile?: boolean;
  comments?: CommentsOf;
  commentCount?: number;
  tools?: ComponentChildren;
  extraKeys?: Record<string, () => void>;
  onFlame?: (flame: Flame) => void;
}

const choiceOf = (group: string) => ({ value: group, label: `by ${group.replace(/^label:/, "")}` });

/** For another tree, where frames have other paths. */
const wholeTree = { zoom: "", root: "", above: null, below: null, window: null };
/** What a link asks of the server, and may have from another profile. */
const plainTree = { sampleType: "", group: "function", labels: [] };
const namesNothing = ({ status }: Problem, { sampleType, group, labels, root }: ViewState) =>
  (status === 400 || status === 404) && (sampleType !== "" || group !== "function" || labels.length > 0 || root !== "");
/** For pages without: a link to them shows what stood beside them. */
function withoutComments(state: ViewState): ViewState {
  const { view, beside } = state;
  return [view, beside].includes("comments") ? { ...state, view: (view === "comments" ? beside : view) || "icicle", beside: "" } : state;
}
const exporting = later(async () => (await import("../export/dialog.tsx")).ExportDialog);
const keySheet = later(async () => (await import("./key_sheet.tsx")).KeySheet);

export function Viewer(props: ViewerProps) {
  const { update, comments, groups = allGroups as readonly string[] } = props;
  const hasGroups = groups.length > 1;
  const state = comments ? props.state : withoutComments(props.state);
  const palette = usePalette();
  const { source: loaded, isCurrent: isLoaded, problem: flameProblem, retry } = useSource(props.flameKey, props.load, state.rules, state, props.opensOthers === true);
  const shownPanes = [state.view, state.beside].flatMap((view) => (view ? [panes[view]] : []));
  for (const pane of shownPanes) pane.preload?.();
  const around = shownPanes.some((pane) => pane.wantsAround) ? state.marked : "";
  const shown = useTransformed(loaded?.flame ?? null, loaded?.rest ?? [], around, state.isOfFiltered);
  const { flame, source } = shown;
  const isCurrent = isLoaded && shown.isCurrent;
  const [cursor, setCursor] = useState(0);
  const [hover, setHover] = useState(-1);
  const [hovered, setHovered] = useState("");
  const [hasSheet, setSheet] = useState(false);
  const [isExporting, setExporting] = useState(false);
  /** On a phone most of the toolbar is folded, so that the picture has room. */
  const [isFolded, setFolded] = useState(true);
  const [menu, setMenu] = useState<(MenuPlace & { name: string }) | null>(null);
  const filters: Filters = { rules: state.rules, labels: state.labels };
  const undone = useRef<Undo | null>(null);
  useEffect(() => {
    if (undone.current) undone.current.follow(filters);
    else undone.current = new Undo(filters);
  }, [keyOf(filters)]);
  const searching = useSearch(flame, state.search);
  const marking = useSearch(flame, state.marked ? exactly(state.marked) : "");
  const marks = useMemo(() => (flame ? bothMarks(flame, searching.result, marking.result) : null), [flame, searching.result, marking.result]);
  const wantsRows = shownPanes.some((pane) => pane.wantsRows);
  const { rows, isAwaiting: isAwaitingRows, bound: rowBound, problem: rowsProblem } = useRows(flame, wantsRows, loaded, props.loadRows);
  const problem = flameProblem ?? rowsProblem;
  const functionCount = useMemo(() => (flame ? countFunctions(flame) : 0), [flame]);
  // Of the whole profile, so that no rule changes what a colour means.
  const colours = useMemo(() => (source ? new FrameColours(source, props.isDiff ? "package" : state.colour) : null), [source, state.colour]);
  const notes = useMemo(() => (flame ? notesAbout(flame) : []), [flame]);
  const [leftOut] = useState(() => unknownRules(new URLSearchParams(location.search).get("x") ?? ""));
  /** What was chosen here, by hash: brothers may share one, and a press means one of them. */
  const chosen = useRef<{ flame: Flame | null; nodes: Map<string, number> }>({ flame: null, nodes: new Map() });
  if (chosen.current.flame !== flame) chosen.current = { flame, nodes: new Map() };
  const [choice, setChoice] = useState(0);
  const findNode = (hash: string) => chosen.current.nodes.get(hash) ?? findByPathHash(flame!, hash);
  const zoom = useMemo(() => (flame && state.zoom ? Math.max(0, findNode(state.zoom)) : 0), [flame, state.zoom, choice]);

  useEffect(() => {
    if (flame) props.onFlame?.(flame);
  }, [flame]);
  // Where a link's frame is not in this tree, its part of that frame means nothing.
  const part = state.zoom && zoom === 0 ? null : state.window;
  const isMovedByHand = useRef(false);
  /** In another tree the keyboard stands where it stood, or on the nearest caller that is there. */
  const stood = useRef<{ flame: Flame | null; zoom: string }>({ flame: null, zoom: "" });
  useEffect(() => {
    const before = stood.current;
    stood.current = { flame, zoom: state.zoom };
    const isFollowed = flame && before.flame && before.flame !== flame && before.zoom === state.zoom;
    if (!isMovedByHand.current) setCursor((isFollowed && sameNode(before.flame!, cursor, flame)) || zoom);
    isMovedByHand.current = false;
  }, [flame, zoom]);

  const hashOf = (node: number) => {
    if (!flame || node <= 0) return "";
    const hash = pathHash(flame, node);
    if (chosen.current.nodes.get(hash) !== node) {
      chosen.current.nodes.set(hash, node);
      setChoice((count) => count + 1);
    }
    return hash;
  };
  /** What was opened below a node is closed where a frame outside of it is shown. */
  const showing = (node: number, seen: SeenPart | null = null): Partial<ViewState> => {
    const root = flame && state.root ? findByPathHash(flame, state.root) : -1;
    const isInside = flame !== null && root > 0 && node >= root && node < flame.end[root];
    return { zoom: hashOf(node), window: seen, root: isInside ? state.root : "" };
  };
  const showAll = () => update(showing(0));
  const zoomOut = () => {
    if (flame && (zoom > 0 || part)) update(showing(part ? zoom : parentOf(flame, zoom)));
  };
  /** An "other" box is opened: the server is asked for what is below its parent. */
  const openOther = (other: number) => {
    const parent = parentOf(flame!, other);
    if (!props.opensOthers || parent === 0) return say("These stacks are too small to be shown one by one");
    if (state.rules.some((rule) => !rule.isOff)) return say("Rules see what is loaded: switch them off to open this");
    const hash = hashOf(parent);
    if (hash !== state.root) update({ zoom: hash, root: hash, window: null });
  };
  /** A second press on the frame zoomed to goes back up to its caller. */
  const zoomTo = (node: number) => {
    if (flame && flame.frames.flags(flame.frame[node]) & FrameFlag.Other) openOther(node);
    else if (node === zoom) zoomOut();
    else update(showing(node));
  };
  const seePart = (node: number, seen: SeenPart | null) => {
    isMovedByHand.current = node !== zoom;
    update(showing(node, seen), "replace");
  };
  const seekMatch = (step: 1 | -1) => {
    const found = searching.result ?? marking.result;
    if (!flame || !found) return;
    const next = nextMatch(flame, found, cursor, step);
    if (next < 0) return;
    setCursor(next);
    update(showing(next), "replace");
  };
  const mark = (name: string) => update({ marked: state.marked === name ? "" : name });
  const setFilters = (changed: Partial<Filters>) => {
    undone.current?.push({ ...filters, ...changed });
    update("labels" in changed ? { ...changed, root: "" } : changed); // a part may be without such samples
  };
  const setRules = (rules: readonly Rule[]) => setFilters({ rules });
  const setLabels = (labels: readonly string[]) => setFilters({ labels: cleanLabelRules(labels) });
  const clearFilters = () => setFilters({ rules: [], labels: [] });
  const step = (way: "undo" | "redo") => {
    const other = undone.current?.[way]();
    if (!other) return say(`There is nothing to ${way}`);
    update(keyOf({ ...other, rules: [] }) === keyOf({ ...filters, rules: [] }) ? other : { ...other, root: "" });
  };
  const ruleFor = (action: Action, name: string) => name && setRules([...state.rules, { action, text: exactly(name), isOff: false }]);
  const types = flame?.metadata.sample_types ?? props.sampleTypes ?? [];
  const wanted = types.findIndex((_, index) => sampleTypeToken(types, index) === state.sampleType);
  const typeIndex = flame ? shownType(flame, types) : wanted < 0 ? (props.defaultType ?? 0) : wanted;
  const chooseType = (index: number) => update({ sampleType: sampleTypeToken(types, index), root: "" });
  const groupChoices = [...groups, ...(props.labelKeys ?? []).map(groupOfLabel)].map(choiceOf);
  // A link may name a label without saying that it is one.
  const group = props.labelKeys?.includes(state.group) && !groups.includes(state.group) ? groupOfLabel(state.group) : state.group;
  if (!groupChoices.some(({ value }) => value === group)) groupChoices.push(choiceOf(group));
  const cursorName = () => (flame && cursor < flame.nodeCount ? flame.frames.name(flame.frame[cursor]) : "");
  const offered = views.filter((view) => (view !== "comments" || comments) && (view !== "labels" || props.loadLabels));
  /** What stood at the side stays there, unless it is chosen itself. */
  const besideOf = (view: View) => (state.beside === view ? "" : state.beside);
  const setView = (view: View) => update({ view, beside: besideOf(view) });
  const setBeside = (beside: View | "") => update({ beside });
  /** The table beside what is seen, or an icicle beside the table. */
  const toggleBeside = () => {
    if (state.beside) setBeside("");
    else if (state.view === "table") setBeside("icicle");
    else update({ view: "table", beside: state.view });
  };
  /** By key: what is looked from is where the keyboard stands. */
  const openView = (view: View) => {
    const marked = panes[view].wantsAround && cursor > 0 && !state.marked ? cursorName() : state.marked;
    update({ view, marked, beside: besideOf(view) });
  };
  const frameActions = (name: string): FrameAction[] => [
    { label: "Focus on stacks with it", key: "f", run: () => ruleFor("focus", name) },
    { label: "Ignore stacks with it", key: "i", run: () => ruleFor("ignore", name) },
    { label: "Hide it", key: "h", run: () => ruleFor("hide", name) },
    { label: "Merge what it calls into it", key: "m", run: () => ruleFor("merge", name) },
    { label: "Collapse its recursion", key: "r", run: () => ruleFor("recursion", name) },
    { label: "Callers and callees", key: "3", run: () => update({ view: "sandwich", marked: name, beside: besideOf("sandwich") }) },
    { label: state.marked === name ? "Stop marking it" : "Mark it everywhere", key: "l", run: () => mark(name) },
    { label: "Copy its name", key: "c", run: () => void copyText(name, "Name") },
  ];
  const openMenu = (name: string, x: number, y: number) => name && setMenu({ node: 0, name, x, y });
  /** Where the menu of the frame that the keyboard stands on opens. */
  const openMenuAtCursor = () => {
    const at = document.activeElement?.getBoundingClientRect();
    if (cursor > 0) openMenu(cursorName(), (at?.left ?? 0) + 40, (at?.top ?? 0) + 40);
  };

  const searchField = () => document.querySelector<HTMLInputElement>("#search");
  useFindKey(searchField);
  useKeys({
    "/": () => searchField()?.focus(),
    n: () => seekMatch(1),
    N: () => seekMatch(-1),
    Escape: () => update(state.search ? { search: "" } : { marked: "" }),
    Backspace: zoomOut,
    "0": showAll,
    ...Object.fromEntries(offered.map((view) => [panes[view].key, () => openView(view)])),
    "4": toggleBeside,
    t: () => types.length > 1 && chooseType((typeIndex + 1) % types.length),
    g: () => hasGroups && update({ group: groups[(groups.indexOf(state.group) + 1) % groups.length], ...wholeTree }),
    k: () => !props.isDiff && update({ colour: colourModes[(colourModes.indexOf(state.colour) + 1) % colourModes.length] }),
    l: () => cursor > 0 && mark(cursorName()),
    f: () => cursor > 0 && ruleFor("focus", cursorName()),
    i: () => cursor > 0 && ruleFor("ignore", cursorName()),
    h: () => cursor > 0 && ruleFor("hide", cursorName()),
    m: () => cursor > 0 && ruleFor("merge", cursorName()),
    r: () => cursor > 0 && ruleFor("recursion", cursorName()),
    u: () => step("undo"),
    U: () => step("redo"),
    ".": openMenuAtCursor,
    ContextMenu: openMenuAtCursor,
    c: () => void copyText(cursorName(), "Name"),
    C: () => flame && void copyText(pathOf(flame, cursor).slice(1).map((node) => flame.frames.name(flame.frame[node])).join("\n"), "Stack"),
    y: () => void copyText(location.href, "Link"),
    e: () => !props.isFile && setExporting(true),
    "?": () => setSheet(true),
    ...props.extraKeys,
  });

  const unit = flame?.metadata.unit ?? "";
  const pointed = flame && hover >= 0 && hover < flame.nodeCount ? hover : cursor;
  const isEmpty = flame !== null && (flame.nodeCount <= 1 || (flame.width[0] === 0));

  const context: PaneContext | null = flame && source && colours && {
    state, update, flame, source, colours, unit, palette, rows, isAwaitingRows, rowBound, zoom, part, cursor,
    callers: shown.callers,
    callees: shown.callees,
    pattern: searching.pattern,
    marks,
    onCursor: setCursor,
    onZoom: zoomTo,
    onPart: seePart,
    onHover: (node) => {
      setHover(node);
      setHovered(node > 0 && flame ? flame.frames.name(flame.frame[node]) : "");
    },
    hovered,
    onHoverName: setHovered,
    mark,
    openMenu,
    addRule: ruleFor,
    setRules,
    setLabels,
    labelsKey: props.flameKey,
    loadLabels: props.loadLabels ?? null,
    canGroup: hasGroups,
    regrouped: hasGroups ? { groups: groupChoices.map(({ value }) => value), canServe: props.opensOthers === true, load: props.load } : null,
    comments,
  };

  return (
    <section class={`viewer ${props.isReady ? "" : "waiting"}`} aria-label="Profile" aria-busy={!isCurrent}>
      <div class={`toolbar ${isFolded ? "folded" : ""}`}>
        <Segments
          isCompact
          label="View"
          value={state.view}
          onChange={setView}
          choices={offered.map((view) => ({ value: view, label: panes[view].label, icon: panes[view].icon, count: view === "comments" ? props.commentCount : 0 }))}
        />
        <Select
          label="Beside it"
          value={state.beside}
          choices={[
            { value: "", label: "alone" },
            ...offered.filter((view) => view !== state.view).map((view) => ({ value: view as string, label: `+ ${panes[view].label.toLowerCase()}` })),
          ]}
          onChange={(view) => setBeside(view as View | "")}
        />
        {types.length > 0 && (
          <Select
            label="Sample type"
            value={String(typeIndex)}
            choices={types.map((_, i) => ({ value: String(i), label: sampleTypeLabel(types, i) }))}
            onChange={(value) => chooseType(Number(value))}
          />
        )}
        {hasGroups && <Select label="Group" value={group} choices={groupChoices} onChange={(group) => update({ group, ...wholeTree })} />}
        {!props.isDiff && (
          <Select
            label="Colours"
            value={state.colour}
            choices={colourModes.map((mode) => ({ value: mode, label: `colour: ${colourNames[mode]}` }))}
            onChange={(mode) => update({ colour: mode as ColourMode })}
          />
        )}
        <RuleMenu rules={state.rules} onChange={setRules} />
        {props.tools}
        <SearchBox
          text={state.search}
          flame={flame}
          searching={searching}
          onText={(text) => update({ search: text }, "replace")}
          onNext={seekMatch}
        />
        <Button icon="settings" class="fold-button" aria-expanded={!isFolded} onClick={() => setFolded(!isFolded)} title="More of the view" aria-label="More of the view" />
        <span class="toolbar-end">
          <Button icon="zoomout" class="reset-button" disabled={zoom === 0 && !part} onClick={showAll} title="Show everything (0)" aria-label="Reset zoom" />
          {!props.isFile && <Button icon="download" disabled={!context || isEmpty} onClick={() => setExporting(true)} title="Save this view (e)" aria-label="Save this view" />}
          <Button icon="keyboard" class="keys-button" onClick={() => setSheet(true)} title="Keys (?)" aria-label="Keys" />
        </span>
      </div>

      <RuleBar
        rules={state.rules}
        labels={state.labels}
        error={shown.error}
        share={flame && source ? shareLeft(flame, source) : ""}
        isOfFiltered={state.isOfFiltered}
        onChange={setRules}
        onLabels={setLabels}
        onClear={clearFilters}
        onOfFiltered={(isOfFiltered) => update({ isOfFiltered })}
      />

      {problem ? (
        <ProblemView
          problem={problem}
          onRetry={retry}
          ways={namesNothing(problem, state) && <Button look="primary" onClick={() => update({ ...wholeTree, ...plainTree })}>Look at the whole profile</Button>}
        />
      ) : !context ? (
        <div class="views">
          <Loading label="Loading the profile" />
        </div>
      ) : isEmpty && state.view !== "comments" ? (
        <Empty isFlameOf={unit} onAbsolute={state.isNormalised && flame.isDiff && flame.baseTotal === 0 ? () => update({ isNormalised: false }) : undefined} hasRules={state.labels.length > 0 || state.rules.some((rule) => !rule.isOff)} onClear={clearFilters} />
      ) : (
        <Panes context={context} isCurrent={isCurrent} />
      )}

      {flame && colours && !problem && !isEmpty && (
        <footer class="viewer-foot">
          {shownPanes.some((pane) => pane.hasCursor) && <DetailLine flame={flame} node={Math.min(pointed, flame.nodeCount - 1)} unit={unit} />}
          <div class="foot-line">
            <Legend flame={flame} colours={colours} palette={palette} />
            <span class="foot-end">
              {state.marked && flame && (
                <Button class="marked" icon="close" onClick={() => update({ marked: "" })} title={`Stop marking ${state.marked}`}>
                  <bdi class="marked-name">{state.marked}</bdi>
                  {marking.result ? ` ${flame.bounds.part}${formatPercent(marking.result.value, flame.total)}` : ""}
                </Button>
              )}
              {leftOut > 0 && <span class="note">{leftOut === 1 ? "A rule" : `${leftOut} rules`} of the link {leftOut === 1 ? "is" : "are"} not known here.</span>}
              {state.zoom && zoom === 0 && <span class="note">The frame that the link zooms to is not in this tree.</span>}
              {notes.map((note) => (
                <span class="note" key={note}>{note}</span>
              ))}
              <span class="foot-total">
                {totalText(flame, unit)} in{" "}
                {flame.isCut ? "at least " : ""}
                {countedAs(flame, functionCount)}
              </span>
            </span>
          </div>
        </footer>
      )}
      {isExporting && context && !isEmpty && <exporting.Component context={context} onClose={() => setExporting(false)} />}
      {hasSheet && <keySheet.Component hasComments={comments !== undefined} onClose={() => setSheet(false)} />}
      {menu && <FrameMenu place={menu} title={menu.name} items={frameActions(menu.name)} onClose={() => setMenu(null)} />}
    </section>
  );
}

interface EmptyProps {
  isFlameOf: string;
  hasRules: boolean;
  onClear: () => void;
  /** Given where a comparison is normalised by a side without values: shows it as it is. */
  onAbsolute?: () => void;
}

function Empty({ isFlameOf, hasRules, onClear, onAbsolute }: EmptyProps) {
  return (
    <div class="views">
      {onAbsolute ? (
        <div class="empty">
          <h2>Nothing to normalise by</h2>
          <p>The profile before has no values of this type.</p>
          <p>
            <Button look="primary" onClick={onAbsolute}>Compare the values as they are</Button>
          </p>
        </div>
      ) : hasRules ? (
        <div class="empty">
          <h2>The rules leave nothing</h2>
          <p>No stack of this profile passes all of them. Switch one off by pressing it, or start over.</p>
          <p>
            <Button look="primary" onClick={onClear}>Clear the rules</Button>
          </p>
        </div>
      ) : (
        <div class="empty">
          <h2>No samples of this type</h2>
          <p>
            The profile holds no value{isFlameOf ? ` in ${isFlameOf}` : ""} here. Try another sample type: the menu above lists
            what was recorded.
          </p>
        </div>
      )}
    </div>
  );
}

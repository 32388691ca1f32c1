/*
 * viewer: toolbar, icicle, table and what stands below them, for one tree that a page provides.
 *
 * It knows no server: the page gives a function that loads the tree for a state. What is shown is
 * a function of the tree and the state, and the state is the address bar (view_address).
 */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Problem } from "../api.ts";
import type { Action, Rule } from "../model/chain.ts";
import { FrameFlag, parentOf, pathOf, type Flame, type SampleType } from "../model/flame.ts";
import { FrameColours } from "../model/frame_colours.ts";
import { cleanLabelRules, groupOfLabel, type LoadLabels } from "../model/labels.ts";
import { findByPathHash, pathHash } from "../model/path.ts";
import { bothMarks, exactly, nextMatch } from "../model/search.ts";
import { keyOf, Undo, type Filters } from "../model/undo.ts";
import { colourModes, groups as allGroups, views, type SeenPart, type Update, type View, type ViewState } from "../state.ts";
import { Button, copyText, Loading, ProblemView, say } from "../ui/kit.tsx";
import { later } from "../ui/later.tsx";
import { usePalette } from "../ui/theme.ts";
import { shareLeft } from "./flame_notes.ts";
import type { FrameAction, MenuPlace } from "./frame_menu.tsx";
import { panes, Panes, type CommentsOf, type PaneContext } from "./panes.tsx";
import { sameNode } from "./rows.ts";
import { RuleBar } from "./rules.tsx";
import { sampleTypeToken, shownType } from "./sample_types.ts";
import { useSearch } from "./search_box.tsx";
import { Toolbar, wholeTree } from "./toolbar.tsx";
import { useFindKey, useKeys } from "./use_keys.ts";
import { useOldTexts, useOldZoom } from "./use_old_link.ts";
import { useRows, useSource, useTransformed, type Load, type LoadRows } from "./use_flame.ts";
import { ViewerFoot } from "./viewer_foot.tsx";

/** Of which group a tree is asked for, and below what: of another than the state's it is all. */
export const treeOf = ({ group, root }: Pick<ViewState, "group" | "root">, other?: string, below = root) => (other ? { group: other, root: "" } : { group, root: below });

/** What a state asks of the server, and what names the tree that it gets. */
export const questionOf = ({ sampleType, group, names, labels, isNormalised }: ViewState) => ({ sampleType, group, names, labels, isNormalised });
export const treeKey = (state: ViewState) => JSON.stringify([questionOf(state), state.root]);

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
  /** Where links to source code are asked for; none without. */
  sources?: string[];
  extraKeys?: Record<string, () => void>;
  onFlame?: (flame: Flame) => void;
}

const choiceOf = (group: string) => ({ value: group, label: `by ${group.replace(/^label:/, "")}` });

/** What a link asks of the server, and may have from another profile. */
const plainTree = { sampleType: "", group: "function", labels: [] };
const namesNothing = ({ status }: Problem, { sampleType, group, labels, root }: ViewState) =>
  (status === 400 || status === 404) && (sampleType !== "" || group !== "function" || labels.length > 0 || root !== "");
/** For pages without: a link to them shows what stood beside them. */
function withoutComments(state: ViewState): ViewState {
  const { view, beside } = state;
  return [view, beside].includes("comments") ? { ...state, view: (view === "comments" ? beside : view) || "icicle", beside: "" } : state;
}
const empty = later(async () => (await import("./empty.tsx")).EmptyView);
const exporting = later(async () => (await import("../export/dialog.tsx")).ExportDialog);
const sourcePlace = later(async () => (await import("./source_place.tsx")).SourcePlace, (_, { text }) => <>{text}</>);
const frameMenu = later(async () => (await import("./frame_menu.tsx")).FrameMenu, () => <></>);
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
  const link = { flame: loaded?.flame ?? null, isCurrent: isLoaded && props.opensOthers === true, state, flameKey: props.flameKey, load: props.load };
  const texts = useOldTexts(link, loaded?.rest ?? []);
  const shown = useTransformed(link.flame, texts.rest, around, state.isOfFiltered);
  const { flame, source } = shown;
  const isCurrent = isLoaded && shown.isCurrent;
  const [cursor, setCursor] = useState(0);
  const [hover, setHover] = useState(-1);
  const [hovered, setHovered] = useState("");
  const [hasSheet, setSheet] = useState(false);
  const [isExporting, setExporting] = useState(false);
  const [menu, setMenu] = useState<(MenuPlace & { name: string }) | null>(null);
  const filters: Filters = { rules: state.rules, labels: state.labels };
  const undone = useRef<Undo | null>(null);
  useEffect(() => {
    if (undone.current) undone.current.follow(filters);
    else undone.current = new Undo(filters);
  }, [keyOf(filters)]);
  const searching = useSearch(flame, texts.search);
  const marking = useSearch(flame, state.marked ? exactly(state.marked) : "");
  const marks = useMemo(() => (flame ? bothMarks(flame, searching.result, marking.result) : null), [flame, searching.result, marking.result]);
  const wantsRows = shownPanes.some((pane) => pane.wantsRows);
  const { rows, isAwaiting: isAwaitingRows, bound: rowBound, problem: rowsProblem } = useRows(flame, wantsRows, loaded, props.loadRows);
  const problem = flameProblem ?? rowsProblem;
  // Of the whole profile, so that no rule changes what a colour means.
  const colours = useMemo(() => (source ? new FrameColours(source, props.isDiff ? "package" : state.colour) : null), [source, state.colour]);
  /** What was chosen here, by hash: brothers may share one, and a press means one of them. */
  const chosen = useRef<{ flame: Flame | null; nodes: Map<string, number> }>({ flame: null, nodes: new Map() });
  if (chosen.current.flame !== flame) chosen.current = { flame, nodes: new Map() };
  const [choice, setChoice] = useState(0);
  const findNode = (hash: string) => chosen.current.nodes.get(hash) ?? findByPathHash(flame!, hash);
  const zoom = useMemo(() => (flame && state.zoom ? Math.max(0, findNode(state.zoom)) : 0), [flame, state.zoom, choice]);

  useEffect(() => {
    if (flame) props.onFlame?.(flame);
  }, [flame]);
  useEffect(() => {
    if (texts.markedNow) update({ marked: texts.markedNow }, "replace");
  }, [texts.markedNow]);
  useOldZoom({ ...link, flame, isCurrent: link.isCurrent && isCurrent }, (node) => update(showing(node, state.window), "replace"));
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
    const root = flame && state.root ? findByPathHash(flame, flame.metadata.root ?? state.root) : -1;
    const isInside = flame !== null && root > 0 && node >= root && node < flame.end[root];
    return { zoom: hashOf(node), window: seen, root: isInside ? state.root : "" };
  };
  const hasHalves = shownPanes.includes(panes.sandwich) && (state.above ?? state.below) !== null;
  const isMoved = zoom > 0 || part !== null || hasHalves;
  const showAll = () => update({ ...showing(0), above: null, below: null });
  const zoomOut = () => {
    if (hasHalves && (document.activeElement?.closest(".sandwich-half") || (zoom === 0 && !part))) update({ above: null, below: null });
    else if (flame && (zoom > 0 || part)) update(showing(part ? zoom : parentOf(flame, zoom)));
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
  // Normalised where a total is not above zero, the side after is 0.
  const isShareless = flame !== null && state.isNormalised && flame.isDiff && flame.total === 0;
  const isEmpty = flame !== null && (flame.nodeCount <= 1 || flame.width[0] === 0 || isShareless);

  const placed = (frame: number, text: string) => {
    if (!props.sources || !flame || frame < 0) return text;
    return <sourcePlace.Component at={props.sources} text={text} flame={flame} frame={frame} />;
  };

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
    placed,
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
      <Toolbar
        {...{ state, update, offered, typeIndex, flame, searching }}
        sampleTypes={types}
        groupChoices={hasGroups ? groupChoices : []}
        group={group}
        {...{ isDiff: props.isDiff, isFile: props.isFile, commentCount: props.commentCount, tools: props.tools }}
        canChooseNames={props.opensOthers === true}
        isMoved={isMoved}
        canSave={context !== null && !isEmpty}
        onView={setView}
        onBeside={setBeside}
        onType={chooseType}
        onRules={setRules}
        onMatch={seekMatch}
        onShowAll={showAll}
        onSave={() => setExporting(true)}
        onKeys={() => setSheet(true)}
      />

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
        <empty.Component isFlameOf={unit} onAbsolute={isShareless ? () => update({ isNormalised: false }) : undefined} hasRules={state.labels.length > 0 || state.rules.some((rule) => !rule.isOff)} onClear={clearFilters} />
      ) : (
        <Panes context={context} isCurrent={isCurrent} />
      )}

      {flame && colours && !problem && !isEmpty && (
        <ViewerFoot {...{ flame, colours, palette, unit, placed, state, marked: marking.result }} isLost={state.zoom !== "" && zoom === 0} pointed={shownPanes.some((pane) => pane.hasCursor) ? pointed : -1} onUnmark={() => update({ marked: "" })} />
      )}
      {isExporting && context && !isEmpty && <exporting.Component context={context} onClose={() => setExporting(false)} />}
      {hasSheet && <keySheet.Component hasComments={comments !== undefined} onClose={() => setSheet(false)} />}
      {menu && <frameMenu.Component place={menu} title={menu.name} items={frameActions(menu.name)} onClose={() => setMenu(null)} />}
    </section>
  );
}

/*
 * viewer: toolbar, icicle, table and what stands below them, for one tree that a page provides.
 *
 * It knows no server: the page gives a function that loads the tree for a state. What is shown is
 * a function of the tree and the state, and the state is the address bar (view_address).
 */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Problem } from "../api/api.ts";
import type { Flame, SampleType } from "../model/flame.ts";
import { FrameColours, type ColourMode, type PartHue } from "../model/frame_colours.ts";
import type { LoadLabels } from "../model/labels.ts";
import { exactly } from "../model/escape_regex.ts";
import { findByPathHashes } from "../model/path.ts";
import { views, type Update, type ViewState } from "../state.ts";
import { asProblem, Button, Loading, ProblemView } from "../ui/kit.tsx";
import { hearLongPresses } from "../ui/long_press.ts";
import { later } from "../ui/later.tsx";
import { usePalette } from "../ui/theme.ts";
import { groupChoice, typeChoice, viewChoice } from "./choices.ts";
import { shareLeft } from "./flame_notes.ts";
import type { MenuPlace } from "./frame_menu.tsx";
import { panes, Panes, type CommentsOf, type PaneContext } from "./panes.tsx";
import { RuleBar } from "./rules.tsx";
import { useSearch, useSearchCode } from "./search_box.tsx";
import { Toolbar } from "./toolbar.tsx";
import { useFilters } from "./use_filters.ts";
import { useRows, useSource, useTransformed, type Load, type LoadRows } from "./use_flame.ts";
import { useOldHalves, useOldTexts, useOldZoom } from "./use_old_link.ts";
import { usePlace } from "./use_place.ts";
import { useRegrouped } from "./use_regrouped.ts";
import { useRoot } from "./use_root.ts";
import { ViewerFoot } from "./viewer_foot.tsx";
import { stackOf, useViewerKeys } from "./viewer_keys.ts";

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
  /** That parts have where the file was saved. */
  hues?: Partial<Record<ColourMode, PartHue[]>>;
  comments?: CommentsOf;
  commentCount?: number;
  /** The reader may write some. */
  mayComment?: boolean;
  /** Paths of the frames that known comments are pinned to (model/path.ts). */
  pins?: readonly string[];
  tools?: ComponentChildren;
  /** Where links to source code are asked for; none without. */
  sources?: string[];
  extraKeys?: Record<string, () => void>;
  onFlame?: (flame: Flame) => void;
}

/** Without what a link asks of the server, and may have from another profile. */
const plainTree = { sampleType: "", group: "function", labels: [], zoom: "", root: "", above: null, below: null, window: null };
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
  const { update, comments, isDiff, isFile } = props;
  const state = comments ? props.state : withoutComments(props.state);
  const opensOthers = props.opensOthers === true;
  const palette = usePalette();
  const { source: loaded, isCurrent: isLoaded, problem, retry } = useSource(props.flameKey, props.load, state.rules, state, opensOthers);
  const shownPanes = [state.view, state.beside].flatMap((view) => (view ? [panes[view]] : []));
  for (const pane of shownPanes) pane.preload?.();
  const around = shownPanes.some((pane) => pane.wantsAround) ? state.marked : "";
  const link = { flame: loaded?.flame ?? null, isCurrent: isLoaded && opensOthers, state, flameKey: props.flameKey, load: props.load };
  const texts = useOldTexts(link, loaded?.rest ?? []);
  const shown = useTransformed(link.flame, texts.rest, around, state.isOfFiltered);
  const { flame, source } = shown;
  const isCurrent = isLoaded && shown.isCurrent;
  const [hover, setHover] = useState(-1);
  const [hovered, setHovered] = useState("");
  const [hasSheet, setSheet] = useState(false);
  const [isExporting, setExporting] = useState(false);
  const [menu, setMenu] = useState<MenuPlace | null>(null);
  const filters = useFilters(state, update);
  const wantsSearch = texts.search !== "" || state.marked !== "";
  const [searchCode, searchProblem] = useSearchCode(wantsSearch);
  const isSearching = wantsSearch && !searchCode && !searchProblem;
  const searching = useSearch(searchCode, flame, texts.search);
  const marking = useSearch(searchCode, flame, state.marked ? exactly(state.marked) : "");
  const marks = useMemo(() => (flame && searchCode ? searchCode.bothMarks(flame, searching.result, marking.result) : null), [flame, searching.result, marking.result]);
  const wantsRows = shownPanes.some((pane) => pane.wantsRows);
  const { rows, isAwaiting: isAwaitingRows, bound: rowBound, failed: rowsFailed } = useRows(flame, wantsRows, loaded, props.loadRows);
  // Of the whole profile, so that no rule changes what a colour means.
  const colours = useMemo(() => (source ? new FrameColours(source, isDiff ? "package" : state.colour, props.hues?.[state.colour]) : null), [source, state.colour]);
  const place = usePlace(flame, state, update, { opensOthers, hasOwnRules: texts.rest.length > 0, hasSandwich: shownPanes.includes(panes.sandwich) });
  const { zoom, part, cursor } = place;
  const [commenting, setCommenting] = useState(0);
  const pinned = useMemo(() => new Set(flame && props.pins && findByPathHashes(flame, props.pins).values()), [flame, props.pins]);

  useEffect(hearLongPresses, []);
  useEffect(() => {
    if (flame) props.onFlame?.(flame);
  }, [flame]);
  useEffect(() => {
    const { above, below } = state; // paths from that function
    if (texts.markedNow) update({ marked: texts.markedNow, above, below }, "replace");
  }, [texts.markedNow]);
  useOldZoom({ ...link, flame, isCurrent: link.isCurrent && isCurrent }, (node) => update(place.showing(node, state.window), "replace"));

  useOldHalves(link, shown, (halves) => update(halves, "replace"));
  const regroup = useRegrouped(flame, isCurrent, state, place, update);

  const isRootLost = useRoot(problem, state, update);

  const type = typeChoice(flame, props, state, update);
  const { group, groupChoices, nextGroup } = groupChoice(props, state);
  const hasGroups = groupChoices.length > 0;
  const seen = viewChoice(state, update);
  const offered = views.filter((view) => (view !== "comments" || comments) && (view !== "labels" || props.loadLabels));
  const seek: PaneContext["seek"] = useRef(null);
  const seekMatch = (step: 1 | -1) => {
    seek.current?.(step);
    if (!shownPanes.some((pane) => pane.hasCursor)) return;
    const found = searching.result ?? marking.result;
    if (flame && found) place.goTo(searchCode!.nextMatch(flame, found, cursor, step));
  };
  const mark = (name: string) => update({ marked: state.marked === name ? "" : name });
  const cursorName = () => (flame && cursor < flame.nodeCount ? flame.frames.name(flame.frame[cursor]) : "");
  const openMenu = (name: string, x: number, y: number) => name && setMenu({ name, x, y });
  /** With the comments in sight, pinned to where the menu is, or to the widest frame of the function. */
  const comment = (name: string) => {
    if (cursorName() !== name) place.setCursor(0);
    update({ marked: name, ...(!shownPanes.includes(panes.comments) && { beside: "comments" }) });
    setCommenting(commenting + 1);
  };
  const save = () => setExporting(true);
  const openSheet = () => setSheet(true);
  useViewerKeys({
    flame: problem ? null : flame, state, update, place, filters, seen, type, offered, isDiff, cursorName, seekMatch, mark, openMenu,
    hasCursor: shownPanes.some((pane) => pane.hasCursor),
    onNextGroup: () => hasGroups && regroup({ group: nextGroup }),
    onSave: () => !isFile && save(),
    onSheet: openSheet,
    extraKeys: props.extraKeys,
  });

  const asksInVain = problem !== null && namesNothing(problem, state);
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
    state, update, flame, source, colours, unit, palette, rows, isAwaitingRows, rowBound, rowsFailed, zoom, part, cursor, marks, hovered, mark, openMenu, placed, comments, seek, pinned, commenting,
    callers: shown.callers,
    callees: shown.callees,
    failed: shown.error && { problem: asProblem(shown.error), onRetry: shown.error.rule < 0 ? shown.retry : undefined },
    pattern: searching.pattern,
    onCursor: place.setCursor,
    onZoom: place.zoomTo,
    onPart: place.seePart,
    onHover: (node) => {
      setHover(node);
      setHovered(node > 0 && flame ? flame.frames.name(flame.frame[node]) : "");
    },
    onHoverName: setHovered,
    addRule: filters.addRule,
    setRules: filters.setRules,
    setLabels: filters.setLabels,
    labelsKey: props.flameKey,
    loadLabels: props.loadLabels ?? null,
    canGroup: hasGroups,
    regrouped: hasGroups ? { groups: groupChoices.map(({ value }) => value), canServe: opensOthers, load: props.load } : null,
  };
  const canSave = context !== null && isCurrent && !problem && !isEmpty;

  return (
    <section class={`viewer ${props.isReady ? "" : "waiting"}`} aria-label="Profile" aria-busy={!isCurrent || isSearching}>
      <Toolbar
        {...{ state, update, offered, flame, groupChoices, group, isDiff, isFile }}
        searching={searchProblem ? { ...searching, error: searchProblem } : searching}
        sampleTypes={type.types}
        typeIndex={type.typeIndex}
        commentCount={props.commentCount}
        tools={props.tools}
        canChooseNames={opensOthers}
        isMoved={place.isMoved}
        canSave={canSave}
        onRegroup={regroup}
        onView={(view) => seen.setView(view)}
        onBeside={seen.setBeside}
        onType={type.chooseType}
        onRules={filters.setRules}
        onMatch={seekMatch}
        onShowAll={place.showAll}
        onSave={save}
        onKeys={openSheet}
      />

      <RuleBar
        rules={state.rules}
        labels={state.labels}
        error={shown.error}
        failed={shown.error ? loaded?.rest[shown.error.rule] : undefined}
        share={flame && source ? shareLeft(flame, source) : ""}
        isOfFiltered={state.isOfFiltered}
        onChange={filters.setRules}
        onLabels={filters.setLabels}
        onClear={filters.clear}
        onOfFiltered={(isOfFiltered) => update({ isOfFiltered })}
      />

      {problem ? (
        <ProblemView
          problem={problem}
          onRetry={retry}
          heading={asksInVain ? (type.isKnown ? "The link does not fit this profile" : `This profile has no sample type “${state.sampleType}”`) : undefined}
          ways={asksInVain && <Button look="primary" onClick={() => update(plainTree)}>Show the whole profile</Button>}
        />
      ) : !context ? (
        <div class="views">
          <Loading label="Loading the profile" />
        </div>
      ) : isEmpty && state.view !== "comments" ? (
        <empty.Component flame={flame!} onAbsolute={isShareless ? () => update({ isNormalised: false }) : undefined} hasRules={state.labels.length > 0 || state.rules.some((rule) => !rule.isOff)} onClear={filters.clear} />
      ) : (
        <Panes context={context} isCurrent={isCurrent} />
      )}

      {flame && colours && !problem && !isEmpty && (
        <ViewerFoot {...{ flame, colours, palette, unit, placed, state, marked: marking.result }} isLost={place.isLost} {...{ isRootLost, isRenamedCut: texts.isCut }} pointed={shownPanes.some((pane) => pane.hasCursor) ? pointed : -1} onUnmark={() => update({ marked: "" })} />
      )}
      {isExporting && canSave && <exporting.Component context={context} onClose={() => setExporting(false)} />}
      {hasSheet && <keySheet.Component hasComments={comments !== undefined} onClose={() => setSheet(false)} />}
      {menu && <frameMenu.Component place={menu} isMarked={menu.name === state.marked} addRule={filters.addRule} mark={mark} onAround={(name) => seen.setView("sandwich", name)} stack={flame && cursorName() === menu.name ? stackOf(flame, cursor) : ""} onComment={props.mayComment ? comment : undefined} onClose={() => setMenu(null)} />}
    </section>
  );
}

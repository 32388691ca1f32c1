/*
 * viewer: toolbar, rules, panes and foot for one tree that a page provides.
 *
 * The viewer sends no requests itself: the page passes a function that loads the tree for a state.
 * The view is a function of the tree and the state, and the state is the address bar
 * (view_address.ts). use_viewer.tsx holds the behaviour; this file lays out the parts.
 */
import type { ComponentChildren } from "preact";
import type { Problem } from "../api/api.ts";
import type { Flame, SampleType } from "../model/tree/flame.ts";
import type { ColourMode, PartHue } from "../model/colours/frame_colours.ts";
import type { LoadLabels } from "../model/rules/labels.ts";
import type { Update, ViewState } from "../view_state.ts";
import { Button, Loading, ProblemView } from "../ui/kit.tsx";
import { later } from "../ui/later.tsx";
import { shareLeft } from "./foot/flame_notes.ts";
import { Panes, type CommentsOf } from "./panes.tsx";
import { RuleBar } from "./controls/rules.tsx";
import { Toolbar } from "./controls/toolbar.tsx";
import type { Load, LoadRows } from "./loading/use_flame.ts";
import { useViewer } from "./use_viewer.tsx";
import { ViewerFoot } from "./foot/viewer_foot.tsx";
import { stackOf } from "./controls/viewer_keys.ts";

/** The group and root to load: those of the state, or the whole tree by another group. */
export const treeOf = (
  { group, root }: Pick<ViewState, "group" | "root">,
  other?: string,
  below = root,
) => (other ? { group: other, root: "" } : { group, root: below });

/** The part of a state that the server needs for the tree. */
export const treeRequestOf = ({ sampleType, group, names, labels, isNormalised }: ViewState) => ({
  sampleType,
  group,
  names,
  labels,
  isNormalised,
});
/** Identifies the tree of a state. */
export const treeKey = (state: ViewState) => JSON.stringify([treeRequestOf(state), state.root]);

export interface ViewerProps {
  state: ViewState;
  update: Update;
  /** Identifies the tree that `load` returns; a change loads it again. */
  flameKey: string;
  load: Load;
  /** Loads the rows of all functions, which a truncated tree lacks. */
  loadRows: LoadRows;
  /** Absent in pages that have only the tree: they show no labels. */
  loadLabels?: LoadLabels;
  /**
   * Sample types that are known before the tree, so that a reader can choose another one when the
   * tree cannot be shown.
   */
  sampleTypes?: readonly SampleType[];
  defaultType?: number;
  /** The groupings on offer; default: all. */
  groups?: readonly string[];
  /** Labels that the tree can be grouped by, as far as they are known. */
  labelKeys?: readonly string[];
  /**
   * False while the page above is loading: the viewer loads too, but stays hidden so that it does
   * not move later.
   */
  isReady: boolean;
  /** `load` takes rules and a root node. */
  opensOthers?: boolean;
  /** The tree compares two profiles. */
  isDiff?: boolean;
  /** The page is a saved file, which offers no saving. */
  isFile?: boolean;
  /** The hues of packages and binaries in the page that saved this file. */
  hues?: Partial<Record<ColourMode, PartHue[]>>;
  comments?: CommentsOf;
  commentCount?: number;
  /** The reader may write comments. */
  mayComment?: boolean;
  /** Paths of the frames that known comments are pinned to (model/tree/path.ts). */
  pins?: readonly string[];
  tools?: ComponentChildren;
  /** Where to request source links; absent: the viewer shows none. */
  sources?: string[];
  extraKeys?: Record<string, () => void>;
  onFlame?: (flame: Flame) => void;
}

/**
 * A change that resets everything that a link from another profile may request and this profile may
 * lack.
 */
const plainTree = {
  sampleType: "",
  group: "function",
  labels: [],
  zoom: "",
  root: "",
  above: null,
  below: null,
  window: null,
};
const isLinkProblem = ({ status }: Problem, { sampleType, group, labels, root }: ViewState) =>
  (status === 400 || status === 404) &&
  (sampleType !== "" || group !== "function" || labels.length > 0 || root !== "");
/** For pages without comments: a link to the comments shows the view beside them. */
function withoutComments(state: ViewState): ViewState {
  const { view, beside } = state;
  if (![view, beside].includes("comments")) return state;
  return { ...state, view: (view === "comments" ? beside : view) || "icicle", beside: "" };
}
const empty = later(async () => (await import("./empty.tsx")).EmptyView);
const exporting = later(async () => (await import("../export/dialog.tsx")).ExportDialog);
const frameMenu = later(
  async () => (await import("./controls/frame_menu.tsx")).FrameMenu,
  () => <></>,
);
const keySheet = later(async () => (await import("./controls/key_sheet.tsx")).KeySheet);

type PartProps = { viewer: ReturnType<typeof useViewer>; state: ViewState; update: Update };

/** A problem, a loading sign, a note that there is nothing to show, or the panes. */
function ViewerBody({ viewer, state, update }: PartProps) {
  const { tree, context, type, filters, isEmpty, isShareless } = viewer;
  const { problem } = tree;
  if (problem) {
    const isOfLink = isLinkProblem(problem, state);
    const heading = type.isKnown
      ? "The link does not fit this profile"
      : `This profile has no sample type “${state.sampleType}”`;
    return (
      <ProblemView
        problem={problem}
        onRetry={tree.retry}
        heading={isOfLink ? heading : undefined}
        actions={
          isOfLink && (
            <Button look="primary" onClick={() => update(plainTree)}>
              Show the whole profile
            </Button>
          )
        }
      />
    );
  }
  if (!context)
    return (
      <div class="views">
        <Loading label="Loading the profile" />
      </div>
    );
  if (!isEmpty || state.view === "comments")
    return <Panes context={context} isCurrent={tree.isCurrent} />;
  return (
    <empty.Component
      flame={context.flame}
      onAbsolute={isShareless ? () => update({ isNormalised: false }) : undefined}
      hasRules={state.labels.length > 0 || state.rules.some((rule) => !rule.isOff)}
      onClear={filters.clear}
    />
  );
}

/** The foot below the panes, and the dialogs and menus above them. */
function ViewerOverlays({
  viewer,
  state,
  update,
  mayComment,
  hasComments,
}: PartProps & { mayComment?: boolean; hasComments: boolean }) {
  const { tree, context, overlays, filters, seen, place, search, canSave } = viewer;
  const { menu } = overlays;
  const flame = context?.flame;
  return (
    <>
      {context && !tree.problem && !viewer.isEmpty && (
        <ViewerFoot
          {...{
            flame: context.flame,
            colours: context.colours,
            palette: context.palette,
            unit: context.unit,
            placed: context.placed,
            state,
          }}
          marked={search.marked}
          isLost={place.isLost}
          isRootLost={viewer.isRootLost}
          isRenamedCut={tree.texts.isCut}
          pointed={viewer.pointed}
          onUnmark={() => update({ marked: "" })}
        />
      )}
      {overlays.isExporting && canSave && (
        <exporting.Component context={context!} onClose={() => overlays.setExporting(false)} />
      )}
      {overlays.hasSheet && (
        <keySheet.Component hasComments={hasComments} onClose={() => overlays.setSheet(false)} />
      )}
      {menu && (
        <frameMenu.Component
          place={menu}
          isMarked={menu.name === state.marked}
          addRule={filters.addRule}
          mark={viewer.mark}
          onAround={(name) => seen.setView("sandwich", name)}
          stack={flame && viewer.cursorName() === menu.name ? stackOf(flame, place.cursor) : ""}
          onComment={mayComment ? viewer.comment : undefined}
          onClose={() => overlays.setMenu(null)}
        />
      )}
    </>
  );
}

export function Viewer(props: ViewerProps) {
  const { update, comments, isDiff, isFile } = props;
  const state = comments ? props.state : withoutComments(props.state);
  const viewer = useViewer(props, state);
  const { tree, search, filters, place, seen, type, overlays, canSave } = viewer;
  const { loaded, shown } = tree;
  return (
    <section
      class={`viewer ${props.isReady ? "" : "waiting"}`}
      aria-label="Profile"
      aria-busy={!tree.problem && (!tree.isCurrent || search.isLoading)}
    >
      <Toolbar
        {...{ state, update, isDiff, isFile, canSave }}
        offered={viewer.offered}
        flame={shown.flame}
        groupChoices={viewer.groupChoices}
        group={viewer.group}
        searching={search.searching}
        sampleTypes={type.types}
        typeIndex={type.typeIndex}
        commentCount={props.commentCount}
        tools={props.tools}
        canChooseNames={props.opensOthers === true}
        isMoved={place.isMoved}
        onRegroup={viewer.regroup}
        onView={(view) => seen.setView(view)}
        onBeside={seen.setBeside}
        onType={type.chooseType}
        onRules={filters.setRules}
        onMatch={viewer.seekMatch}
        onShowAll={place.showAll}
        onSave={() => overlays.setExporting(true)}
        onKeys={() => overlays.setSheet(true)}
      />
      <RuleBar
        rules={state.rules}
        labels={state.labels}
        error={shown.error}
        failed={shown.error ? loaded?.rest[shown.error.rule] : undefined}
        share={shown.flame && shown.source ? shareLeft(shown.flame, shown.source) : ""}
        isOfFiltered={state.isOfFiltered}
        onChange={filters.setRules}
        onLabels={filters.setLabels}
        onClear={filters.clear}
        onOfFiltered={(isOfFiltered) => update({ isOfFiltered })}
      />
      <ViewerBody {...{ viewer, state, update }} />
      <ViewerOverlays
        {...{ viewer, state, update }}
        mayComment={props.mayComment}
        hasComments={comments !== undefined}
      />
    </section>
  );
}

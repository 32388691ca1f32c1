/*
 * explore: a team's continuous profiles: a selection (query and time) with its values over time,
 * and below it the same panes as for a share, for the merged profile; or a comparison of two
 * selections.
 */
import { useCallback, useEffect, useState } from "preact/hooks";
import type { Session } from "../api/api.ts";
import {
  getRows,
  getSampleLabels,
  getTree,
  listStored,
  type QueryDetails,
  type Source,
} from "../api/explore_api.ts";
import { FirstProfile } from "../explore/first_profile.tsx";
import { GroupMenu, useLabelNames } from "../explore/group_menu.tsx";
import { QueryDetailsLine } from "../explore/query_details.tsx";
import { ProfileList } from "../explore/profile_list.tsx";
import { SelectionPanel } from "../explore/selection_panel.tsx";
import { ShareResult } from "../explore/share_result.tsx";
import { firstType } from "../explore/type_names.ts";
import { useSelection, type Loaded } from "../explore/use_selection.ts";
import style from "../explore/explore.css?text";
import {
  requestOf,
  formatExplore,
  halves,
  parseExplore,
  pinned,
  type ExploreState,
  type Selection,
} from "../model/continuous/explore_state.ts";
import type { Flame } from "../model/tree/flame.ts";
import { labelsOfView } from "../model/rules/labels.ts";
import { adjacentIn, type Direction } from "../model/account/adjacent_share.ts";
import { joinQuery } from "../model/continuous/selector.ts";
import { formatLength } from "../model/continuous/time_window.ts";
import type { ServedRequest } from "../model/rules/served_rules.ts";
import { describeStackRules, stackRulesOf } from "../model/rules/stack_rules.ts";
import { formatState, type ViewState } from "../view_state.ts";
import { asProblem, Button, copyText, Empty, showMessage, useTitle } from "../ui/kit.tsx";
import { isSignedIn, Shell, useMustSignIn } from "../ui/shell.tsx";
import { addStyle } from "../ui/later.tsx";
import { missingNames } from "./share/share.tsx";
import { DiffSummary } from "../views/foot/legend.tsx";
import { NormaliseButton } from "../views/controls/toolbar.tsx";
import { useViewState } from "../views/view_address.ts";
import { treeRequestOf, treeKey, treeOf, Viewer } from "../views/viewer.tsx";

addStyle(style);

type Change = (patch: Partial<ExploreState>, how?: "push" | "replace") => void;

function sourceOf({ selection, baseline, profile }: ExploreState, nowMs: number): Source {
  const request = requestOf(selection, nowMs);
  if (baseline) return { kind: "diff", before: requestOf(baseline, nowMs), after: request };
  return profile ? { kind: "single", id: profile } : { kind: "merged", request };
}

/** The view with the parameters that a share supports. */
const shareView = (view: ViewState) => formatState({ ...view, extra: [], root: "" });

/** The state of the address bar and functions to change it. */
function useExplore() {
  const [view, update] = useViewState();
  const explore = parseExplore(view.extra);
  // A node opened in one tree does not exist in another.
  const change: Change = (patch, how) =>
    update({ extra: formatExplore({ ...explore, ...patch }, view.extra), root: "" }, how);
  return { view, update, explore, change };
}

interface ResultProps {
  /** The time of the last refresh. */
  nowMs: number;
  source: Source;
  view: ReturnType<typeof useExplore>["view"];
  update: ReturnType<typeof useExplore>["update"];
  /** The labels that the tree can be divided by. */
  labelKeys: readonly string[];
  extraKeys: Record<string, () => void>;
}

/** Longer ranges have larger totals: states the lengths of a comparison's ranges if they differ. */
function LengthsLine({ source, onNormalise }: { source: Source; onNormalise: () => void }) {
  if (source.kind !== "diff") return null;
  const [beforeS, afterS] = [source.before, source.after].map(({ from, to }) =>
    Math.round((to - from) / 1000),
  );
  if (beforeS === afterS) return null;
  const texts = [beforeS, afterS].map((s) => formatLength(s! * 1000));
  const [before, after] = texts[0] === texts[1] ? [`${beforeS} s`, `${afterS} s`] : texts;
  return (
    <p class="hint lengths" role="status">
      The ranges are not equally long, {before} before and {after} after. Values are totals of a
      range (means for gauges), not rates.{" "}
      <Button look="quiet" onClick={onNormalise}>
        Compare shares
      </Button>
    </p>
  );
}

/** The viewer, with details about the result above it. */
function Result({ nowMs, source, view, update, labelKeys, extraKeys }: ResultProps) {
  // By tree, because the viewer caches recent trees and does not load them again.
  const [details, setDetails] = useState<Record<string, QueryDetails>>({});
  const [flame, setFlame] = useState<Flame | null>(null);
  const treeRequest = treeRequestOf(view);
  const [nameCount, setNameCount] = useState(0); // increases when names arrive
  const key = [nowMs, nameCount, JSON.stringify(source), treeKey(view)].join("\n");
  const load = useCallback(
    (signal: AbortSignal, rules?: ServedRequest, group?: string, root?: string) =>
      getTree(
        source,
        { ...treeRequest, ...treeOf(view, group, root), rules },
        signal,
        (how) => rules || group || root || setDetails((old) => ({ ...old, [key]: how })),
      ),
    [key],
  );
  const normalise = () => update({ isNormalised: !view.isNormalised });
  const isDiff = source.kind === "diff";
  const symbolization = flame?.metadata.symbolization;
  const lacks = symbolization?.complete === false ? symbolization : null;
  return (
    <>
      <div class="made-line">
        {isDiff && flame && <DiffSummary flame={flame} isNormalised={view.isNormalised} />}
        {!view.isNormalised && <LengthsLine source={source} onNormalise={normalise} />}
        <QueryDetailsLine details={details[key] ?? null} />
        {lacks && (
          <div class="names-line">
            <missingNames.Component
              known={[lacks]}
              onNames={() => setNameCount((count) => count + 1)}
            />
          </div>
        )}
      </div>
      <Viewer
        isReady
        isDiff={isDiff}
        opensOthers
        state={view}
        update={update}
        flameKey={key}
        load={load}
        loadRows={(signal, rules) => getRows(source, { ...treeRequest, rules }, signal)}
        loadLabels={(labels, signal) => getSampleLabels(source, treeRequest, labels, signal)}
        labelKeys={labelKeys}
        onFlame={setFlame}
        sources={["/api/v1/source-links"]}
        extraKeys={isDiff ? { ...extraKeys, "%": normalise } : extraKeys}
        tools={isDiff && <NormaliseButton isNormalised={view.isNormalised} onClick={normalise} />}
      />
    </>
  );
}

interface ToolsProps {
  explore: ExploreState;
  names: Loaded<string[]>;
  change: Change;
  canShare: boolean;
  onCompare: () => void;
  onSwap: () => void;
  onCopy: () => void;
  onShare: () => void;
}

function Tools({
  explore: { selection, baseline, by },
  names,
  change,
  canShare,
  onCompare,
  onSwap,
  onCopy,
  onShare,
}: ToolsProps) {
  // A chosen series is identified by the labels that divided the graph.
  const setBy = (by: string[]) =>
    change({
      by,
      selection: { ...selection, only: [] },
      baseline: baseline && { ...baseline, only: [] },
    });
  return (
    <div class="profile-tools">
      <GroupMenu names={names} by={by} onChange={setBy} />
      <Button icon="compare" class="toggle" aria-pressed={baseline !== null} onClick={onCompare}>
        Compare
      </Button>
      {baseline && (
        <Button icon="swap" onClick={onSwap} title="Swap sides (x)">
          Swap
        </Button>
      )}
      <Button icon="copy" onClick={onCopy} title="Copy a link to this view and time range (y)">
        Copy link
      </Button>
      <Button icon="upload" look="primary" disabled={!canShare} onClick={onShare}>
        Share
      </Button>
    </div>
  );
}

/** Steps from the merged profile to the newest single one, or from one to the adjacent one. */
function stepProfile(
  { selection, baseline, profile }: ExploreState,
  nowMs: number,
  change: Change,
  direction: Direction,
): void {
  const load = async (after: string) => {
    const { data, next } = await listStored(requestOf(selection, nowMs), after);
    return { ids: data.map(({ id }) => id), next };
  };
  if (baseline) return;
  adjacentIn(load, profile, direction).then(
    (id) =>
      id
        ? change({ profile: id })
        : showMessage(
            id === null
              ? "This profile is not in the time range"
              : `There is no ${direction} profile in the time range`,
          ),
    (error) => showMessage(asProblem(error).message),
  );
}

interface SingleProfilesProps {
  explore: ExploreState;
  nowMs: number;
  change: Change;
}

/** The list of single profiles, and a line if one of them is shown. */
function SingleProfiles({ explore, nowMs, change }: SingleProfilesProps) {
  const { selection, profile, hasList } = explore;
  return (
    <>
      <details
        class="stored-place"
        open={hasList}
        onToggle={(event) =>
          event.currentTarget.open !== hasList && change({ hasList: !hasList }, "replace")
        }
      >
        <summary>Single profiles</summary>
        {hasList && selection.query && (
          <ProfileList
            key={nowMs}
            request={requestOf(selection, nowMs)}
            opened={profile}
            onOpen={(id) => change({ profile: id })}
          />
        )}
      </details>
      {profile && (
        <p class="part-line">
          <span>Showing one profile.</span>
          <Button look="quiet" onClick={() => change({ profile: "" })}>
            Show all profiles
          </Button>
        </p>
      )}
    </>
  );
}

type PanelProps = Parameters<typeof SelectionPanel>[0];

interface SelectionsProps extends Pick<PanelProps, "hasLines" | "of" | "onChange" | "onRefresh"> {
  selection: Selection;
  baseline: Selection | null;
  before: PanelProps["known"] | null;
  after: PanelProps["known"];
  onChangeBefore: PanelProps["onChange"];
}

/** One selection, or both sides of a comparison. */
function Selections(props: SelectionsProps) {
  const { selection, baseline, before, after, onChange, onChangeBefore, ...rest } = props;
  return (
    <div class={`selections ${baseline ? "two" : ""}`}>
      {baseline && before && (
        <SelectionPanel
          {...rest}
          side="Before"
          selection={baseline}
          known={before}
          onChange={onChangeBefore}
        />
      )}
      <SelectionPanel
        {...rest}
        side={baseline ? "After" : ""}
        selection={selection}
        known={after}
        onChange={onChange}
      />
    </div>
  );
}

/** What is known about both selections, and what follows for the page. */
function useBoth({ selection, baseline, by }: ExploreState, view: ViewState, nowMs: number) {
  const rules = stackRulesOf(view);
  const after = useSelection(selection, by, rules, nowMs)!;
  const before = useSelection(baseline, by, rules, nowMs);
  const isEmpty = [after, before].some(
    (known) => known?.range.isCurrent && known.range.value!.series.length === 0,
  );
  // A window between two snapshots has values, but no type: none of its profiles begins there.
  const { range } = after;
  const mayHaveValues =
    selection.query !== "" &&
    (range.isCurrent ? range.value!.series.length > 0 : range.problem === null);
  return {
    after,
    before,
    of: describeStackRules(rules),
    isEmpty,
    isWrong: after.queryError !== "" || (before?.queryError ?? "") !== "",
    hasNothing:
      after.types.isCurrent && after.types.value!.length === 0 && !mayHaveValues && !baseline,
  };
}

/** The actions of buttons and keys. */
function actionsOf(explore: ExploreState, view: ViewState, change: Change, nowMs: number) {
  const { selection, baseline } = explore;
  return {
    changeAfter: (patch: Partial<Selection>, how?: "push" | "replace") =>
      change({ selection: { ...selection, ...patch }, profile: "" }, how),
    changeBefore: (patch: Partial<Selection>) => change({ baseline: { ...baseline!, ...patch } }),
    compare: () =>
      change(baseline ? { baseline: null } : { ...halves(selection, nowMs), profile: "" }),
    swap: () => baseline && change({ selection: baseline, baseline: selection }),
    copyLink: () =>
      void copyText(
        location.origin +
          location.pathname +
          formatState({ ...view, extra: formatExplore(pinned(explore, nowMs), view.extra) }),
        "Link",
      ),
    step: (direction: Direction) => stepProfile(explore, nowMs, change, direction),
  };
}

function Page({ session }: { session: Session }) {
  const { view, update, explore, change } = useExplore();
  const { selection, baseline, by, profile } = explore;
  const [nowMs, setNow] = useState(() => Date.now());
  const [isSharing, setSharing] = useState(false);
  const { after, before, of, isEmpty, isWrong, hasNothing } = useBoth(explore, view, nowMs);
  const names = useLabelNames(after.window);
  const actions = actionsOf(explore, view, change, nowMs);
  const { changeAfter, changeBefore, compare, swap, copyLink, step } = actions;
  const first = firstType(after.types.value ?? []);
  useEffect(() => {
    if (!selection.query && first && after.types.isCurrent)
      changeAfter({ query: joinQuery(first.type, "") }, "replace");
  }, [selection.query, first, after.types.isCurrent]);
  const source = sourceOf(explore, nowMs);

  return (
    <Shell session={session} isViewer>
      <header class="profile-head explore-head">
        <div class="profile-title">
          <h1>Explore</h1>
          <Tools
            {...{ explore, names, change }}
            canShare={!isEmpty && !hasNothing && !isWrong && profile === ""}
            onCompare={compare}
            onSwap={swap}
            onCopy={copyLink}
            onShare={() => setSharing(true)}
          />
        </div>
        <Selections
          {...{ selection, baseline, before, after }}
          hasLines={by.length > 0}
          of={of}
          onChange={changeAfter}
          onChangeBefore={changeBefore}
          onRefresh={() => setNow(Date.now())}
        />
        {!baseline && !hasNothing && <SingleProfiles {...{ explore, nowMs, change }} />}
      </header>
      {hasNothing ? (
        <FirstProfile
          session={session}
          nowMs={nowMs}
          onLookBack={() => changeAfter({ from: "now-30d", until: "now", part: null })}
        />
      ) : isEmpty && !profile ? (
        <Empty title="No profile matches">
          <p>
            {baseline ? "One of the sides" : "The time range"} has no profile of this type with
            these labels.
          </p>
        </Empty>
      ) : (
        selection.query &&
        !isWrong && (
          <Result
            key={source.kind}
            {...{ nowMs, source, view, update }}
            labelKeys={names.value ?? []}
            extraKeys={{ y: copyLink, x: swap, "[": () => step("older"), "]": () => step("newer") }}
          />
        )
      )}
      {isSharing && (
        <ShareResult
          view={shareView(view)}
          labels={labelsOfView(view.labels, view.group)}
          request={
            source.kind === "diff" ? [source.before, source.after] : [requestOf(selection, nowMs)]
          }
          onClose={() => setSharing(false)}
        />
      )}
    </Shell>
  );
}

export function ExplorePage({ session }: { session: Session | null }) {
  useMustSignIn(session);
  useTitle("Explore");
  return session && isSignedIn(session) ? (
    <Page session={session} />
  ) : (
    <Shell session={session} isViewer>
      {null}
    </Shell>
  );
}

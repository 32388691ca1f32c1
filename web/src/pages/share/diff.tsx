/* diff: the page that compares two profiles in one tree, before and after. */
import { useCallback, useState } from "preact/hooks";
import { getDiff, getDiffLabels, getDiffTop, type Session, type Share } from "../../api/api.ts";
import type { Flame } from "../../model/tree/flame.ts";
import type { ServedRequest } from "../../model/rules/served_rules.ts";
import { formatValue } from "../../model/text/units.ts";
import { formatState } from "../../view_state.ts";
import { copyLink } from "../../ui/copy_link.ts";
import { Button, useTitle } from "../../ui/kit.tsx";
import { later } from "../../ui/later.tsx";
import { Shell } from "../../ui/shell.tsx";
import { DiffSummary } from "../../views/foot/legend.tsx";
import { NormaliseButton } from "../../views/controls/toolbar.tsx";
import { useViewState } from "../../views/view_address.ts";
import { treeRequestOf, treeKey, treeOf, Viewer } from "../../views/viewer.tsx";
import { NamesLine, nameOf, sourceLinksOf, stepping, useShare } from "./share.tsx";

/**
 * The total of the side after in a normalised comparison, whose tree scales that side to the total
 * before. The tree's total if the share does not contain its own.
 */
function totalOf(share: Share | null, flame: Flame): string {
  const { sample_type_index: index = -1, unit = "" } = flame.metadata;
  const total = share?.totals[index];
  return total == null
    ? formatValue(flame.total, unit)
    : formatValue(total, share?.sample_types[index].unit ?? unit);
}

interface SideProps {
  word: string;
  share: Share | null;
  value: string;
  /** The query of the view, for the link to this side alone. */
  query: string;
  onOpen: () => void;
}

function Side({ word, share, value, query, onOpen }: SideProps) {
  const open = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    onOpen();
  };
  return (
    <div class={`side ${word.toLowerCase()}`}>
      <span class="side-word">{word}</span>
      {share ? (
        <a href={`/p/${share.id}${query}`} onClick={open}>
          {nameOf(share)}
        </a>
      ) : (
        <span class="ghost ghost-line" />
      )}
      <span class="side-value">{value}</span>
    </div>
  );
}

export const sideProblem = later(async () => (await import("./side_problem.tsx")).SideProblem);

interface SidesProps {
  before: ReturnType<typeof useShare>;
  after: ReturnType<typeof useShare>;
  flame: Flame | null;
  query: string;
  isNormalised: boolean;
  open: (id: string) => void;
}

function Sides({ before, after, flame, query, isNormalised, open }: SidesProps) {
  const unit = flame?.metadata.unit ?? "";
  return (
    <div class="sides">
      <Side
        word="Before"
        share={before.share}
        value={flame ? formatValue(flame.baseTotal, unit) : ""}
        query={query}
        onOpen={() => before.share && open(before.share.id)}
      />
      <Side
        word="After"
        share={after.share}
        value={
          flame ? (isNormalised ? totalOf(after.share, flame) : formatValue(flame.total, unit)) : ""
        }
        query={query}
        onOpen={() => after.share && open(after.share.id)}
      />
    </div>
  );
}

export function DiffPage({ a, b, session }: { a: string; b: string; session: Session | null }) {
  const before = useShare(a);
  const after = useShare(b);
  const [state, update] = useViewState();
  const [flame, setFlame] = useState<Flame | null>(null);
  const [nameCount, setNameCount] = useState(0); // increases when names arrive
  useTitle(
    before.share && after.share ? `${nameOf(before.share)} → ${nameOf(after.share)}` : "Comparison",
  );
  const treeRequest = treeRequestOf(state);
  const load = useCallback(
    (signal: AbortSignal, rules?: ServedRequest, group?: string, root?: string) =>
      getDiff(a, b, { ...treeRequest, ...treeOf(state, group, root), rules }, signal),
    [a, b, treeKey(state)],
  );
  // The view without the settings that exist only in a comparison.
  const alone = { ...state, isNormalised: false, sort: null, columns: [], root: "" };
  const open = (id: string) => stepping(({ openShare }) => openShare(id, alone));
  if (before.problem || after.problem)
    return (
      <Shell session={session}>
        <sideProblem.Component
          ids={[a, b]}
          sides={[before, after]}
          linkTo={(id, text) => (
            <Button look="primary" onClick={() => open(id)}>
              {text}
            </Button>
          )}
        />
      </Shell>
    );
  const swapped = `/d/${b}..${a}${formatState(state)}`;
  const normalise = () => update({ isNormalised: !state.isNormalised });
  const query = formatState(alone);
  return (
    <Shell session={session} isViewer>
      <header class="profile-head">
        <h1 class="unseen">Comparison of two profiles</h1>
        <div class="profile-title">
          <Sides
            {...{ before, after, flame, query }}
            isNormalised={state.isNormalised}
            open={open}
          />
          {flame ? (
            <DiffSummary flame={flame} isNormalised={state.isNormalised} />
          ) : (
            <p class="verdict" />
          )}
          <div class="profile-tools">
            <Button icon="copy" look="primary" onClick={copyLink}>
              Copy link
            </Button>
            <Button icon="swap" onClick={() => location.assign(swapped)} title="Swap sides (x)">
              Swap
            </Button>
          </div>
        </div>
        {before.share && after.share && (
          <NamesLine
            shares={[before.share, after.share]}
            onNames={() => setNameCount(nameCount + 1)}
          />
        )}
      </header>
      <Viewer
        isDiff
        isReady={before.share !== null && after.share !== null}
        sampleTypes={before.share?.sample_types}
        defaultType={before.share?.default_sample_type_index}
        state={state}
        update={update}
        opensOthers
        flameKey={nameCount + treeKey(state)}
        load={load}
        loadRows={(signal, rules) => getDiffTop(a, b, { ...treeRequest, rules }, signal)}
        loadLabels={(labels, signal) => getDiffLabels(a, b, treeRequest, labels, signal)}
        labelKeys={[...new Set([before, after].flatMap(({ share }) => share?.sample_labels ?? []))]}
        onFlame={setFlame}
        sources={[a, b].map(sourceLinksOf)}
        extraKeys={{
          y: copyLink,
          x: () => location.assign(swapped),
          "%": normalise,
          "[": () => open(a),
          "]": () => open(b),
        }}
        tools={<NormaliseButton isNormalised={state.isNormalised} onClick={normalise} />}
      />
    </Shell>
  );
}

/* diff: two profiles as one tree, before and after. */
import { useCallback, useState } from "preact/hooks";
import { getDiff, getDiffLabels, getDiffTop, type Session, type Share } from "../api.ts";
import type { Flame } from "../model/flame.ts";
import { formatLabels } from "../model/labels.ts";
import type { ServedRules } from "../model/served_rules.ts";
import { formatValue } from "../model/units.ts";
import { formatState } from "../state.ts";
import { copyLink } from "../ui/copy_link.ts";
import { Button, useTitle } from "../ui/kit.tsx";
import { Shell } from "../ui/shell.tsx";
import { Verdict } from "../views/legend.tsx";
import { treeOf, useViewState, Viewer } from "../views/viewer.tsx";
import { nameOf, ShareProblem, useShare } from "./share.tsx";

/** The total of the type that is shown, where it is not the tree's: a normalised tree counts the side after as the one before. */
function totalOf(share: Share | null, flame: Flame): string {
  const { sample_type_index: index = -1, unit = "" } = flame.metadata;
  const total = share?.totals[index];
  return total == null ? formatValue(flame.total, unit) : formatValue(total, share?.sample_types[index].unit ?? unit);
}

interface SideProps {
  word: string;
  share: Share | null;
  value: string;
  /** Of the view, for the way to this side alone. */
  query: string;
}

function Side({ word, share, value, query }: SideProps) {
  return (
    <div class={`side ${word.toLowerCase()}`}>
      <span class="side-word">{word}</span>
      {share ? <a href={`/p/${share.id}${query}`}>{nameOf(share)}</a> : <span class="ghost ghost-line" />}
      <span class="side-value">{value}</span>
    </div>
  );
}

export function DiffPage({ a, b, session }: { a: string; b: string; session: Session | null }) {
  const before = useShare(a);
  const after = useShare(b);
  const [state, update] = useViewState();
  const [flame, setFlame] = useState<Flame | null>(null);
  useTitle(before.share && after.share ? `${nameOf(before.share)} → ${nameOf(after.share)}` : "Comparison");
  const question = { sampleType: state.sampleType, group: state.group, isNormalised: state.isNormalised, labels: state.labels };
  const load = useCallback(
    (signal: AbortSignal, rules?: ServedRules, group?: string) => getDiff(a, b, { ...question, ...treeOf(state, group), rules }, signal),
    [a, b, state.sampleType, state.group, state.isNormalised, state.root, formatLabels(state.labels)],
  );
  const broken = [before, after].find((side) => side.problem);
  if (broken?.problem)
    return (
      <Shell session={session}>
        <ShareProblem id={broken === before ? a : b} problem={broken.problem} onRetry={broken.reload} />
      </Shell>
    );
  const swapped = `/d/${b}..${a}${formatState(state)}`;
  const normalise = () => update({ isNormalised: !state.isNormalised });
  const unit = flame?.metadata.unit ?? "";
  // What only a comparison has stays here.
  const query = formatState({ ...state, isNormalised: false, sort: null, columns: [], root: "" });
  return (
    <Shell session={session} isViewer>
      <header class="profile-head">
        <h1 class="unseen">Comparison of two profiles</h1>
        <div class="profile-title">
          <div class="sides">
            <Side word="Before" share={before.share} value={flame ? formatValue(flame.baseTotal, unit) : ""} query={query} />
            <Side word="After" share={after.share} value={flame ? state.isNormalised ? totalOf(after.share, flame) : formatValue(flame.total, unit) : ""} query={query} />
          </div>
          {flame && <Verdict flame={flame} isNormalised={state.isNormalised} />}
          <div class="profile-tools">
            <Button icon="copy" look="primary" onClick={copyLink}>Copy link</Button>
            <Button icon="swap" onClick={() => location.assign(swapped)} title="Swap sides (x)">Swap</Button>
          </div>
        </div>
      </header>
      <Viewer
        isDiff
        isReady={before.share !== null && after.share !== null}
        state={state}
        update={update}
        opensOthers
        flameKey={`${state.sampleType}\n${state.group}\n${state.isNormalised}\n${state.root}\n${formatLabels(state.labels)}`}
        load={load}
        loadRows={(signal, rules) => getDiffTop(a, b, { ...question, rules }, signal)}
        loadLabels={(labels, signal) => getDiffLabels(a, b, question, labels, signal)}
        labelKeys={[...new Set([before, after].flatMap(({ share }) => share?.sample_labels ?? []))]}
        onFlame={setFlame}
        extraKeys={{ y: copyLink, x: () => location.assign(swapped), "%": normalise, "[": () => location.assign(`/p/${a}${query}`), "]": () => location.assign(`/p/${b}${query}`) }}
        tools={
          <Button class="toggle" aria-pressed={state.isNormalised} onClick={normalise} title="Scale both sides to the same total (%)">
            Normalise
          </Button>
        }
      />
    </Shell>
  );
}

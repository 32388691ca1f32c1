/*
 * embed: the viewer of a share or of a comparison in a frame of another site's page. Nothing here
 * changes a share.
 */
import type { ComponentChildren } from "preact";
import { useCallback } from "preact/hooks";
import { getDiff, getDiffLabels, getDiffTop, getFlame, getLabels, getTop } from "../../api/api.ts";
import type { ServedRequest } from "../../model/rules/served_rules.ts";
import { formatState, type Update } from "../../view_state.ts";
import { Messages, ProblemView, useTitle } from "../../ui/kit.tsx";
import { useViewState } from "../../views/view_address.ts";
import { treeRequestOf, treeKey, treeOf, Viewer } from "../../views/viewer.tsx";
import { sideProblem } from "./diff.tsx";
import { nameOf, sourceLinksOf, useShare } from "./share.tsx";

/** "<a>..<b>" is a comparison. */
export function EmbedPage() {
  const [a, b] = location.pathname.split("/")[2].split("..");
  return b ? <EmbeddedPair a={a} b={b} /> : <EmbeddedShare id={a} />;
}

function EmbeddedPair({ a, b }: { a: string; b: string }) {
  const before = useShare(a);
  const after = useShare(b);
  const [state, update] = useViewState();
  const isReady = before.share !== null && after.share !== null;
  const title = isReady ? `${nameOf(before.share!)} → ${nameOf(after.share!)}` : "";
  useTitle(title);
  const broken = before.problem || after.problem;
  const treeRequest = treeRequestOf(state);
  const key = treeKey(state);
  const load = useCallback(
    (signal: AbortSignal, rules?: ServedRequest, group?: string, root?: string) =>
      getDiff(a, b, { ...treeRequest, ...treeOf(state, group, root), rules }, signal),
    [a, b, key],
  );
  return (
    <Frame
      title={title || "A comparison"}
      href={`/d/${a}..${b}${formatState(state)}`}
      problem={
        broken && (
          <sideProblem.Component
            isFramed
            ids={[a, b]}
            sides={[before, after]}
            linkTo={(id, text) => (
              <a class="button primary" href={`/embed/${id}`}>
                <span>{text}</span>
              </a>
            )}
          />
        )
      }
    >
      <Viewer
        isDiff
        isReady={isReady}
        state={state}
        update={(patch) => update(patch, "replace")}
        opensOthers
        flameKey={key}
        sampleTypes={before.share?.sample_types}
        defaultType={before.share?.default_sample_type_index}
        load={load}
        loadRows={(signal, rules) => getDiffTop(a, b, { ...treeRequest, rules }, signal)}
        loadLabels={(labels, signal) => getDiffLabels(a, b, treeRequest, labels, signal)}
        labelKeys={[...new Set([before, after].flatMap(({ share }) => share?.sample_labels ?? []))]}
        sources={[a, b].map(sourceLinksOf)}
      />
    </Frame>
  );
}

interface FrameProps {
  title: string;
  href: string;
  /** Shown in place of the view. */
  problem: ComponentChildren;
  children: ComponentChildren;
}

function Frame({ title, href, problem, children }: FrameProps) {
  return (
    <div class="shell viewer-shell">
      <header class="embed-bar">
        <h1>{title}</h1>
        <a href={href} target="_blank" rel="noopener">
          Open in Perfolio
        </a>
      </header>
      <main id="main" tabIndex={-1}>
        {problem || children}
      </main>
      <Messages />
    </div>
  );
}

function EmbeddedShare({ id }: { id: string }) {
  const { share, problem, reload } = useShare(id);
  const [state, update] = useViewState();
  // A history entry in a frame would be a step back in the page around it.
  const updateInPlace: Update = (patch) => update(patch, "replace");
  useTitle(share ? nameOf(share) : "");
  const treeRequest = treeRequestOf(state);
  const load = useCallback(
    (signal: AbortSignal, rules?: ServedRequest, group?: string, root?: string) =>
      getFlame(id, { ...treeRequest, ...treeOf(state, group, root), rules }, signal),
    [id, treeKey(state)],
  );
  return (
    <Frame
      title={share ? nameOf(share) : "A profile"}
      href={`/p/${id}${formatState(state)}`}
      problem={problem && <ProblemView problem={problem} onRetry={reload} />}
    >
      <Viewer
        isReady={share !== null}
        state={state}
        update={updateInPlace}
        opensOthers
        flameKey={treeKey(state)}
        load={load}
        loadRows={(signal, rules) => getTop(id, { ...treeRequest, rules }, signal)}
        loadLabels={(labels, signal) => getLabels(id, treeRequest, labels, signal)}
        sampleTypes={share?.sample_types}
        defaultType={share?.default_sample_type_index}
        labelKeys={share?.sample_labels}
        sources={[sourceLinksOf(id)]}
      />
    </Frame>
  );
}

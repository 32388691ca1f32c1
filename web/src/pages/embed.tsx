/* embed: a share's viewer alone, in a frame of another site's page. Nothing here changes the share. */
import { useCallback } from "preact/hooks";
import { getFlame, getLabels, getTop } from "../api.ts";
import { formatLabels } from "../model/labels.ts";
import type { ServedRules } from "../model/served_rules.ts";
import { formatState, type Update } from "../state.ts";
import { Messages, ProblemView, useTitle } from "../ui/kit.tsx";
import { useViewState, Viewer } from "../views/viewer.tsx";
import { nameOf, useShare } from "./share.tsx";

export function EmbedPage() {
  const id = location.pathname.split("/")[2];
  const { share, problem, reload } = useShare(id);
  const [state, update] = useViewState();
  // Steps in a frame would be steps back in the page around it.
  const updateInPlace: Update = (patch) => update(patch, "replace");
  useTitle(share ? nameOf(share) : "");
  const question = { sampleType: state.sampleType, group: state.group, labels: state.labels };
  const load = useCallback(
    (signal: AbortSignal, rules?: ServedRules) => getFlame(id, { ...question, root: state.root, rules }, signal),
    [id, state.sampleType, state.group, state.root, formatLabels(state.labels)],
  );
  return (
    <div class="shell viewer-shell">
      <header class="embed-bar">
        <h1>{share ? nameOf(share) : "A profile"}</h1>
        <a href={`/p/${id}${formatState(state)}`} target="_blank" rel="noopener">
          Open in Perfolio
        </a>
      </header>
      <main id="main" tabIndex={-1}>
        {problem ? (
          <ProblemView problem={problem} onRetry={problem.status >= 500 || !problem.status ? reload : undefined} />
        ) : (
          <Viewer
            isReady={share !== null}
            state={state}
            update={updateInPlace}
            opensOthers
            flameKey={`${state.sampleType}\n${state.group}\n${state.root}\n${formatLabels(state.labels)}`}
            load={load}
            loadRows={(signal, rules) => getTop(id, { ...question, rules }, signal)}
            loadLabels={(labels, signal) => getLabels(id, state.sampleType, labels, signal)}
            sampleTypes={share?.sample_types}
            defaultType={share?.default_sample_type_index}
            labelKeys={share?.sample_labels}
          />
        )}
      </main>
      <Messages />
    </div>
  );
}

/*
 * main: the viewer in an exported page (export/page.ts): the trees are in the page, without a
 * server. A worker whose text is in the page applies rules.
 */
import { render } from "preact";
import "../boot.ts";
import "../ui/visible_text.ts";
import type { PageFacts } from "../export/page.ts";
import { decodeFlame, type Flame } from "../model/tree/flame.ts";
import { formatDate, formatValue } from "../model/text/units.ts";
import { Messages, ProblemView, asProblem } from "../ui/kit.tsx";
import { Mark } from "../ui/icons.tsx";
import { useViewState } from "../views/view_address.ts";
import { Viewer } from "../views/viewer.tsx";

const textOf = (id: string) => document.getElementById(id)?.textContent ?? "";

async function readFlame(at: number): Promise<Flame> {
  const packed = Uint8Array.from(atob(textOf("flame").trim().split("\n")[at]), (letter) =>
    letter.charCodeAt(0),
  );
  const bytes = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return decodeFlame(await new Response(bytes).arrayBuffer());
}

function Page({ facts, flame }: { facts: PageFacts; flame: Flame }) {
  const [state, update] = useViewState(facts.query);
  /**
   * The position of the state's group in the file. 0 if the file lacks that group: the one that was
   * visible when it was saved.
   */
  const shown = Math.max(0, facts.groups.indexOf(state.group));
  const unit = flame.metadata.unit ?? "";
  return (
    <div class="shell viewer-shell">
      <header class="profile-head">
        <div class="profile-title">
          <Mark />
          <h1>{facts.title || "Profile"}</h1>
        </div>
        <ul class="facts">
          <li>{formatValue(flame.cum[0], unit)}</li>
          {facts.filters.length > 0 && <li>filtered: {facts.filters.join("; ")}</li>}
          <li>saved from Perfolio {formatDate(facts.savedAt)}</li>
        </ul>
      </header>
      <Viewer
        isReady
        isFile
        isDiff={flame.isDiff}
        groups={facts.groups}
        hues={facts.hues}
        state={state}
        update={update}
        flameKey={String(shown)}
        load={() => (shown ? readFlame(shown) : Promise.resolve(flame))}
        loadRows={() => Promise.resolve([])}
      />
      <Messages />
    </div>
  );
}

const root = document.getElementById("app")!;
readFlame(0).then(
  (flame) => render(<Page facts={JSON.parse(textOf("facts")) as PageFacts} flame={flame} />, root),
  (error) => render(<ProblemView problem={asProblem(error)} />, root),
);

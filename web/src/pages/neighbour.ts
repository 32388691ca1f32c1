/* neighbour: from a share to the one beside it: in the team's list, or among those shared from this browser. */
import { getShare, listShares, type Session } from "../api/api.ts";
import { fitView } from "../model/fit.ts";
import { neighbourIn, type Way } from "../model/adjacent_share.ts";
import { listRemembered } from "../model/local_preferences.ts";
import { formatState, parseState, type ViewState } from "../state.ts";
import { say, sayNext } from "../ui/kit.tsx";
import { isSignedIn } from "../ui/shell.tsx";

async function pageOfTeam(cursor: string) {
  const { shares, next_cursor } = await listShares("", cursor);
  return { ids: shares.map(({ id }) => id), next: next_cursor };
}

const pageOfBrowser = () =>
  Promise.resolve({ ids: listRemembered().map(({ id }) => id), next: null });

/** Opens a share in that view, as far as it has what the view asks for; what it has not is told there. */
export async function openShare(id: string, view: ViewState): Promise<void> {
  const share = await getShare(id).catch(() => null); // its own page tells why it cannot be read
  const { state, lacks } = share
    ? fitView(view, {
        sampleTypes: share.sample_types,
        defaultType: share.default_sample_type_index,
        labels: share.sample_labels,
      })
    : { state: { ...view, root: "" }, lacks: [] };
  if (lacks.length > 0) sayNext(lacks.join(" "));
  location.assign(`/p/${id}${formatState(state)}`);
}

/** It is looked at as this one is. */
export async function stepShare(id: string, way: Way, session: Session | null): Promise<void> {
  const ofTeam =
    isSignedIn(session) && session!.scopes.includes("read")
      ? await neighbourIn(pageOfTeam, id, way)
      : null;
  const other = ofTeam ?? (await neighbourIn(pageOfBrowser, id, way));
  if (other) await openShare(other, parseState(location.search));
  else
    say(
      other === null
        ? "This profile is not in any of your lists"
        : way === "older"
          ? "There is no older profile in the list"
          : "This is the newest profile in the list",
    );
}

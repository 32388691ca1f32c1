/* neighbour: from a share to the one beside it: in the team's list, or among those shared from this browser. */
import { listShares, type Session } from "../api.ts";
import { neighbourIn, type Way } from "../model/neighbour.ts";
import { listRemembered } from "../model/remembered.ts";
import { formatState, parseState } from "../state.ts";
import { say } from "../ui/kit.tsx";
import { isSignedIn } from "../ui/shell.tsx";

async function pageOfTeam(cursor: string) {
  const { shares, next_cursor } = await listShares("", cursor);
  return { ids: shares.map(({ id }) => id), next: next_cursor };
}

const pageOfBrowser = () => Promise.resolve({ ids: listRemembered().map(({ id }) => id), next: null });

/** It is looked at as this one is. */
export async function stepShare(id: string, way: Way, session: Session | null): Promise<void> {
  const ofTeam = isSignedIn(session) && session!.scopes.includes("read") ? await neighbourIn(pageOfTeam, id, way) : null;
  const other = ofTeam ?? (await neighbourIn(pageOfBrowser, id, way));
  if (other) location.assign(`/p/${other}${formatState({ ...parseState(location.search), root: "" })}`);
  else say(other === null ? "This profile is in no list of yours" : way === "older" ? "There is no older profile in the list" : "This is the newest profile in the list");
}

/*
 * step_share: opens another share in the current view: any, or the adjacent one in the team's list
 * or in the list of shares from this browser.
 */
import { getShare, listShares, type Session } from "../../api/api.ts";
import { fitView } from "../../model/tree/fit.ts";
import { adjacentIn, type Direction } from "../../model/account/adjacent_share.ts";
import { listStoredShares } from "../../model/storage/browser_storage.ts";
import { formatState, parseState, type ViewState } from "../../view_state.ts";
import { showMessage, showMessageOnNextPage } from "../../ui/kit.tsx";
import { isSignedIn } from "../../ui/shell.tsx";

async function pageOfTeam(cursor: string) {
  const { shares, next_cursor } = await listShares("", cursor);
  return { ids: shares.map(({ id }) => id), next: next_cursor };
}

const pageOfBrowser = () =>
  Promise.resolve({ ids: listStoredShares().map(({ id }) => id), next: null });

/**
 * Opens a share in the same view as far as it supports it; the other page reports what it lacks.
 */
export async function openShare(id: string, view: ViewState): Promise<void> {
  // the other page reports why it cannot be read
  const share = await getShare(id).catch(() => null);
  const { state, missing } = share
    ? fitView(view, {
        sampleTypes: share.sample_types,
        defaultType: share.default_sample_type_index,
        labels: share.sample_labels,
      })
    : { state: { ...view, root: "" }, missing: [] };
  if (missing.length > 0) showMessageOnNextPage(missing.join(" "));
  location.assign(`/p/${id}${formatState(state)}`);
}

/** Opens the adjacent profile in the same view, or reports that there is none. */
export async function stepShare(
  id: string,
  direction: Direction,
  session: Session | null,
): Promise<void> {
  const ofTeam =
    isSignedIn(session) && session!.scopes.includes("read")
      ? await adjacentIn(pageOfTeam, id, direction)
      : null;
  const other = ofTeam ?? (await adjacentIn(pageOfBrowser, id, direction));
  if (other) await openShare(other, parseState(location.search));
  else
    showMessage(
      other === null
        ? "This profile is not in any of your lists"
        : direction === "older"
          ? "There is no older profile in the list"
          : "This is the newest profile in the list",
    );
}

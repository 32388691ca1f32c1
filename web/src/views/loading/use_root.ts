/*
 * use_root: the part of a tree that a link opens (`root`). If it does not exist, the whole tree is
 * shown and this is reported.
 */
import { useEffect, useState } from "preact/hooks";
import type { Problem } from "../../api/api.ts";
import type { Update, ViewState } from "../../view_state.ts";

/** Whether it is the server's error for a missing root, the only one that begins like this. */
export const isOfRoot = ({ status, detail }: Problem) =>
  status === 400 && detail.startsWith("root ");

/** Whether there was a part that could not be opened. */
export function useRoot(problem: Problem | null, { root }: ViewState, update: Update): boolean {
  const [isLost, setLost] = useState(false);
  const isDead = root !== "" && problem !== null && isOfRoot(problem);
  useEffect(() => {
    if (isDead) {
      setLost(true);
      update({ root: "" }, "replace");
    } else if (root) setLost(false); // another root
  }, [isDead, root]);
  // Back, forward and links within the page may lead to a state that never had a root.
  useEffect(() => {
    const forget = () => setLost(false);
    addEventListener("popstate", forget);
    return () => removeEventListener("popstate", forget);
  }, []);
  return isLost;
}

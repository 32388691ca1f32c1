/* use_root: the part of a tree that a link opens (`root`). Where it is not there, all is shown, and that is said. */
import { useEffect, useState } from "preact/hooks";
import type { Problem } from "../api/api.ts";
import type { Update, ViewState } from "../state.ts";

/** As the server says it of nothing else; of before the tree came, or it would have been found. */
export const isOfRoot = ({ status, detail }: Problem) =>
  status === 400 && detail.startsWith("root ");

/** Was there a part that could not be opened? */
export function useRoot(problem: Problem | null, { root }: ViewState, update: Update): boolean {
  const [isLost, setLost] = useState(false);
  const isDead = root !== "" && problem !== null && isOfRoot(problem);
  useEffect(() => {
    if (isDead) {
      setLost(true);
      update({ root: "" }, "replace");
    } else if (root) setLost(false); // another one
  }, [isDead, root]);
  // Back, forward and links within the page lead to what may never have had one.
  useEffect(() => {
    const forget = () => setLost(false);
    addEventListener("popstate", forget);
    return () => removeEventListener("popstate", forget);
  }, []);
  return isLost;
}

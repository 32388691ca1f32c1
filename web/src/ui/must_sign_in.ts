/* must_sign_in: leads whoever is not signed in to where they can, and back. */
import { useEffect } from "preact/hooks";
import type { Session } from "../api/api.ts";
import { isSignedIn } from "./shell.tsx";

export function useMustSignIn(session: Session | null): void {
  useEffect(() => {
    if (session && !isSignedIn(session))
      location.replace("/login?next=" + encodeURIComponent(location.pathname + location.search));
  }, [session]);
}

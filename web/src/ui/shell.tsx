/* shell: the header around every page, and the session. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { getSession, anonymousSession, signOut, type Session } from "../api/api.ts";
import { IconButton, Menu, Messages } from "./kit.tsx";
import { Mark } from "./icons.tsx";
import { toggleTheme, usePalette } from "./theme.ts";

export const isSignedIn = (session: Session | null): boolean => Boolean(session?.user);

export function useSession(): Session | null {
  const [session, setSession] = useState<Session | null>(null);
  useEffect(() => {
    getSession().then(setSession, () => setSession(anonymousSession));
  }, []);
  return session;
}

function AccountMenu({ session }: { session: Session }) {
  const leave = async () => {
    await signOut().catch(() => undefined);
    location.assign("/");
  };
  return (
    <Menu label={session.tenant?.name ?? "Account"} icon="user">
      <p class="menu-note">
        {session.user?.email}
        <br />
        {session.role}
      </p>
      <a href="/shares">The team’s profiles</a>
      <a href="/sources">Sources</a>
      <a href="/settings">Settings</a>
      <button type="button" onClick={leave}>
        Sign out
      </button>
    </Menu>
  );
}

export function Shell({
  children,
  session,
  isViewer = false,
}: {
  children: ComponentChildren;
  session: Session | null;
  isViewer?: boolean;
}) {
  const { isDark } = usePalette();
  const path = location.pathname;
  return (
    <div class={`shell ${isViewer ? "viewer-shell" : ""}`}>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href="/">
          <Mark />
          <span>Perfolio</span>
        </a>
        <nav aria-label="Main">
          {isSignedIn(session) &&
            [
              ["/shares", "Profiles"],
              ["/explore", "Explore"],
            ].map(([href, name]) => (
              <a key={href} href={href} aria-current={path === href ? "page" : undefined}>
                {name}
              </a>
            ))}
          {path !== "/" && <a href="/">New</a>}
        </nav>
        <div class="top-end">
          {session &&
            (isSignedIn(session) ? (
              <AccountMenu session={session} />
            ) : (
              <a class="button quiet" href={signInLink()}>
                <span>Sign in</span>
              </a>
            ))}
          <IconButton
            icon={isDark ? "sun" : "moon"}
            label={isDark ? "Light colours" : "Dark colours"}
            onClick={toggleTheme}
          />
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <Messages />
    </div>
  );
}

/** The sign-in page, with the current page as its return address. */
export function signInLink(): string {
  const here = location.pathname + location.search;
  return here === "/" || here.startsWith("/login")
    ? "/login"
    : "/login?next=" + encodeURIComponent(here);
}

/** Sends a reader who is not signed in to the sign-in page, which leads back here. */
export function useMustSignIn(session: Session | null): void {
  useEffect(() => {
    if (session && !isSignedIn(session))
      location.replace("/login?next=" + encodeURIComponent(location.pathname + location.search));
  }, [session]);
}

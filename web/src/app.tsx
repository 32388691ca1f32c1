/* app: which page a path is. Pages that a reader of a profile does not need are loaded on demand. */
import { render, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Session } from "./api.ts";
import { Loading } from "./ui/kit.tsx";
import { Shell, useSession } from "./ui/shell.tsx";
import { DiffPage } from "./pages/diff.tsx";
import { LandingPage } from "./pages/landing.tsx";
import { DeletePage, SharePage } from "./pages/share.tsx";

type AccountPages = typeof import("./pages/account.tsx");

/** One of the pages of the account chunk, once it is there. */
function Later({ pick, session }: { pick: (pages: AccountPages) => ComponentType<{ session: Session | null }>; session: Session | null }) {
  const [Page, setPage] = useState<ComponentType<{ session: Session | null }> | null>(null);
  useEffect(() => {
    void import("./pages/account.tsx").then((pages) => setPage(() => pick(pages)));
  }, []);
  if (!Page) return <Shell session={session}><Loading /></Shell>;
  return <Page session={session} />;
}

function App() {
  const session = useSession();
  const path = decodeURI(location.pathname).replace(/(.)\/$/, "$1");
  const share = /^\/p\/([^/]+)$/.exec(path);
  if (share) return <SharePage id={share[1]} session={session} />;
  const remove = /^\/p\/([^/]+)\/delete$/.exec(path);
  if (remove) return <DeletePage id={remove[1]} session={session} />;
  const diff = /^\/d\/([^/]+?)\.\.([^/]+)$/.exec(path);
  if (diff) return <DiffPage a={diff[1]} b={diff[2]} session={session} />;
  switch (path) {
    case "/":
      return <LandingPage session={session} />;
    case "/login":
      return <Later pick={(pages) => pages.LoginPage} session={session} />;
    case "/invite":
      return <Later pick={(pages) => pages.InvitePage} session={session} />;
    case "/shares":
      return <Later pick={(pages) => pages.SharesPage} session={session} />;
    case "/settings":
      return <Later pick={(pages) => pages.SettingsPage} session={session} />;
    default:
      return <Later pick={(pages) => pages.OtherPage} session={session} />;
  }
}

render(<App />, document.getElementById("app")!);

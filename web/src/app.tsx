/* app: which page a path is. Pages that a reader of a profile does not need are loaded on demand. */
import { render, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Session } from "./api.ts";
import { Loading } from "./ui/kit.tsx";
import { later } from "./ui/later.tsx";
import { Shell, useSession } from "./ui/shell.tsx";
import { DiffPage } from "./pages/diff.tsx";
import { SharePage } from "./pages/share.tsx";

type Page = ComponentType<{ session: Session | null }>;

/** A page of another chunk, once it is there. */
function Later({ load, session, isBare = false }: { load: () => Promise<Page>; session: Session | null; isBare?: boolean }) {
  const [Page, setPage] = useState<Page | null>(null);
  useEffect(() => {
    void load().then((page) => setPage(() => page));
  }, []);
  if (!Page && isBare) return <Loading />;
  if (!Page) return <Shell session={session}><Loading /></Shell>;
  return <Page session={session} />;
}

const remove = later(async () => (await import("./pages/delete.tsx")).DeletePage);
const account = () => import("./pages/account.tsx");

function App() {
  const session = useSession();
  const path = decodeURI(location.pathname).replace(/(.)\/$/, "$1");
  const share = /^\/p\/([^/]+)$/.exec(path);
  if (share) return <SharePage id={share[1]} session={session} />;
  if (path.startsWith("/embed/")) return <Later load={async () => (await import("./pages/embed.tsx")).EmbedPage} session={session} isBare />;
  const removed = /^\/p\/([^/]+)\/delete$/.exec(path);
  if (removed) return <remove.Component id={removed[1]} session={session} />;
  const diff = /^\/d\/([^/]+?)\.\.([^/]+)$/.exec(path);
  if (diff) return <DiffPage a={diff[1]} b={diff[2]} session={session} />;
  switch (path) {
    case "/":
      return <Later load={async () => (await import("./pages/landing.tsx")).LandingPage} session={session} />;
    case "/login":
      return <Later load={async () => (await account()).LoginPage} session={session} />;
    case "/invite":
      return <Later load={async () => (await account()).InvitePage} session={session} />;
    case "/shares":
      return <Later load={async () => (await account()).SharesPage} session={session} />;
    case "/settings":
      return <Later load={async () => (await account()).SettingsPage} session={session} />;
    default:
      return <Later load={async () => (await account()).OtherPage} session={session} />;
  }
}

render(<App />, document.getElementById("app")!);

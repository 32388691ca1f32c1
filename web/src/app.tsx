/*
 * app: the page for a path. Pages that a reader of a profile does not need load on demand. The
 * imports without names are small modules that several later chunks need; without them, each would
 * become a chunk of its own.
 */
import { render, type VNode } from "preact";
import "./workers/worker_prelude.ts";
import "./api/retry_busy.ts";
import "./model/account/adjacent_share.ts";
import "./model/rules/stack_rules.ts";
import "./ui/keep_focus.ts";
import "./ui/confirm_button.tsx";
import "./ui/visible_text.ts";
import type { Session } from "./api/api.ts";
import { later } from "./ui/later.tsx";
import { Shell, useSession } from "./ui/shell.tsx";
import { DiffPage } from "./pages/share/diff.tsx";
import { listenForEarlyDrops } from "./pages/upload/early_drop.ts";
import { SharePage } from "./pages/share/share.tsx";

const inShell = (content: VNode, { session }: { session: Session | null }) => (
  <Shell session={session}>{content}</Shell>
);
const account = (name: "InvitePage" | "LoginPage" | "OtherPage" | "SettingsPage" | "SharesPage") =>
  later(async () => (await import("./pages/account/account.tsx"))[name], inShell).Component;

const Landing = later(
  async () => (await import("./pages/upload/landing.tsx")).LandingPage,
  inShell,
).Component;
const Embed = later(async () => (await import("./pages/share/embed.tsx")).EmbedPage).Component;
const Explore = later(
  async () => (await import("./pages/explore.tsx")).ExplorePage,
  (content, { session }: { session: Session | null }) => (
    <Shell session={session} isViewer>
      {content}
    </Shell>
  ),
).Component;
const Sources = later(
  async () => (await import("./pages/account/sources.tsx")).SourcesPage,
  inShell,
).Component;
const Delete = later<{ id: string; session: Session | null }>(
  async () => (await import("./pages/share/delete.tsx")).DeletePage,
  inShell,
).Component;
const Other = account("OtherPage");
const pages = {
  "/": Landing,
  "/login": account("LoginPage"),
  "/invite": account("InvitePage"),
  "/shares": account("SharesPage"),
  "/explore": Explore,
  "/sources": Sources,
  "/settings": account("SettingsPage"),
};

/** "" if the path cannot be decoded; OtherPage reports this. */
function decodedPath(): string {
  try {
    return decodeURI(location.pathname).replace(/(.)\/$/, "$1");
  } catch {
    return "";
  }
}

function App() {
  const session = useSession();
  const path = decodedPath();
  const share = /^\/p\/([^/]+)$/.exec(path);
  if (share) return <SharePage id={share[1]} session={session} />;
  if (path.startsWith("/embed/")) return <Embed />;
  const removed = /^\/p\/([^/]+)\/delete$/.exec(path);
  if (removed) return <Delete id={removed[1]} session={session} />;
  const diff = /^\/d\/([^/]+?)\.\.([^/]+)$/.exec(path);
  if (diff) return <DiffPage a={diff[1]} b={diff[2]} session={session} />;
  const Page = Object.hasOwn(pages, path) ? pages[path as keyof typeof pages] : Other;
  return <Page session={session} />;
}

// /senders is the former path of the page of sources.
if (decodedPath() === "/senders")
  history.replaceState(null, "", `/sources${location.search}${location.hash}`);
listenForEarlyDrops();
render(<App />, document.getElementById("app")!);

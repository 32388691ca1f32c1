/* landing: drop, paste or choose a profile; it becomes a link. */
import { addStyle } from "../ui/style.ts";
import style from "./pages.css?text";
import { useRef, useState } from "preact/hooks";
import type { Session, Share } from "../api/api.ts";
import { listRemembered } from "../model/local_preferences.ts";
import { useTitle } from "../ui/kit.tsx";
import { isSignedIn, Shell, signInLink } from "../ui/shell.tsx";
import { nothingRedacted } from "../local/wish.ts";
import { Checks } from "./checks.tsx";
import { DropZone, useIncoming } from "./choose_files.tsx";
import { Done, type Outcome } from "./done.tsx";
import { Preview, type Hopeless } from "./preview.tsx";
import { Ready } from "./ready.tsx";
import { useRedacted } from "./redaction_form.tsx";
import { HeroPicture, Recent, Ways } from "./ways.tsx";
import { forgetView, viewQuery } from "../views/view_address.ts";

addStyle(style);

const none: File[] = [];

interface LandingProps {
  session: Session | null;
  /** A share that one file is to be compared with, as the side before, and what was chosen for that. */
  against?: Share;
  first?: File[];
  onLeave?: () => void;
}

export function LandingPage({ session, against, first = none, onLeave }: LandingProps) {
  const [files, setFiles] = useState(first);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [hopeless, setHopeless] = useState<Hopeless>(first.length > 2 ? "unknown" : "");
  const [wish, setWish] = useState(nothingRedacted);
  /** More are merged, which is not shown before. */
  const previewed = files.length > 2 ? none : files;
  const { shown, problem: redactionProblem } = useRedacted(previewed, wish);
  useTitle("");
  const [readyCount, setReadyCount] = useState(0);
  const lastFiles = useRef<readonly File[]>(first);
  /** What was to be left out holds for files that are added, until one starts anew; a view is of its files. */
  const chooseFiles = (chosen: File[]) => {
    const last = lastFiles.current;
    const isSwapped = last.length === chosen.length && last.every((file) => chosen.includes(file));
    if (last.length > 0 && !isSwapped && !(onLeave && chosen.length === 0)) forgetView(); // whoever leaves has the share's view again
    if (chosen.length) lastFiles.current = chosen;
    setFiles(chosen);
    setHopeless(chosen.length > 2 ? "unknown" : "");
    if (chosen.length > 0) return;
    setWish(nothingRedacted);
    onLeave?.();
  };
  const sent = (made: Outcome) => {
    if (against && made.together === "single")
      location.assign(`/d/${made.shares[0].created.id}..${against.id}${viewQuery()}`);
    else setOutcome(made);
  };
  /** What was pressed for it is gone then. */
  const goOn = (chosen: File[]) => {
    chooseFiles(chosen);
    setReadyCount(readyCount + 1);
  };
  const isOver = useIncoming((incoming) => {
    if (outcome) setWish(nothingRedacted);
    chooseFiles(outcome ? incoming : [...files, ...incoming]);
    setOutcome(null);
  });
  const mustSignIn = session !== null && !session.anonymous_sharing && !isSignedIn(session);
  const isReader = isSignedIn(session) && !session?.scopes.includes("share");
  const isChosen = !outcome && previewed.length > 0;
  return (
    <Shell session={session}>
      <div class={`landing ${isOver ? "over" : ""}`}>
        <section class={`hero ${isChosen ? "chosen" : ""}`}>
          <HeroPicture />
          <div class={`hero-text ${isChosen ? "unseen" : ""}`}>
            <h1>
              A profile
              <br />
              becomes a link.
            </h1>
            <p>
              {mustSignIn
                ? "Without an account, a profile you drop here opens in your browser and is not uploaded. Sign in to share it."
                : "Drop a profile and get a flame graph that anyone with the link can see. The file is kept unchanged until it expires or you delete it."}
            </p>
          </div>
          {outcome ? (
            <Done
              outcome={outcome}
              query={outcome.together === "merge" ? "" : viewQuery()}
              onAgain={() => (setOutcome(null), chooseFiles([]))}
            />
          ) : mustSignIn ? (
            <section class="card">
              <h2>Sign in to share</h2>
              <p>This server accepts profiles from team members only.</p>
              <div class="actions start">
                <a class="button primary" href={signInLink()}>
                  <span>Sign in</span>
                </a>
              </div>
            </section>
          ) : isReader ? (
            <section class="card">
              <h2>You can view profiles, but not share them</h2>
              <p>
                Your role in {session?.tenant?.name} is {session?.role}, which can view the team’s
                profiles. To share your own, ask an owner of the team to make you a member.
              </p>
              <div class="actions start">
                <a class="button primary" href="/shares">
                  <span>The team’s profiles</span>
                </a>
              </div>
            </section>
          ) : files.length > 0 ? (
            <Ready
              files={files}
              wish={wish}
              redactionProblem={redactionProblem}
              onWish={setWish}
              session={session}
              hopeless={hopeless}
              onFiles={chooseFiles}
              onSent={sent}
              against={against}
              readyCount={readyCount}
            />
          ) : (
            <DropZone onFiles={chooseFiles} limit={session?.limits.max_upload_bytes} />
          )}
        </section>
        {!outcome && files.length > 2 && (
          <Checks files={files} onFiles={goOn} onHopeless={setHopeless} />
        )}
        {!outcome && shown && shown.length > 0 && (
          <Preview
            key={shown.map(({ name, lastModified, size }) => name + lastModified + size).join("\n")}
            files={shown}
            isRedacted={shown !== files}
            onFiles={chooseFiles}
            onRemove={(index) => goOn(files.filter((_, i) => i !== index))}
            onSwap={() => chooseFiles([files[1], files[0]])}
            onHopeless={setHopeless}
          />
        )}
        <Recent list={outcome || files.length ? [] : listRemembered()} />
        {files.length === 0 && session && <Ways session={session} />}
      </div>
    </Shell>
  );
}

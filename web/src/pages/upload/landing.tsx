/* landing: the first page, on which a dropped, pasted or chosen profile becomes a link. */
import { addStyle } from "../../ui/later.tsx";
import style from "../pages.css?text";
import { useRef, useState } from "preact/hooks";
import type { Session, Share } from "../../api/api.ts";
import { listStoredShares } from "../../model/storage/browser_storage.ts";
import { useTitle } from "../../ui/kit.tsx";
import { isSignedIn, Shell, signInLink } from "../../ui/shell.tsx";
import { nothingRedacted } from "../../local/redaction.ts";
import { FileChecks } from "./file_checks.tsx";
import { DropZone, useIncoming } from "./choose_files.tsx";
import { UploadDone, type Outcome } from "./upload_done.tsx";
import { Preview, type ExpectedRefusal } from "./preview.tsx";
import { ChosenFiles } from "./chosen_files.tsx";
import { useRedacted } from "./redaction_form.tsx";
import { HeroPicture, Recent, Ways } from "./landing_sections.tsx";
import { forgetView, viewQuery } from "../../views/view_address.ts";

addStyle(style);

const none: File[] = [];

interface LandingProps {
  session: Session | null;
  /** A single file is compared with this share; the file is the side before. */
  against?: Share;
  /** The files that are already chosen. */
  first?: File[];
  /** Called when no file is left; given together with `against`. */
  onLeave?: () => void;
}

function HeroText({ isHidden, mustSignIn }: { isHidden: boolean; mustSignIn: boolean }) {
  return (
    <div class={`hero-text ${isHidden ? "unseen" : ""}`}>
      <h1>
        A profile
        <br />
        becomes a link.
      </h1>
      <p>
        {mustSignIn
          ? "Without an account, a profile you drop here opens in your browser and is " +
            "not uploaded. Sign in to share it."
          : "Drop a profile and get a flame graph that anyone with the link can see. The " +
            "file is kept unchanged until it expires or you delete it."}
      </p>
    </div>
  );
}

function SignInCard() {
  return (
    <section class="card">
      <h2>Sign in to share</h2>
      <p>This server accepts profiles from team members only.</p>
      <div class="actions start">
        <a class="button primary" href={signInLink()}>
          <span>Sign in</span>
        </a>
      </div>
    </section>
  );
}

/** For a role that can view profiles but not share them. */
function ViewerCard({ session }: { session: Session | null }) {
  return (
    <section class="card">
      <h2>You can view profiles, but not share them</h2>
      <p>
        Your role in {session?.tenant?.name} is {session?.role}, which can view the team’s profiles.
        To share your own, ask an owner of the team to make you a member.
      </p>
      <div class="actions start">
        <a class="button primary" href="/shares">
          <span>The team’s profiles</span>
        </a>
      </div>
    </section>
  );
}

export function LandingPage({ session, against, first = none, onLeave }: LandingProps) {
  const [files, setFiles] = useState(first);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [expectedRefusal, setExpectedRefusal] = useState<ExpectedRefusal>(
    first.length > 2 ? "unknown" : "",
  );
  const [redaction, setRedaction] = useState(nothingRedacted);
  /** More than two files are merged, which is not previewed. */
  const previewed = files.length > 2 ? none : files;
  const { shown, problem: redactionProblem } = useRedacted(previewed, redaction);
  useTitle("");
  const [readyCount, setReadyCount] = useState(0);
  const lastFiles = useRef<readonly File[]>(first);
  /**
   * The redaction stays when files are added, until the reader starts again; a view belongs to its
   * files.
   */
  const chooseFiles = (chosen: File[]) => {
    const last = lastFiles.current;
    const isSwapped = last.length === chosen.length && last.every((file) => chosen.includes(file));
    // onLeave restores the view of the share, so the view is kept for it
    if (last.length > 0 && !isSwapped && !(onLeave && chosen.length === 0)) forgetView();
    if (chosen.length) lastFiles.current = chosen;
    setFiles(chosen);
    setExpectedRefusal(chosen.length > 2 ? "unknown" : "");
    if (chosen.length > 0) return;
    setRedaction(nothingRedacted);
    onLeave?.();
  };
  const sent = (made: Outcome) => {
    if (against && made.together === "single")
      location.assign(`/d/${made.shares[0].created.id}..${against.id}${viewQuery()}`);
    else setOutcome(made);
  };
  /** For buttons that disappear when pressed: the form then moves the focus (readyCount). */
  const replaceFiles = (chosen: File[]) => {
    chooseFiles(chosen);
    setReadyCount(readyCount + 1);
  };
  const isOver = useIncoming((incoming) => {
    if (outcome) setRedaction(nothingRedacted);
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
          <HeroText isHidden={isChosen} mustSignIn={mustSignIn} />
          {outcome ? (
            <UploadDone
              outcome={outcome}
              query={outcome.together === "merge" ? "" : viewQuery()}
              onAgain={() => (setOutcome(null), chooseFiles([]))}
            />
          ) : mustSignIn ? (
            <SignInCard />
          ) : isReader ? (
            <ViewerCard session={session} />
          ) : files.length > 0 ? (
            <ChosenFiles
              files={files}
              redaction={redaction}
              redactionProblem={redactionProblem}
              onRedaction={setRedaction}
              session={session}
              expectedRefusal={expectedRefusal}
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
          <FileChecks files={files} onFiles={replaceFiles} onExpectedRefusal={setExpectedRefusal} />
        )}
        {!outcome && shown && shown.length > 0 && (
          <Preview
            key={shown.map(({ name, lastModified, size }) => name + lastModified + size).join("\n")}
            files={shown}
            isRedacted={shown !== files}
            onFiles={chooseFiles}
            onRemove={(index) => replaceFiles(files.filter((_, i) => i !== index))}
            onSwap={() => chooseFiles([files[1], files[0]])}
            onExpectedRefusal={setExpectedRefusal}
          />
        )}
        <Recent list={outcome || files.length ? [] : listStoredShares()} />
        {files.length === 0 && session && <Ways session={session} />}
      </div>
    </Shell>
  );
}

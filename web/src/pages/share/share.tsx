/* share: the page of one profile: its metadata and the viewer. */
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useState } from "preact/hooks";
import {
  getFlame,
  getLabels,
  getShare,
  getTop,
  lostScript,
  type Problem,
  type Session,
  type Share,
  type Visibility,
} from "../../api/api.ts";
import type { ServedRequest } from "../../model/rules/served_rules.ts";
import type { Direction } from "../../model/account/adjacent_share.ts";
import { deleteTokenOf } from "../../model/storage/browser_storage.ts";
import {
  formatAgo,
  formatBytes,
  formatCount,
  formatDate,
  formatValue,
} from "../../model/text/units.ts";
import { formatTitle } from "../../model/text/upload_formats.ts";
import {
  asProblem,
  Button,
  Fold,
  Menu,
  Name,
  ProblemView,
  showMessage,
  useTitle,
} from "../../ui/kit.tsx";
import { copyLink } from "../../ui/copy_link.ts";
import { later } from "../../ui/later.tsx";
import { Markdown } from "../../ui/markdown.tsx";
import { isSignedIn, Shell } from "../../ui/shell.tsx";
import { useViewState } from "../../views/view_address.ts";
import { treeRequestOf, treeKey, treeOf, Viewer } from "../../views/viewer.tsx";
import { listenForDrops } from "../upload/early_drop.ts";

export const nameOf = (share: Pick<Share, "title" | "filename" | "id">): string =>
  share.title || share.filename || `Profile ${share.id.slice(0, 6)}`;

export const mayComment = (session: Session | null) =>
  isSignedIn(session) && (session!.role === "member" || session!.role === "owner");

/** The URL of a share's source links. */
export const sourceLinksOf = (id: string) =>
  `/api/v1/shares/${encodeURIComponent(id)}/source-links`;

/** The names of visibilities on all pages. */
export const visibilityNames: Record<Visibility, string> = {
  unlisted: "anyone with the link",
  public: "public (indexed by search engines)",
  password: "anyone with the password",
  team: "the team only",
};

/* ---- header ---- */

function Facts({ share }: { share: Share }) {
  const facts: [string, string][] = [];
  if (share.duration_ns > 0) facts.push([`over ${formatValue(share.duration_ns, "ns")}`, ""]);
  facts.push([
    `${formatCount(share.sample_count)} ${share.sample_count === 1 ? "sample" : "samples"}`,
    "",
  ]);
  facts.push([`${formatTitle(share.format)}, ${formatBytes(share.raw_bytes)}`, share.filename]);
  if (share.time_ns > 0) facts.push([`taken ${formatDate(share.time_ns / 1e6)}`, ""]);
  facts.push([`shared ${formatAgo(share.created_at)}`, formatDate(share.created_at)]);
  facts.push([visibilityNames[share.visibility], ""]);
  if (share.views > 0)
    facts.push([
      `${formatCount(share.views)} ${share.views === 1 ? "view" : "views"}`,
      "Each IP address counts once per half hour",
    ]);
  if (share.expires_at)
    facts.push([`expires ${formatAgo(share.expires_at)}`, formatDate(share.expires_at)]);
  return (
    <Fold label="All details">
      <ul class="facts">
        {facts.map(([text, title]) => (
          <li key={text} title={title || undefined}>
            {text}
          </li>
        ))}
        {Object.entries(share.labels ?? {}).map(([key, value]) => (
          <li key={key} class="label">
            <Name text={`${key}=${value}`} />
          </li>
        ))}
      </ul>
    </Fold>
  );
}

const downloads = later(async () => (await import("./downloads.tsx")).Downloads);
export const missingNames = later(
  async () => (await import("../missing_names.tsx")).MissingNames,
  () => <></>,
);

/**
 * The line about binaries that lack names. It is reserved from the start if some do, so that
 * nothing moves.
 */
export function NamesLine({ shares, onNames }: { shares: readonly Share[]; onNames: () => void }) {
  const known = shares.map(({ symbolization }) => symbolization);
  if (known.every((one) => one?.complete !== false)) return null;
  return (
    <div class="names-line">
      <missingNames.Component known={known} shares={shares.map(({ id }) => id)} onNames={onNames} />
    </div>
  );
}
const dialogs = later(async () => (await import("./share_dialogs.tsx")).ShareDialog);

export type Opened = "edit" | "compare" | "report";

interface ShareHeaderProps {
  share: Share;
  session: Session | null;
  onChanged: () => void;
  /** Called with files to compare with the share. */
  onFiles: (files: File[]) => void;
  onNames: () => void;
}

function ShareHeader({ share, session, onChanged, onFiles, onNames }: ShareHeaderProps) {
  const [opened, setOpened] = useState<Opened | null>(null);
  const mayEdit = share.can_edit || deleteTokenOf(share.id) !== "";
  return (
    <header class="profile-head">
      <div class="profile-title">
        <h1>
          <Name text={nameOf(share)} />
        </h1>
        <div class="profile-tools">
          <Button
            icon="copy"
            look="primary"
            onClick={copyLink}
            title="Copy the link to this view (y)"
          >
            Copy link
          </Button>
          <Button icon="compare" onClick={() => setOpened("compare")}>
            Compare
          </Button>
          <Menu label="Download" icon="download" isLazy>
            <downloads.Component share={share} session={session} />
          </Menu>
          {mayEdit && (
            <Button icon="settings" onClick={() => setOpened("edit")}>
              Settings
            </Button>
          )}
          {!mayEdit && (
            <Button
              icon="flag"
              look="quiet"
              onClick={() => setOpened("report")}
              title="Report this profile"
              aria-label="Report"
            />
          )}
        </div>
      </div>
      <Facts share={share} />
      <NamesLine shares={[share]} onNames={onNames} />
      {share.description && <Markdown text={share.description} />}
      {share.comments?.length > 0 && (
        <details class="comments">
          <summary>
            {share.comments.length === 1
              ? "1 comment in the file"
              : `${share.comments.length} comments in the file`}
          </summary>
          <pre tabIndex={0}>{share.comments.join("\n")}</pre>
        </details>
      )}
      {opened && (
        <dialogs.Component
          {...{ opened, share, session, onChanged, onFiles }}
          onClose={() => setOpened(null)}
        />
      )}
    </header>
  );
}

function HeaderLoading() {
  return (
    <header class="profile-head" aria-hidden="true">
      <div class="profile-title">
        <span class="ghost ghost-title" />
      </div>
      <span class="ghost ghost-line" />
    </header>
  );
}

const landing = later(async () => (await import("../upload/landing.tsx")).LandingPage);
const prompt = later(async () => (await import("./share_prompts.tsx")).SharePrompt);

interface ShareProblemProps {
  id: string;
  problem: Problem;
  onRetry: () => void;
  heading?: string;
  actions?: ComponentChildren;
}

/** Shown in place of a share that could not be read. */
export function ShareProblem({ id, problem, ...rest }: ShareProblemProps) {
  return problem.status === 401 ? (
    <prompt.Component key={id} {...{ id, problem }} onOpen={rest.onRetry} />
  ) : (
    <ProblemView problem={problem} {...rest} />
  );
}

export type Sharing = ReturnType<typeof useShare>;
/** The metadata of the share, null until it is loaded; reload() loads it again. */
export function useShare(id: string) {
  const [share, setShare] = useState<Share | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    let isLeft = false;
    setProblem(null);
    getShare(id).then(
      (got) => !isLeft && setShare(got),
      (error) => !isLeft && setProblem(asProblem(error)),
    );
    return () => void (isLeft = true);
  }, [id, attempt]);
  return { share, problem, reload: () => setAttempt(attempt + 1) };
}

/* ---- pages ---- */

// The pages in later chunks import this module, so the bundler creates no separate chunk for the
// modules that they need.
const comments = later(async () => (await import("./comments.tsx")).CommentsPane);

/** Loads the code that steps from one profile to another, and calls `use` with it. */
export const stepping = (use: (way: typeof import("./step_share.ts")) => Promise<void>) =>
  void import("./step_share.ts")
    .catch(async () => Promise.reject(await lostScript()))
    .then(use)
    .catch((error) => showMessage(asProblem(error).message));

export function SharePage({ id, session }: { id: string; session: Session | null }) {
  const { share, problem, reload } = useShare(id);
  const [state, update] = useViewState();
  const [commentCount, setCommentCount] = useState<number>();
  const [pins, setPins] = useState<string[]>();
  const [chosen, setChosen] = useState<File[]>([]); // to compare with this share
  useEffect(() => listenForDrops(setChosen), [chosen.length]); // the form listens itself
  const [nameCount, setNameCount] = useState(0); // increases when names arrive
  useTitle(share ? nameOf(share) : "");
  const treeRequest = treeRequestOf(state);
  const load = useCallback(
    (signal: AbortSignal, rules?: ServedRequest, group?: string, root?: string) =>
      getFlame(id, { ...treeRequest, ...treeOf(state, group, root), rules }, signal),
    [id, treeKey(state)],
  );
  const step = (direction: Direction) =>
    stepping(({ stepShare }) => stepShare(id, direction, session));
  if (problem)
    return (
      <Shell session={session}>
        <ShareProblem id={id} problem={problem} onRetry={reload} />
      </Shell>
    );
  if (share && chosen.length > 0)
    return (
      <landing.Component
        session={session}
        against={share}
        first={chosen}
        onLeave={() => setChosen([])}
      />
    );
  return (
    <Shell session={session} isViewer>
      {share ? (
        <ShareHeader
          share={share}
          session={session}
          onChanged={reload}
          onFiles={setChosen}
          onNames={() => setNameCount((count) => count + 1)}
        />
      ) : (
        <HeaderLoading />
      )}
      <Viewer
        isReady={share !== null}
        state={state}
        update={update}
        opensOthers
        flameKey={nameCount + treeKey(state)}
        load={load}
        loadRows={(signal, rules) => getTop(id, { ...treeRequest, rules }, signal)}
        loadLabels={(labels, signal) => getLabels(id, treeRequest, labels, signal)}
        sampleTypes={share?.sample_types}
        defaultType={share?.default_sample_type_index}
        labelKeys={share?.sample_labels}
        comments={(props) =>
          share && (
            <comments.Component
              {...props}
              share={share}
              session={session}
              onCount={setCommentCount}
              onPins={setPins}
            />
          )
        }
        mayComment={mayComment(session)}
        pins={pins}
        sources={[sourceLinksOf(id)]}
        commentCount={commentCount ?? share?.reader_comments}
        extraKeys={{ y: copyLink, "[": () => step("older"), "]": () => step("newer") }}
      />
    </Shell>
  );
}

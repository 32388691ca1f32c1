/*
 * comments: the comments on a share, oldest first, each optionally pinned to a frame and with the
 * view that its author saw. Members can write; everyone who can see the share can read.
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Problem, Session, Share } from "../../api/api.ts";
import {
  deleteComment,
  editComment,
  listComments,
  writeComment,
  type Comment,
  type Pin,
} from "../../api/comments_api.ts";
import { findByPathHash } from "../../model/tree/path.ts";
import { storableView, pinOf, stateOfStoredView, widestOf } from "../../model/text/comment_pins.ts";
import { deleteTokenOf } from "../../model/storage/browser_storage.ts";
import { formatAgo, formatDate } from "../../model/text/units.ts";
import { asProblem, Button, ErrorLine, Loading, showMessage } from "../../ui/kit.tsx";
import { addStyle } from "../../ui/later.tsx";
import { ConfirmButton } from "../../ui/confirm_button.tsx";
import { Markdown } from "../../ui/markdown.tsx";
import { isSignedIn, signInLink } from "../../ui/shell.tsx";
import type { PaneContext } from "../../views/panes.tsx";
import { CommentForm } from "./comment_form.tsx";
import style from "./comments.css?text";
import { mayComment, nameOf } from "./share.tsx";

addStyle(style);

/** Unsent texts by share, because the reader may open another view meanwhile to choose a frame. */
const drafts = new Map<string, string>();

interface Listed {
  comments: Comment[];
  /** The cursor of the next page; null after the last. */
  cursor: string | null;
}

/** In the order of their numbers; a fresh comment replaces the old one with its number. */
const merged = (old: readonly Comment[], fresh: readonly Comment[]) =>
  [...new Map([...old, ...fresh].map((comment) => [comment.n, comment])).values()].sort(
    (a, b) => a.n - b.n,
  );

function useComments(id: string) {
  const [listed, setListed] = useState<Listed | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const loading = useRef(new AbortController());
  const load = (cursor: string) => {
    setProblem(null);
    listComments(id, cursor, loading.current.signal).then(
      (page) =>
        setListed((old) => ({
          comments: merged(old?.comments ?? [], page.comments),
          cursor: page.next_cursor,
        })),
      (error) => loading.current.signal.aborted || setProblem(asProblem(error)),
    );
  };
  useEffect(() => {
    loading.current = new AbortController();
    setListed(null);
    load("");
    return () => loading.current.abort();
  }, [id]);
  const change = (edit: (comments: readonly Comment[]) => Comment[]) =>
    setListed((old) => old && { ...old, comments: edit(old.comments) });
  return {
    listed,
    problem,
    loadMore: () => load(listed?.cursor ?? ""),
    put: (comment: Comment) => change((comments) => merged(comments, [comment])),
    drop: (n: number) => change((comments) => comments.filter((comment) => comment.n !== n)),
  };
}

/* ---- one comment ---- */

interface CommentItemProps {
  comment: Comment;
  share: Share;
  context: PaneContext;
  /** No other view is shown beside the comments. */
  isAlone: boolean;
  onChanged: (comment: Comment) => void;
  onDeleted: () => void;
}

/** The pinned function with a link to its frame, and the author's view. */
function Places({
  comment,
  context,
  isAlone,
}: Pick<CommentItemProps, "comment" | "context" | "isAlone">) {
  const [isMissing, setMissing] = useState(false);
  const { state, update, flame } = context;
  const { pin, view } = comment;
  useEffect(() => setMissing(false), [flame]);
  if (!pin && view === null) return null;
  const goTo = (to: Pin) => {
    // if names arrived after the upload, the hash may be that of an older path
    const isThere = findByPathHash(flame, to.hash) > 0 || flame.metadata.named_later === true;
    setMissing(!isThere);
    update({
      marked: to.function,
      ...(isThere && { zoom: to.hash, window: null }),
      ...(isAlone && { view: "icicle", beside: "comments" }),
    });
  };
  return (
    <>
      <div class="talk-ways">
        {pin && (
          <Button
            icon="fit"
            onClick={() => goTo(pin)}
            title="Mark the function and zoom to the frame"
          >
            <bdi>{pin.function}</bdi>
          </Button>
        )}
        {view !== null && (
          <Button
            look="quiet"
            icon="user"
            onClick={() => update(stateOfStoredView(view, state.extra))}
            title="Open the author’s view"
          >
            Author’s view
          </Button>
        )}
      </div>
      {isMissing && (
        <p class="hint" role="status">
          This frame is not in the current view. {view !== null && "It is in the author’s view."}
        </p>
      )}
    </>
  );
}

function DeleteButton({
  comment,
  share,
  onDeleted,
  onError,
}: Pick<CommentItemProps, "comment" | "share" | "onDeleted"> & {
  onError: (problem: Problem) => void;
}) {
  const remove = async () => {
    try {
      await deleteComment(share.id, comment.n, comment.can_delete ? "" : deleteTokenOf(share.id));
      showMessage("Comment deleted");
      onDeleted();
    } catch (caught) {
      onError(asProblem(caught));
    }
  };
  return (
    <ConfirmButton
      icon="trash"
      label="Delete"
      again="Delete forever"
      onSure={() => void remove()}
    />
  );
}

function CommentItem({ comment, share, context, isAlone, onChanged, onDeleted }: CommentItemProps) {
  const [edited, setEdited] = useState<string | null>(null);
  const [error, setError] = useState<Problem | null>(null);
  const item = useRef<HTMLLIElement>(null);
  const text = useMemo(() => <Markdown text={comment.text} />, [comment.text]);
  const mayDelete = comment.can_delete || deleteTokenOf(share.id) !== "";
  const stopEditing = () => {
    setEdited(null);
    item.current?.focus();
  };
  const save = async () => {
    onChanged(await editComment(share.id, comment.n, edited ?? ""));
    showMessage("Comment saved");
    stopEditing();
  };
  return (
    <li ref={item} tabIndex={-1} id={`comment-${comment.n}`}>
      <div class="talk-head">
        <strong>{comment.author}</strong>
        <time dateTime={comment.created_at} title={formatDate(comment.created_at)}>
          {formatAgo(comment.created_at)}
        </time>
        {comment.edited_at && (
          <time dateTime={comment.edited_at} title={formatDate(comment.edited_at)}>
            edited {formatAgo(comment.edited_at)}
          </time>
        )}
      </div>
      {edited === null ? (
        text
      ) : (
        <CommentForm
          label="Edit the comment"
          text={edited}
          onText={setEdited}
          verb="Save"
          send={save}
          onCancel={stopEditing}
        />
      )}
      <Places {...{ comment, context, isAlone }} />
      {edited === null && (comment.mine || mayDelete) && (
        <div class="talk-ways">
          {comment.mine && (
            <Button look="quiet" onClick={() => setEdited(comment.text)}>
              Edit
            </Button>
          )}
          {mayDelete && <DeleteButton {...{ comment, share, onDeleted }} onError={setError} />}
        </div>
      )}
      <ErrorLine error={error} />
    </li>
  );
}

/* ---- writing ---- */

function NewComment({
  share,
  context,
  onWritten,
}: {
  share: Share;
  context: PaneContext;
  onWritten: (comment: Comment) => void;
}) {
  const { flame, cursor, state } = context;
  const [text, setText] = useState(drafts.get(share.id) ?? "");
  const [wantsPin, setWantsPin] = useState(true);
  const pin = useMemo(
    () => pinOf(flame, cursor > 0 || !state.marked ? cursor : widestOf(flame, state.marked)),
    [flame, cursor, state.marked],
  );
  useEffect(
    () =>
      void (
        context.commenting > 0 && document.querySelector<HTMLElement>(".talk textarea")?.focus()
      ),
    [context.commenting],
  );
  const type = (typed: string) => {
    drafts.set(share.id, typed);
    setText(typed);
  };
  const send = async () => {
    onWritten(await writeComment(share.id, text, wantsPin ? pin : null, storableView(state)));
    type("");
    showMessage("Comment added");
  };
  return (
    <CommentForm label="Write a comment" text={text} onText={type} verb="Comment" send={send}>
      {pin ? (
        <label class="check">
          <input
            type="checkbox"
            checked={wantsPin}
            onChange={(event) => setWantsPin(event.currentTarget.checked)}
          />
          <span>
            Pin to <bdi>{pin.function}</bdi>
          </span>
        </label>
      ) : (
        <p class="hint">
          To pin the comment to a function, select a frame in another view, or mark one.
        </p>
      )}
    </CommentForm>
  );
}

/** Explains why the reader cannot write, and how to change that. */
function ReaderNote({ session }: { session: Session }) {
  if (isSignedIn(session))
    return (
      <p class="hint">
        Viewers can read comments. To write comments, ask an owner of your team to make you a
        member.
      </p>
    );
  return (
    <p class="hint">
      <a href={signInLink()}>Sign in</a> to write a comment. You need to be a member or an owner of
      a team.
    </p>
  );
}

/* ---- the pane ---- */

export interface CommentsProps {
  context: PaneContext;
  isAlone: boolean;
  share: Share;
  session: Session | null;
  /** Called with the number of comments once it is known. */
  onCount: (count: number) => void;
  /** Called with the paths that the loaded comments are pinned to. */
  onPins: (hashes: string[]) => void;
}

export function CommentsPane({ context, isAlone, share, session, onCount, onPins }: CommentsProps) {
  const { listed, problem, loadMore, put, drop } = useComments(share.id);
  const heading = useRef<HTMLHeadingElement>(null);
  const mayWrite = mayComment(session);
  const count = listed?.comments.length ?? 0;
  useEffect(() => {
    if (listed && !listed.cursor) onCount(count);
    if (listed) onPins(listed.comments.flatMap(({ pin }) => (pin ? [pin.hash] : [])));
  }, [listed]);
  const onDeleted = (n: number) => {
    drop(n);
    heading.current?.focus();
  };
  return (
    <div class="talk" tabIndex={0} role="region" aria-label={`Comments on ${nameOf(share)}`}>
      <div class="talk-body">
        {listed && (
          <h2 ref={heading} tabIndex={-1}>
            {count === 0
              ? "No comments yet"
              : `${count}${listed.cursor ? " or more" : ""} ` +
                (count === 1 ? "comment" : "comments")}
          </h2>
        )}
        {listed && count > 0 && (
          <ol class="talk-list">
            {listed.comments.map((comment) => (
              <CommentItem
                key={comment.n}
                {...{ comment, share, context, isAlone }}
                onChanged={put}
                onDeleted={() => onDeleted(comment.n)}
              />
            ))}
          </ol>
        )}
        {!listed && !problem && <Loading label="Loading the comments" />}
        <ErrorLine error={problem} />
        {(problem || listed?.cursor) && (
          <div class="actions start">
            <Button onClick={loadMore}>{problem ? "Try again" : "Show more"}</Button>
          </div>
        )}
        {listed && mayWrite && <NewComment {...{ share, context }} onWritten={put} />}
        {listed && session && !mayWrite && <ReaderNote session={session} />}
      </div>
    </div>
  );
}

/* delete: the page of a delete link, also for users who may delete a share without one. */
import { useEffect, useState } from "preact/hooks";
import { deleteShare, type Problem, type Session, type Share } from "../../api/api.ts";
import { deleteTokenOf, removeStoredShare } from "../../model/storage/browser_storage.ts";
import { asProblem, Button, ErrorLine, Loading, ProblemView, useTitle } from "../../ui/kit.tsx";
import { isSignedIn, Shell, signInLink } from "../../ui/shell.tsx";
import { nameOf, useShare } from "./share.tsx";

/** Explains to a user who may not delete the share what is needed for that. */
function NeededPermission({ id, session }: { id: string; session: Session | null }) {
  return (
    <>
      <h1>You need the delete link</h1>
      <p>
        The delete link was shown when this profile was shared. Open that link, or open this page in
        the browser that shared the profile.{" "}
        {isSignedIn(session)
          ? `You are signed in as ${session?.user?.email}, who cannot delete this profile. ` +
            "Only members and owners of its team can."
          : "If the profile belongs to your team, sign in as a member or an owner."}
      </p>
      <div class="actions">
        <a class="button plain" href={`/p/${id}`}>
          <span>View the profile</span>
        </a>
        {!isSignedIn(session) && (
          <a class="button primary" href={signInLink()}>
            <span>Sign in</span>
          </a>
        )}
      </div>
    </>
  );
}

function Done() {
  return (
    <>
      <h1>Profile deleted</h1>
      <p>The link no longer works. The file is removed within a minute.</p>
      <div class="actions">
        <a class="button primary" href="/">
          <span>Share another profile</span>
        </a>
      </div>
    </>
  );
}

function ConfirmDeletion({
  id,
  share,
  token,
  onDone,
}: {
  id: string;
  share: Share | null;
  token: string;
  onDone: () => void;
}) {
  const [error, setError] = useState<Problem | null>(null);
  const remove = async () => {
    try {
      await deleteShare(id, token);
      removeStoredShare(id);
      onDone();
    } catch (caught) {
      setError(asProblem(caught));
    }
  };
  return (
    <>
      <h1>Delete {share ? `“${nameOf(share)}”` : "this profile"}?</h1>
      <p>The link stops working for everyone, and the file is removed. This cannot be undone.</p>
      <ErrorLine error={error} />
      <div class="actions">
        <a class="button plain" href={`/p/${id}`}>
          <span>Keep profile</span>
        </a>
        <Button look="danger" icon="trash" onClick={remove}>
          Delete forever
        </Button>
      </div>
    </>
  );
}

export function DeletePage({ id, session }: { id: string; session: Session | null }) {
  const known = () => location.hash.slice(1) || deleteTokenOf(id);
  const [token, setToken] = useState(known);
  const { share, problem, reload } = useShare(id);
  const [isDone, setDone] = useState(false);
  useTitle("Delete");
  // A delete link that is opened on this page differs only by its fragment.
  useEffect(() => {
    const follow = () => setToken(known());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  // A delete link also works for a user who may not see the share, such as one that asks for a
  // password.
  const mayNotLook = problem?.status === 401;
  const mayDelete = token !== "" || share?.can_edit;
  if (problem && !mayNotLook && !isDone)
    return (
      <Shell session={session}>
        <ProblemView problem={problem} onRetry={reload} />
      </Shell>
    );
  if (!session || !(share || problem))
    return (
      <Shell session={session}>
        <Loading />
      </Shell>
    );
  return (
    <Shell session={session}>
      <section class="card narrow">
        {isDone ? (
          <Done />
        ) : mayDelete ? (
          <ConfirmDeletion id={id} share={share} token={token} onDone={() => setDone(true)} />
        ) : (
          <NeededPermission id={id} session={session} />
        )}
      </section>
    </Shell>
  );
}

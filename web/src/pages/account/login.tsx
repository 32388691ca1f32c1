/* login: sign-in with a password or a one-time code; accepting an invitation. */
import { useEffect, useState } from "preact/hooks";
import { Problem, signIn, type Session } from "../../api/api.ts";
import { addressWithin } from "../../model/account/sign_in_redirect.ts";
import { asProblem, Button, ErrorLine, Field, useTitle } from "../../ui/kit.tsx";
import { isSignedIn, Shell } from "../../ui/shell.tsx";
import { acceptInvitation, getInvitation, type Invited } from "../../api/team_api.ts";

/** The page to open after the sign-in: a path of this site, never another site. */
function nextPage(): string {
  return addressWithin(
    location.origin,
    new URLSearchParams(location.search).get("next") ?? "",
    "/shares",
  );
}

/**
 * Opening another link of the same page changes only the fragment, so the page must start again.
 */
function useLinkInHash(): void {
  useEffect(() => {
    const begin = () => location.reload();
    addEventListener("hashchange", begin);
    return () => removeEventListener("hashchange", begin);
  }, []);
}

export function LoginPage({ session }: { session: Session | null }) {
  const [code] = useState(() => new URLSearchParams(location.hash.slice(1)).get("code") ?? "");
  const [isTryingCode, setTryingCode] = useState(code !== "");
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [error, setError] = useState<Problem | null>(null);
  useTitle("Sign in");
  useLinkInHash();
  useEffect(() => {
    if (!code) return;
    history.replaceState(null, "", location.pathname + location.search); // a code can be used once
    signIn({ code }).then(
      () => location.replace(nextPage()),
      (caught) => {
        setTryingCode(false);
        const problem = asProblem(caught);
        setError(
          problem.status === 401
            ? new Problem(
                401,
                problem.kind,
                "",
                "This sign-in link was already used or has expired.",
                "",
                null,
              )
            : problem,
        );
      },
    );
  }, []);
  const send = async (event: Event) => {
    event.preventDefault();
    setError(null);
    try {
      await signIn({ email, password });
      location.replace(nextPage());
    } catch (caught) {
      setError(asProblem(caught));
    }
  };
  return (
    <Shell session={session}>
      <section class="card narrow">
        <h1>{isTryingCode ? "Signing you in…" : "Sign in"}</h1>
        {!isTryingCode && (
          <form onSubmit={send}>
            <Field label="E-mail">
              {(id) => (
                <input
                  id={id}
                  type="email"
                  autocomplete="username"
                  required
                  autofocus
                  value={email}
                  onInput={(event) => setEmail(event.currentTarget.value)}
                />
              )}
            </Field>
            <Field label="Password">
              {(id) => (
                <input
                  id={id}
                  type="password"
                  autocomplete="current-password"
                  required
                  value={password}
                  onInput={(event) => setPassword(event.currentTarget.value)}
                />
              )}
            </Field>
            <ErrorLine error={error} />
            <div class="actions">
              <Button look="primary" type="submit">
                Sign in
              </Button>
            </div>
            <p class="hint">
              No account? Ask an owner of your team for an invitation. No password? Ask the operator
              for a sign-in link.
            </p>
          </form>
        )}
      </section>
    </Shell>
  );
}

/** Loads the invitation, so that an invalid one is reported before the form is filled in. */
function useInvitation(token: string): { invitation: Invited | null; problem: Problem | null } {
  const [invitation, setInvitation] = useState<Invited | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    if (token) getInvitation(token).then(setInvitation, (caught) => setProblem(asProblem(caught)));
  }, [token]);
  return { invitation, problem };
}

function SpentInvitation({ session }: { session: Session | null }) {
  return (
    <>
      <p>
        This invitation was already used, was withdrawn or has expired. If you have joined with it,
        sign in. Otherwise ask an owner of the team for a new one.
      </p>
      <div class="actions start">
        {isSignedIn(session) ? (
          <a class="button primary" href="/shares">
            <span>The team’s profiles</span>
          </a>
        ) : (
          <a class="button primary" href="/login">
            <span>Sign in</span>
          </a>
        )}
      </div>
    </>
  );
}

function JoinForm({
  token,
  invitation,
  onSpent,
}: {
  token: string;
  invitation: Invited;
  onSpent: () => void;
}) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [error, setError] = useState<Problem | null>(null);
  const send = async (event: Event) => {
    event.preventDefault();
    setError(null);
    try {
      await acceptInvitation(token, name, password);
      location.replace("/shares");
    } catch (caught) {
      const problem = asProblem(caught);
      if (problem.status === 404)
        onSpent(); // the link was used elsewhere, withdrawn, or has expired meanwhile
      else setError(problem);
    }
  };
  return (
    <form onSubmit={send}>
      <p>
        You are invited as a {invitation.role}, and sign in as <b>{invitation.email}</b>. Choose a
        display name and a password.
      </p>
      <Field label="Name">
        {(id) => (
          <input
            id={id}
            autocomplete="name"
            required
            maxLength={100}
            autofocus
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        )}
      </Field>
      <Field
        label="Password"
        hint="At least 10 characters. A passphrase of several words is easier to remember."
      >
        {(id) => (
          <input
            id={id}
            type="password"
            autocomplete="new-password"
            required
            minLength={10}
            value={password}
            onInput={(event) => setPassword(event.currentTarget.value)}
          />
        )}
      </Field>
      {invitation.queries_public_debuginfod && (
        <p class="hint">
          When a profile has addresses without names, this server looks them up on public debuginfod
          servers. These receive the build ids of your team’s binaries, nothing else. Owners can
          turn this off: <code>perfolio debuginfo upstreams off</code>.
        </p>
      )}
      <ErrorLine error={error} />
      <div class="actions">
        <Button look="primary" type="submit">
          Join
        </Button>
      </div>
    </form>
  );
}

export function InvitePage({ session }: { session: Session | null }) {
  const [token] = useState(() => decodeURIComponent(location.hash.slice(1)));
  const [isSpent, setSpent] = useState(false);
  const { invitation, problem } = useInvitation(token);
  useTitle("Invitation");
  useLinkInHash();
  const isOver = isSpent || problem?.status === 404;
  return (
    <Shell session={session}>
      <section class="card narrow">
        <h1>{isOver ? "This invitation is no longer valid" : "Join your team"}</h1>
        {!token ? (
          <p>
            This link is incomplete: it must end with # and a long code. Copy it again from the
            invitation.
          </p>
        ) : isOver ? (
          <SpentInvitation session={session} />
        ) : invitation ? (
          <JoinForm token={token} invitation={invitation} onSpent={() => setSpent(true)} />
        ) : (
          <ErrorLine error={problem} />
        )}
      </section>
    </Shell>
  );
}

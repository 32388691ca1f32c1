/* share_prompts: asks for the password of a share, or to sign in. */
import { useState } from "preact/hooks";
import { Problem, unlockShare } from "../../api/api.ts";
import { asProblem, Button, ErrorLine, Field, useTitle } from "../../ui/kit.tsx";
import { Icon } from "../../ui/icons.tsx";
import { signInLink } from "../../ui/shell.tsx";

function PasswordPrompt({ id, onOpen }: { id: string; onOpen: () => void }) {
  const [password, setPassword] = useState("");
  const [error, setError] = useState<Problem | null>(null);
  useTitle("Password");
  const send = async (event: Event) => {
    event.preventDefault();
    setError(null);
    try {
      await unlockShare(id, password);
      onOpen();
    } catch (caught) {
      const problem = asProblem(caught);
      setError(
        problem.status === 401 || problem.status === 403
          ? new Problem(
              problem.status,
              problem.kind,
              "",
              "The password is wrong. Try again.",
              "",
              null,
            )
          : problem,
      );
    }
  };
  return (
    <section class="card narrow">
      <h1>
        <Icon name="lock" /> This profile is protected by a password
      </h1>
      <p>Ask the person who sent you the link for the password.</p>
      <form onSubmit={send}>
        <Field label="Password">
          {(field) => (
            <input
              id={field}
              type="password"
              required
              autocomplete="off"
              autofocus
              value={password}
              onInput={(event) => setPassword(event.currentTarget.value)}
            />
          )}
        </Field>
        <ErrorLine error={error} />
        <div class="actions">
          <Button look="primary" type="submit">
            Open
          </Button>
        </div>
      </form>
    </section>
  );
}

/**
 * A 401 requires a password or, for a team's share, a sign-in. Only the server's text distinguishes
 * the two.
 */
const isForTeam = (problem: Problem) =>
  problem.status === 401 && !problem.detail.includes("password");

function TeamPrompt() {
  useTitle("For a team");
  return (
    <section class="card narrow">
      <h1>
        <Icon name="lock" /> This profile belongs to a team
      </h1>
      <p>Sign in to see whether you have access.</p>
      <div class="actions">
        <a class="button primary" href={signInLink()}>
          <span>Sign in</span>
        </a>
      </div>
    </section>
  );
}

export function SharePrompt({
  id,
  problem,
  onOpen,
}: {
  id: string;
  problem: Problem;
  onOpen: () => void;
}) {
  return isForTeam(problem) ? <TeamPrompt /> : <PasswordPrompt id={id} onOpen={onOpen} />;
}

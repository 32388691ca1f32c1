/* password: the section to change or set the own password. */
import { useState } from "preact/hooks";
import type { Problem } from "../../api/api.ts";
import * as api from "../../api/team_api.ts";
import { asProblem, Button, ErrorLine, Field, showMessage } from "../../ui/kit.tsx";
import { notifyChanged } from "./use_part.tsx";
import { Section } from "./section.tsx";

export function Password({ hasOld }: { hasOld: boolean }) {
  const [old, setOld] = useState("");
  const [fresh, setFresh] = useState("");
  const [error, setError] = useState<Problem | null>(null);
  const send = async (event: Event) => {
    event.preventDefault();
    setError(null);
    try {
      await api.changePassword(old, fresh);
      setOld("");
      setFresh("");
      showMessage("Password changed");
      notifyChanged();
    } catch (caught) {
      setError(asProblem(caught));
    }
  };
  return (
    <Section
      id="password"
      title="Password"
      text={
        hasOld
          ? "Changing your password ends your other sessions."
          : "Set a password to sign in without a one-time link."
      }
    >
      <form onSubmit={send}>
        <div class="field-row">
          {hasOld && (
            <Field label="Old password">
              {(id) => (
                <input
                  id={id}
                  type="password"
                  autocomplete="current-password"
                  required
                  value={old}
                  onInput={(event) => setOld(event.currentTarget.value)}
                />
              )}
            </Field>
          )}
          <Field label="New password">
            {(id) => (
              <input
                id={id}
                type="password"
                autocomplete="new-password"
                required
                minLength={10}
                value={fresh}
                onInput={(event) => setFresh(event.currentTarget.value)}
              />
            )}
          </Field>
        </div>
        <ErrorLine error={error} />
        <div class="actions start">
          <Button look="primary" type="submit">
            {hasOld ? "Change password" : "Set password"}
          </Button>
        </div>
      </form>
    </Section>
  );
}

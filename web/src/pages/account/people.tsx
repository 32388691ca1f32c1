/* people: the section with the users of the team and its invitations. */
import { useState } from "preact/hooks";
import { formatAgo } from "../../model/text/units.ts";
import * as api from "../../api/team_api.ts";
import { Button, CopyField, Field, IconButton, Loading, Select } from "../../ui/kit.tsx";
import { ConfirmButton } from "../../ui/confirm_button.tsx";
import { RefusalLine, usePart } from "./use_part.tsx";
import { Section } from "./section.tsx";

const roleChoices = [
  { value: "viewer", label: "Viewer: reads" },
  { value: "member", label: "Member: shares" },
  { value: "owner", label: "Owner: manages" },
];

function Invite({ onMade }: { onMade: (invitation: api.Invitation) => void }) {
  const [email, setEmail] = useState("");
  const [role, setRole] = useState("member");
  const { refusal, submit, isSending } = usePart(api.invitationsPart);
  const send = async (event: Event) => {
    event.preventDefault();
    const made = await submit(
      (version) => api.invite(email, role, version),
      "Invitation link created",
    );
    if (!made) return;
    onMade(made.response);
    setEmail("");
  };
  return (
    <form class="inset" aria-busy={isSending} onSubmit={send}>
      <div class="field-row">
        <Field label="Invite by e-mail address">
          {(id) => (
            <input
              id={id}
              type="email"
              required
              value={email}
              onInput={(event) => setEmail(event.currentTarget.value)}
            />
          )}
        </Field>
        <Field label="As">
          {(id) => <Select id={id} value={role} choices={roleChoices} onChange={setRole} />}
        </Field>
      </div>
      <RefusalLine refusal={refusal} />
      <div class="actions start">
        <Button look="primary" type="submit">
          Create invitation link
        </Button>
      </div>
    </form>
  );
}

type Attempt<T> = ReturnType<typeof usePart<T>>["attempt"];

interface MemberProps {
  user: api.User;
  attempt: Attempt<{ users: api.User[] }>;
}

function Member({ user, attempt }: MemberProps) {
  return (
    <li>
      <span class="grow">
        <strong>{user.name || user.email}</strong>
        <span class="hint">
          {user.name ? `${user.email} · ` : ""}
          {user.last_sign_in_at
            ? `signed in ${formatAgo(user.last_sign_in_at)}`
            : "never signed in"}
        </span>
      </span>
      {!user.is_me ? (
        <>
          <Select
            label={`Role of ${user.email}`}
            value={user.role}
            choices={roleChoices}
            onChange={(role) =>
              void attempt((version) => api.changeRole(user.id, role, version), "Role changed")
            }
          />
          <ConfirmButton
            label="Remove"
            what={user.email}
            again="Remove from the team"
            onSure={() =>
              void attempt((version) => api.removeUser(user.id, version), `${user.email} removed`)
            }
          />
        </>
      ) : (
        <em>{user.role}</em>
      )}
    </li>
  );
}

interface InvitedProps {
  invitation: api.Invitation;
  attempt: Attempt<{ invitations: api.Invitation[] }>;
}

function Invited({ invitation, attempt }: InvitedProps) {
  return (
    <li>
      <span class="grow">
        <strong>{invitation.email}</strong>
        <span class="hint">
          invited as {invitation.role} · expires {formatAgo(invitation.expires_at)}
        </span>
      </span>
      <IconButton
        icon="close"
        label={`Withdraw the invitation of ${invitation.email}`}
        onClick={() =>
          void attempt(() => api.withdrawInvitation(invitation.id), "Invitation withdrawn")
        }
      />
    </li>
  );
}

export function People() {
  const people = usePart(api.peoplePart);
  const invitations = usePart(api.invitationsPart);
  const [made, setMade] = useState<api.Invitation | null>(null);
  return (
    <Section id="people" title="People" text="Owners manage, members share, viewers read.">
      {made?.url && (
        <div class="made">
          <p>
            Send this link to <strong>{made.email}</strong>. It works once.
          </p>
          <CopyField text={made.url} what="Invitation link" isSecret />
        </div>
      )}
      <Invite onMade={setMade} />
      <RefusalLine refusal={people.refusal ?? invitations.refusal} />
      {!people.value ? (
        !people.refusal && <Loading />
      ) : (
        <ul class="rows-list">
          {people.value.users.map((user) => (
            <Member key={user.id} user={user} attempt={people.attempt} />
          ))}
          {invitations.value?.invitations.map((invitation) => (
            <Invited
              key={`i${invitation.id}`}
              invitation={invitation}
              attempt={invitations.attempt}
            />
          ))}
        </ul>
      )}
    </Section>
  );
}

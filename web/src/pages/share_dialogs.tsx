/* share_dialogs: what a share's page opens: its settings, what to compare it with, a report. */
import { useState } from "preact/hooks";
import { editShare, reportShare, type Problem, type Session, type Share, type ShareSettings } from "../api.ts";
import { deleteTokenOf, listRemembered } from "../model/remembered.ts";
import { formatAgo } from "../model/units.ts";
import { asProblem, Button, Dialog, ErrorLine, Field, say } from "../ui/kit.tsx";
import { Icon } from "../ui/icons.tsx";
import { isSignedIn } from "../ui/shell.tsx";
import { cleanSettings, SettingsForm } from "./settings_form.tsx";
import type { Opened } from "./share.tsx";

function EditDialog({ share, session, onSaved, onClose }: { share: Share; session: Session | null; onSaved: () => void; onClose: () => void }) {
  const [settings, setSettings] = useState<ShareSettings>({ title: share.title, description: share.description, visibility: share.visibility });
  const [error, setError] = useState<Problem | null>(null);
  const save = async (event: Event) => {
    event.preventDefault();
    const patch: ShareSettings = { ...cleanSettings(settings), title: settings.title ?? "", description: settings.description ?? "" };
    if (patch.visibility === share.visibility && !patch.password) delete patch.visibility;
    try {
      await editShare(share.id, patch, deleteTokenOf(share.id));
      say("Saved");
      onSaved();
    } catch (caught) {
      setError(asProblem(caught));
    }
  };
  return (
    <Dialog title="Share settings" onClose={onClose}>
      <form onSubmit={save}>
        <SettingsForm
          settings={settings}
          hasTeam={isSignedIn(session)}
          keepExpiry={share.expires_at ? `As it is: ${formatAgo(share.expires_at)}` : "As it is: never"}
          onChange={setSettings}
        />
        <ErrorLine error={error} />
        <div class="actions">
          <a class="button danger" href={`/p/${share.id}/delete${deleteTokenOf(share.id) ? "#" + deleteTokenOf(share.id) : ""}`}>
            <Icon name="trash" />
            <span>Delete…</span>
          </a>
          <Button look="primary" type="submit">Save</Button>
        </div>
      </form>
    </Dialog>
  );
}

/** The id in what was pasted: a link to a share, or the id alone. */
export function idIn(text: string): string {
  return /(?:^|\/p\/)([0-9A-Za-z]{22})(?:[^0-9A-Za-z]|$)/.exec(text.trim())?.[1] ?? "";
}

function CompareDialog({ share, onClose }: { share: Share; onClose: () => void }) {
  const [text, setText] = useState("");
  const others = listRemembered().filter((entry) => entry.id !== share.id).slice(0, 6);
  const other = idIn(text);
  const go = (event: Event) => {
    event.preventDefault();
    if (other) location.assign(`/d/${other}..${share.id}`);
  };
  return (
    <Dialog title="Compare with another profile" onClose={onClose}>
      <form onSubmit={go}>
        <Field label="Link of the profile from before" hint="This one is the side after; sides can be swapped later.">
          {(id) => <input id={id} value={text} placeholder={`${location.origin}/p/…`} onInput={(event) => setText(event.currentTarget.value)} />}
        </Field>
        {others.length > 0 && (
          <ul class="choices">
            {others.map((entry) => (
              <li key={entry.id}>
                <a href={`/d/${entry.id}..${share.id}`}>
                  {entry.title} <em>{formatAgo(entry.createdAt)}</em>
                </a>
              </li>
            ))}
          </ul>
        )}
        <div class="actions">
          <Button look="primary" type="submit" disabled={!other}>Compare</Button>
        </div>
      </form>
    </Dialog>
  );
}

function ReportDialog({ share, onClose }: { share: Share; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const [error, setError] = useState<Problem | null>(null);
  const send = async (event: Event) => {
    event.preventDefault();
    try {
      await reportShare(share.id, reason);
      say("Reported. Thank you.");
      onClose();
    } catch (caught) {
      setError(asProblem(caught));
    }
  };
  return (
    <Dialog title="Report this profile" onClose={onClose}>
      <form onSubmit={send}>
        <Field label="What is wrong with it?" hint="The operator of this server reads it.">
          {(id) => <textarea id={id} rows={3} required maxLength={2000} value={reason} onInput={(event) => setReason(event.currentTarget.value)} />}
        </Field>
        <ErrorLine error={error} />
        <div class="actions">
          <Button look="primary" type="submit" disabled={!reason.trim()}>Report</Button>
        </div>
      </form>
    </Dialog>
  );
}

interface ShareDialogProps {
  opened: Opened;
  share: Share;
  session: Session | null;
  onChanged: () => void;
  onClose: () => void;
}

export function ShareDialog({ opened, share, session, onChanged, onClose }: ShareDialogProps) {
  if (opened === "compare") return <CompareDialog share={share} onClose={onClose} />;
  if (opened === "report") return <ReportDialog share={share} onClose={onClose} />;
  return <EditDialog share={share} session={session} onClose={onClose} onSaved={() => (onClose(), onChanged())} />;
}

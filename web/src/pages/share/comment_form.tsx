/*
 * comment_form: edits the text of a new or existing comment, with its limit and the server's
 * errors.
 */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Problem } from "../../api/api.ts";
import { byteCount, maxTextBytes } from "../../api/comments_api.ts";
import { formatCount } from "../../model/text/units.ts";
import { asProblem, Button, ErrorLine, Field } from "../../ui/kit.tsx";

interface CommentFormProps {
  label: string;
  text: string;
  onText: (text: string) => void;
  /** The text of the button. */
  verb: string;
  send: () => Promise<void>;
  onCancel?: () => void;
  children?: ComponentChildren;
}

export function CommentForm({
  label,
  text,
  onText,
  verb,
  send,
  onCancel,
  children,
}: CommentFormProps) {
  const [error, setError] = useState<Problem | null>(null);
  const [isSending, setSending] = useState(false);
  const bytes = byteCount(text);
  const isTooLong = bytes > maxTextBytes;
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isSending || isTooLong || !text.trim()) return;
    setError(null);
    setSending(true);
    try {
      await send();
    } catch (caught) {
      setError(asProblem(caught));
    }
    setSending(false);
  };
  const press = (event: KeyboardEvent & { currentTarget: HTMLTextAreaElement }) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey))
      event.currentTarget.form?.requestSubmit();
    if (event.key === "Escape") onCancel?.();
  };
  const left = maxTextBytes - bytes;
  return (
    <form onSubmit={submit}>
      <Field
        label={label}
        hint={
          <span class={isTooLong ? "too-long" : ""} role={isTooLong ? "alert" : undefined}>
            {isTooLong
              ? `${formatCount(-left)} bytes too long`
              : left < 1000
                ? `${formatCount(left)} bytes left`
                : "Markdown"}
          </span>
        }
      >
        {(id) => (
          <textarea
            id={id}
            rows={3}
            value={text}
            autofocus={Boolean(onCancel)}
            onInput={(event) => onText(event.currentTarget.value)}
            onKeyDown={press}
          />
        )}
      </Field>
      {children}
      <ErrorLine error={error} />
      <div class="actions start">
        <Button look="primary" type="submit" disabled={isSending || isTooLong || !text.trim()}>
          {verb}
        </Button>
        {onCancel && <Button onClick={onCancel}>Cancel</Button>}
      </div>
    </form>
  );
}

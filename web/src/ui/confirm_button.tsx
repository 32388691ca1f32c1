/*
 * confirm_button: a button that asks for confirmation in place before an action that cannot be
 * undone.
 */
import { useState } from "preact/hooks";
import { Button } from "./kit.tsx";

interface ConfirmButtonProps {
  icon?: Parameters<typeof Button>[0]["icon"];
  /** The text before and after the first press. */
  label: string;
  again: string;
  /** In a list: the object of the action. */
  what?: string;
  onSure: () => void;
}

export function ConfirmButton({ icon, label, again, what, onSure }: ConfirmButtonProps) {
  const [isSure, setSure] = useState(false);
  const press = () => {
    setSure(!isSure);
    if (isSure) onSure();
  };
  return (
    <Button
      look={isSure ? "danger" : "quiet"}
      icon={icon}
      aria-label={what && `${isSure ? again : label}: ${what}`}
      onClick={press}
      onBlur={() => setSure(false)}
    >
      {isSure ? again : label}
    </Button>
  );
}

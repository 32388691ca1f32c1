/* sure_button: asks once more in place before it does what cannot be undone. */
import { useState } from "preact/hooks";
import { Button } from "./kit.tsx";

interface SureButtonProps {
  icon?: Parameters<typeof Button>[0]["icon"];
  /** What it says, and what it says when it was pressed once. */
  label: string;
  again: string;
  /** Of several that stand in a list: to what it is done. */
  what?: string;
  onSure: () => void;
}

export function SureButton({ icon, label, again, what, onSure }: SureButtonProps) {
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

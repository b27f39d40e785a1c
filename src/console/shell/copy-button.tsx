import { useState } from "preact/hooks";
import { copyText } from "./browser.ts";

interface CopyButtonProps {
  /** Text of the button. Default: Copy. */
  readonly title?: string;
  /** Rest of the text, for people who do not see where the button is. */
  readonly label: string;
  textOf(): string;
}

/** A button that copies a text, and says that it did. */
export function CopyButton({ title = "Copy", label, textOf }: CopyButtonProps) {
  const [state, setState] = useState<"ready" | "copied" | "failed">("ready");
  const copy = async () => {
    setState(
      await copyText(textOf()).then(
        () => "copied" as const,
        () => "failed" as const,
      ),
    );
    setTimeout(() => setState("ready"), 2_000);
  };
  return (
    <button type="button" class="quiet" onClick={() => void copy()}>
      <span role="status">{{ ready: title, copied: "Copied", failed: "Not copied" }[state]}</span>
      <span class="visually-hidden"> {label}</span>
    </button>
  );
}

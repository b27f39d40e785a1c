import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

interface DialogProps {
  readonly title: string;
  /** Whether it has rows of a table. Default: false. */
  readonly isWide?: boolean;
  readonly children: ComponentChildren;
  onClose(): void;
}

/** A modal dialog; its first field has the focus, Escape closes it, and the focus returns to where it was. */
export function Dialog({ title, isWide = false, children, onClose }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useLayoutEffect(() => {
    dialog.current?.showModal();
    dialog.current?.querySelector<HTMLElement>("form :is(input, select)")?.focus();
  }, []);
  return (
    <dialog ref={dialog} class={isWide ? "is-wide" : undefined} aria-labelledby={titleId} onClose={onClose}>
      <header class="dialog-head">
        <h2 id={titleId}>{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={() => dialog.current?.close()}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  );
}

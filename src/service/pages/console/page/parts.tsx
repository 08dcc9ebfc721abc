/** Small parts that the views share. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { explain } from "./api.ts";
import { absolute, ago, visible } from "./format.ts";

export function Time({ ms }: { readonly ms: number | undefined }) {
  if (ms === undefined) return <span class="soft">unknown</span>;
  return (
    <time dateTime={new Date(ms).toISOString()} title={absolute(ms)}>
      {ago(ms)}
    </time>
  );
}

/** Displays a text that a client or a login wrote. The text cannot hide anything or reorder the texts around it. */
export function Given({ text }: { readonly text: string }) {
  return <bdi>{visible(text)}</bdi>;
}

export const GivenOrNot = ({ text = "" }: { readonly text: string | undefined }) =>
  text === "" ? <span class="soft">not given</span> : <Given text={text} />;

/** Displays a text after another one, if it is not empty. */
export function Beside({ text }: { readonly text: string }) {
  if (text === "") return null;
  return (
    <>
      {" · "}
      <Given text={text} />
    </>
  );
}

export function Problem({ error, retry }: { readonly error: unknown; readonly retry?: () => void }) {
  const { title, text } = explain(error);
  return (
    <div class="notice bad" role="alert">
      <div>
        <strong>{title}</strong>
        <p>{text}</p>
      </div>
      {retry && (
        <button type="button" class="quiet" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Loading({ what }: { readonly what: string }) {
  return (
    <div class="loading" role="status">
      <span class="spinner" aria-hidden="true" />
      {what}
    </div>
  );
}

export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children !== undefined && <p>{children}</p>}
    </div>
  );
}

/** A view that consists of a hint alone. */
export function Hint({ title, text }: { readonly title: string; readonly text: string }) {
  return (
    <main>
      <Empty title={title}>{text}</Empty>
    </main>
  );
}

export const Forbidden = ({ title, scope }: { readonly title: string; readonly scope: string }) => (
  <Hint title={title} text={`You do not have the scope ${scope}.`} />
);

type HeadingsProps = { readonly names: readonly string[]; readonly children?: ComponentChildren };

/** The first row of a table. @param children further headings */
export function Headings({ names, children }: HeadingsProps) {
  return (
    <thead>
      <tr>
        {names.map((name) => (
          <th key={name} scope="col">
            {name}
          </th>
        ))}
        {children}
      </tr>
    </thead>
  );
}

type ConfirmProps = {
  readonly title: string;
  readonly action: string;
  /** What the button shows while the action runs. */
  readonly doing: string;
  /** Carries out the action. If it rejects, the dialog shows the error and stays open. */
  readonly onConfirm: () => Promise<void>;
  readonly onCancel: () => void;
  readonly children: ComponentChildren;
};

/** Asks for a confirmation before an action that cannot be undone. The browser keeps the focus inside the dialog, and Escape cancels. */
export function Confirm({ title, action, doing, onConfirm, onCancel, children }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  useEffect(() => dialog.current?.showModal(), []);
  const confirm = () => {
    setBusy(true);
    setError(undefined);
    onConfirm().catch((failure: unknown) => {
      setError(failure);
      setBusy(false);
    });
  };
  // The browser closes the dialog, and moves the focus back to where it was.
  const close = () => dialog.current?.close();
  return (
    <dialog ref={dialog} aria-labelledby="confirm-title" onClose={onCancel}>
      <h2 id="confirm-title">{title}</h2>
      {children}
      {error !== undefined && <Problem error={error} />}
      <div class="actions">
        <button type="button" class="quiet" onClick={close}>
          Cancel
        </button>
        <button type="button" class="danger" disabled={busy} onClick={confirm}>
          {busy ? doing : action}
        </button>
      </div>
    </dialog>
  );
}

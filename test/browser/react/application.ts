/** A React application around the kit: rendered on a server by the test, hydrated in the browser. */
import { createElement, type ReactNode, StrictMode } from "react";
import { useSession } from "../../../src/browser/react.ts";
import type { Initial, Session } from "../../../src/browser/session.ts";

type Props = {
  readonly session: Session;
  readonly initial?: Initial | undefined;
  readonly rendered?: (state: string) => void;
};

function Account({ session, initial, rendered }: Props): ReactNode {
  const { state, claims } = useSession(session, initial);
  rendered?.(state);
  return createElement("p", { className: "account" }, `${state} ${claims?.sub ?? ""}`);
}

/** @param count how many components use the session */
export function Application({ count, ...props }: Props & { readonly count: number }): ReactNode {
  const accounts = Array.from({ length: count }, (_, key) => createElement(Account, { key, ...props }));
  return createElement(StrictMode, null, createElement("main", null, accounts));
}

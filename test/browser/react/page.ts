/** Runs in the page: hydrates the application, and records the warnings and errors of React. */
import { createElement } from "react";
import { hydrateRoot } from "react-dom/client";
import { createSession, type Initial } from "../../../src/browser/index.ts";
import { Application } from "./application.ts";

declare const document: { getElementById(id: string): Element };

const session = createSession({ hintCookie: "signed_in" });
const notes = { problems: [] as string[], states: [] as string[], subscriptions: 0 };

/** A wrapper of the page's session that counts the listeners. */
const counted = {
  ...session,
  get snapshot() {
    return session.snapshot;
  },
  subscribe(listener: () => void) {
    notes.subscriptions++;
    const stop = session.subscribe(listener);
    return () => {
      notes.subscriptions--;
      stop();
    };
  },
};

const application = (count: number, initial?: Initial) =>
  createElement(Application, { session: counted, initial, count, rendered: (state) => notes.states.push(state) });

// React reports problems by `console.error`: a mismatch during hydration, snapshots that are not cached, and updates of unmounted
// components.
console.error = (...texts: unknown[]) => notes.problems.push(texts.join(" "));
const root = hydrateRoot(document.getElementById("root"), application(1), {
  onRecoverableError: (error) => notes.problems.push(String(error)),
  onUncaughtError: (error) => notes.problems.push(String(error)),
});

const show = (count: number, initial?: Initial) => root.render(application(count, initial));
Object.assign(globalThis, { session, notes, show, ready: true });

/** The frame of the page: it shows who is signed in, and one view. The address determines the view, so that back and forward work. */
import { useCallback, useEffect, useState } from "preact/hooks";
import { type Me, SIGNED_OUT, signOut, whoAmI } from "./api.ts";
import { LiveView } from "./live.tsx";
import { Loading, Problem } from "./parts.tsx";
import { SessionsView } from "./sessions.tsx";
import { SignIn } from "./sign-in.tsx";
import { SignalsView } from "./signals.tsx";

type State =
  | { readonly is: "asking" }
  | { readonly is: "out"; readonly expired: boolean }
  | { readonly is: "in"; readonly me: Me }
  | { readonly is: "failed"; readonly error: unknown };

/** Reads the view from the address: `#/live`, `#/signals`, or `#/sessions?subject=…`. */
function readRoute(): { readonly view: string; readonly subject: string } {
  const [view = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { view, subject: new URLSearchParams(query).get("subject") ?? "" };
}

function useRoute() {
  const [route, setRoute] = useState(readRoute);
  useEffect(() => {
    const onChange = () => setRoute(readRoute());
    addEventListener("hashchange", onChange);
    return () => removeEventListener("hashchange", onChange);
  }, []);
  return route;
}

export function App() {
  const [state, setState] = useState<State>({ is: "asking" });
  const route = useRoute();
  const ask = useCallback(() => {
    setState({ is: "asking" });
    whoAmI().then(
      (me) => setState(me === undefined ? { is: "out", expired: false } : { is: "in", me }),
      (error: unknown) => setState({ is: "failed", error }),
    );
  }, []);
  useEffect(ask, [ask]);
  const onExpired = useCallback(() => setState({ is: "out", expired: true }), []);
  useEffect(() => {
    addEventListener(SIGNED_OUT, onExpired);
    return () => removeEventListener(SIGNED_OUT, onExpired);
  }, [onExpired]);
  useEffect(() => {
    // When the page becomes visible, it asks again who is signed in: another tab may have signed out, or the token may have lost a scope.
    const look = () => {
      if (document.visibilityState !== "visible") return;
      whoAmI().then(
        (me) =>
          setState((was) =>
            was.is !== "in" ? was : me === undefined ? { is: "out", expired: true } : { is: "in", me },
          ),
        () => {},
      );
    };
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);

  if (state.is === "asking") return <Loading what="Loading…" />;
  if (state.is === "failed") {
    return (
      <main class="narrow">
        <Problem error={state.error} retry={ask} />
      </main>
    );
  }
  if (state.is === "out") return <SignIn expired={state.expired} onSignedIn={(me) => setState({ is: "in", me })} />;

  const leave = () =>
    signOut().then(
      () => setState({ is: "out", expired: false }),
      // The sign-in continues, so the page must not look as if it had ended.
      (error: unknown) => setState({ is: "failed", error }),
    );
  const view = route.view === "live" || route.view === "signals" ? route.view : "sessions";
  return (
    <>
      <Header me={state.me} view={view} onLeave={leave} />
      {view === "live" ? (
        <LiveView me={state.me} />
      ) : view === "signals" ? (
        <SignalsView me={state.me} />
      ) : (
        <SessionsView key={route.subject} me={state.me} wanted={route.subject} />
      )}
    </>
  );
}

type HeaderProps = { readonly me: Me; readonly view: "sessions" | "live" | "signals"; readonly onLeave: () => void };

function Header({ me, view, onLeave }: HeaderProps) {
  return (
    <header>
      <span class="brand">
        <img src="/console/icon.svg" alt="" width="24" height="24" />
        <b>Session console</b>
      </span>
      <nav aria-label="Views">
        {["Sessions", "Live", "Signals"].map((title) => (
          <a
            key={title}
            href={`#/${title.toLowerCase()}`}
            aria-current={view === title.toLowerCase() ? "page" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      <span class="who">
        <span class="soft" title={`Scopes: ${me.scopes.join(", ")}`}>
          <span class="beside">Signed in as </span>
          <b>{me.name}</b>
        </span>
        <button type="button" class="quiet" onClick={onLeave}>
          Sign out
        </button>
      </span>
    </header>
  );
}

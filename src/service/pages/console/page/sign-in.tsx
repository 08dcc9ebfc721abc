import { useEffect, useRef, useState } from "preact/hooks";
import { isSignedOut, type Me, providerTitle, signIn, signInByProvider } from "./api.ts";
import { Loading, Problem } from "./parts.tsx";

type Props = { readonly expired: boolean; readonly onSignedIn: (me: Me) => void };

type Way = { readonly provider: string | undefined };

export function SignIn({ expired, onSignedIn }: Props) {
  const [way, setWay] = useState<Way>();
  const [error, setError] = useState<unknown>();
  const ask = () => {
    setError(undefined);
    providerTitle().then((provider) => setWay({ provider }), setError);
  };
  useEffect(ask, []);
  if (way?.provider !== undefined) return <ByProvider expired={expired} provider={way.provider} />;
  if (way !== undefined) return <ByToken expired={expired} onSignedIn={onSignedIn} />;
  return error === undefined ? (
    <Loading what="Loading…" />
  ) : (
    <main class="narrow">
      <Problem error={error} retry={ask} />
    </main>
  );
}

const EXPIRED = "You have been signed out. Sign in again to go on.";

function ByProvider({ expired, provider }: { readonly expired: boolean; readonly provider: string }) {
  const [state, setState] = useState<"idle" | "busy" | "failed">("idle");
  const leave = () => {
    setState("busy");
    signInByProvider().catch(() => setState("failed"));
  };
  return (
    <main class="narrow">
      <div class="card">
        <h1>Session console</h1>
        <p class="soft">{expired ? EXPIRED : "Sign in with your account."}</p>
        {state === "failed" && (
          <p class="error" role="alert">
            {provider} does not respond. Try again.
          </p>
        )}
        <button type="button" class="primary" disabled={state === "busy"} onClick={leave}>
          {state === "busy" ? "Signing in…" : `Sign in with ${provider}`}
        </button>
        <p>You are signed out after 30 minutes without use, and after 8 hours.</p>
      </div>
    </main>
  );
}

function ByToken({ expired, onSignedIn }: Props) {
  const field = useRef<HTMLInputElement>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  useEffect(() => field.current?.focus(), []);

  async function submit(event: Event) {
    event.preventDefault();
    const token = field.current?.value.trim() ?? "";
    if (token === "") return;
    setBusy(true);
    setError(undefined);
    try {
      onSignedIn(await signIn(token));
    } catch (failure) {
      setError(failure);
      setBusy(false);
      field.current?.select();
    }
  }

  return (
    <main class="narrow">
      <form class="card" onSubmit={submit}>
        <h1>Session console</h1>
        <p class="soft">{expired ? EXPIRED : "Sign in with an admin token."}</p>
        <label for="token">Admin token</label>
        <input id="token" ref={field} type="password" autocomplete="off" spellcheck={false} required />
        {error !== undefined &&
          (isSignedOut(error) ? (
            <p class="error" role="alert">
              This is not an admin token of this service.
            </p>
          ) : (
            <Problem error={error} />
          ))}
        <button type="submit" class="primary" disabled={busy}>
          {busy ? "Signing in…" : "Sign in"}
        </button>
        <details>
          <summary>Which token, and which scopes?</summary>
          <p>
            On the embedded store a token is in <code>data/admin-token</code>. Otherwise it is one of{" "}
            <code>ADMIN_TOKENS</code> or of <code>ADMIN_TOKENS_FILE</code>.
          </p>
          <dl class="scopes">
            <dt>
              <code>sessions:read</code>
            </dt>
            <dd>find users, sessions and why they ended</dd>
            <dt>
              <code>sessions:revoke</code>
            </dt>
            <dd>end sessions</dd>
            <dt>
              <code>metrics</code>
            </dt>
            <dd>the live page</dd>
          </dl>
          <p>
            The token is not kept in this browser. You are signed out after 30 minutes without use, and after 8 hours.
          </p>
        </details>
      </form>
    </main>
  );
}

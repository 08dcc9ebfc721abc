import { useEffect, useRef, useState } from "preact/hooks";
import { isSignedOut, type Me, signIn } from "./api.ts";
import { Problem } from "./parts.tsx";

type Props = { readonly expired: boolean; readonly onSignedIn: (me: Me) => void };

export function SignIn({ expired, onSignedIn }: Props) {
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
        <p class="soft">
          {expired ? "You have been signed out. Sign in again to go on." : "Sign in with an admin token."}
        </p>
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

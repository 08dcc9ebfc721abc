"use client";

/** Displays what an action or a page has thrown. Of an error on the server, Next.js sends the browser the digest alone. */
export default function AccountError({ error, reset }: { readonly error: Error & { digest?: string }; readonly reset: () => void }) {
  const isUnavailable = error.digest === "session_unavailable";
  return (
    <main>
      <p role="alert">{isUnavailable ? "We cannot tell who is signed in at the moment." : "Something went wrong."}</p>
      <button type="button" onClick={reset}>
        Try again
      </button>
    </main>
  );
}

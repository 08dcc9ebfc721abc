import { returnPath } from "@session-service/server";
import { signIn } from "./actions";

type Props = { readonly searchParams: Promise<{ readonly next?: string; readonly failed?: string }> };

export default async function Login({ searchParams }: Props) {
  const { next, failed } = await searchParams;
  return (
    <main>
      <h1>Sign in</h1>
      {failed !== undefined && <p role="alert">That did not work. Try again.</p>}
      <form action={signIn}>
        <input type="hidden" name="next" value={returnPath(next, "/login")} />
        <label>
          Email <input name="email" type="email" autoComplete="username" required />
        </label>
        <label>
          Password <input name="password" type="password" autoComplete="current-password" required />
        </label>
        <button type="submit">Sign in</button>
      </form>
    </main>
  );
}

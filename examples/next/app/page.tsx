import Link from "next/link";
import { currentUser } from "../lib/sessions";

export default async function Home() {
  const user = await currentUser();
  return (
    <main>
      <h1>Notes</h1>
      <p id="state">{user.state}</p>
      {user.state === "active" && <p>Signed in as {user.claims.sub}</p>}
      {user.state === "unavailable" && <p>We cannot tell who is signed in at the moment. Try again soon.</p>}
      <Link href="/account">Account</Link>
    </main>
  );
}

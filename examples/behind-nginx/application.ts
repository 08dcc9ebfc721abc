/** An application that knows nothing of sessions. nginx passes on only the requests of users who are signed in, and says who they are. */
import { createServer } from "node:http";

const escaped = (text: string) => text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);

const server = createServer(({ headers }, response) => {
  const subject = decodeURIComponent(String(headers["x-auth-subject"]));
  // The link names the session of the page: another user may have signed in since.
  const signOut = `/v1/auth/sign-out?session_id=${encodeURIComponent(String(headers["x-auth-session"] ?? ""))}`;
  response.setHeader("content-type", "text/html; charset=utf-8");
  response.end(`<title>Orders</title><p>Signed in as <b>${escaped(subject)}</b>. <a href="${signOut}">Sign out</a>\n`);
});
server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1");

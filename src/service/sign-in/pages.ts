/** The pages between an application and a provider: the choice of a provider, and what went wrong. They have no script. */
import { hash } from "node:crypto";
import { type HttpResponse, respond } from "../../platform/listener/handler.ts";

export type SignInPage = {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly cookies?: readonly string[];
};

type Link = { readonly href: string; readonly text: string };

const STYLE = `
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 26rem; margin: 12vh auto; padding: 0 1.5rem; }
h1 { font-size: 1.4rem; }
ul { list-style: none; padding: 0; }
a.button { display: block; margin: .75rem 0; padding: .6rem 1rem; border: 1px solid; border-radius: .4rem; text-decoration: none; color: inherit; }
a:focus-visible { outline: 3px solid Highlight; outline-offset: 2px; }
`;

const escaped = (text: string) => text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);

/** @param brand a style sheet of the operator, after that of the pages */
export function createPages(brand = "") {
  const style = STYLE + brand;
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${hash("sha256", style, "base64")}'`,
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy,
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
  };

  function page(status: number, title: string, text: string, links: readonly Link[]): SignInPage {
    const items = links.map(
      ({ href, text: label }) => `<li><a class="button" href="${escaped(href)}">${escaped(label)}</a></li>`,
    );
    const body = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escaped(title)}</title><style>${style}</style></head>
<body><main><h1>${escaped(title)}</h1>${text && `<p>${escaped(text)}</p>`}${items.length > 0 ? `<ul>${items.join("")}</ul>` : ""}</main></body>
</html>
`;
    return { status, body, headers: status === 503 ? { ...headers, "retry-after": "5" } : headers };
  }

  return {
    choice: (providers: readonly Link[]) => page(200, "Sign in", "", providers),
    /** @param again where the user can start once more; undefined if that would fail in the same way */
    problem(problem: Problem, again?: string): SignInPage {
      const [status, title, text] = PROBLEMS[problem];
      return page(status, title, text, again === undefined ? [] : [{ href: again, text: "Try again" }]);
    },
  };
}

const PROBLEMS = {
  bad_request: [400, "This link does not work", "A part of its address is not allowed."],
  foreign: [403, "Not signed out", "Another site asked for this. Open the application to sign out."],
  still_signed_in: [
    403,
    "Not signed out",
    "Your browser has cookies of several users, or the session needs a key. If this happens again, use the application.",
  ],
  expired: [400, "This sign-in is over", "It took too long, was completed before, or began in another browser."],
  over: [400, "This sign-in is over", "The provider has ended it already. Sign in again."],
  used: [400, "This sign-in is over", "It was completed before, or took too long."],
  denied: [403, "You were not signed in", "The provider has not confirmed who you are."],
  invalid: [403, "You were not signed in", "The response of the provider could not be verified."],
  refused: [
    403,
    "You have no access",
    "You are signed in at the provider, but your account has no access to this application.",
  ],
  too_weak: [
    403,
    "A stronger sign-in is needed",
    "The provider has not authenticated you in the way that is required.",
  ],
  too_many: [429, "Too many sign-ins", "Wait a moment before you try again."],
  too_many_sessions: [403, "Too many sessions", "Sign out on another device first."],
  unavailable: [
    503,
    "Sign-in is not available now",
    "The provider or the service does not respond. Nothing has changed for you.",
  ],
} as const satisfies Readonly<Record<string, readonly [status: number, title: string, text: string]>>;

type Problem = keyof typeof PROBLEMS;

export type SignInReply = SignInPage | { readonly location: string; readonly cookies: readonly string[] };

export function withCookies(reply: SignInReply, cookies: readonly string[]): SignInReply {
  return "location" in reply ? { ...reply, cookies: [...cookies, ...reply.cookies] } : { ...reply, cookies };
}

export function send(response: HttpResponse, reply: SignInReply): void {
  const always = { "cache-control": "no-store", "referrer-policy": "no-referrer" };
  if ("location" in reply) {
    const { location, cookies } = reply;
    respond(response, 303, { ...always, location, "set-cookie": [...cookies], "content-length": 0 });
  } else {
    const { status, headers, body, cookies = [] } = reply;
    const own = cookies.length > 0 ? { "set-cookie": [...cookies] } : {};
    respond(response, status, { ...always, ...headers, ...own, "content-length": Buffer.byteLength(body) }, body);
  }
}

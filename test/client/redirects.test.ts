/** A refresh token, a proof or an access token does not follow a redirect: another origin receives nothing. */
import { expect, test } from "vitest";
import { createTokenSession, generateProofKey, SessionUnavailable, type StoredTokens } from "../../src/client/index.ts";
import { startRedirecting } from "../support/redirecting.ts";

async function aSession(key?: StoredTokens["key"]) {
  const { origin, received } = await startRedirecting();
  let stored: StoredTokens | undefined;
  const session = createTokenSession({
    ...{ service: origin, clientId: "cli", dpop: key !== undefined },
    store: {
      load: async () => stored,
      save: async (tokens) => {
        stored = tokens;
      },
      clear: async () => {
        stored = undefined;
      },
    },
  });
  await session.start({ refreshToken: "refresh-token", ...(key !== undefined && { key }) });
  return { session, received };
}

test.each(["a bearer session", "a session with a key"])("the refresh and the end of %s", async (kind) => {
  const { session, received } = await aSession(kind === "a session with a key" ? await generateProofKey() : undefined);
  await expect(session.accessToken()).rejects.toThrow(SessionUnavailable);
  await expect(session.end()).rejects.toThrow(SessionUnavailable);
  expect(received).toEqual({ first: ["POST /v1/oauth/token", "POST /v1/oauth/revoke"], other: [] });
});

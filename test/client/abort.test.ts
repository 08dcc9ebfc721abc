/** Calls that are aborted while the session is refreshed for them. */
import { expect, test } from "vitest";
import { createTokenSession, type StoredTokens } from "../../src/client/index.ts";

test("an aborted call ends before the refresh, whose tokens are stored all the same", async () => {
  let stored: StoredTokens | undefined = { refreshToken: "first" };
  const store = {
    load: async () => stored,
    save: async (tokens: StoredTokens) => {
      stored = tokens;
    },
    clear: async () => {},
  };
  const started = Promise.withResolvers<void>();
  const response = Promise.withResolvers<Response>();
  const fetch = (url: string | Request) => {
    if (typeof url !== "string") return Promise.resolve(new Response("order"));
    started.resolve();
    return response.promise;
  };
  const session = createTokenSession({ service: "https://auth.example", clientId: "cli", store, fetch });
  const abort = new AbortController();
  const call = session.fetch("https://auth.example/orders", { signal: abort.signal });
  await started.promise;
  abort.abort();
  response.resolve(Response.json({ access_token: "access", refresh_token: "second", expires_in: 300 }));
  await expect(call).rejects.toThrow(expect.objectContaining({ name: "AbortError" }));
  expect(await session.accessToken()).toBe("access");
  expect(stored.refreshToken).toBe("second");
});

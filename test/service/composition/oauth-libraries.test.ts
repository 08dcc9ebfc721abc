/** openid-client refreshes, revokes and reads the metadata without changes, and gets errors that a client can handle. */
import * as client from "openid-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Transport } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { type Service, startService, withKeys } from "../../support/service.ts";
import { logIn } from "../../support/sessions.ts";

let redis: RedisServer;
let service: Service;
let config: client.Configuration;
beforeAll(async () => {
  redis = await startRedis();
  service = await startService({
    ADMIN_TOKENS: "a".repeat(40),
    DATA_DIR: withKeys(),
    REDIS_URL: redis.url,
    RATE_LIMIT_REFRESH: "3/60s",
  });
  config = await client.discovery(new URL(service.publicUrl), "cli", undefined, client.None(), {
    algorithm: "oauth2",
    execute: [client.allowInsecureRequests],
  });
});
afterAll(async () => {
  await service.stop();
  await redis.stop();
});

const user = () => logIn(service, { clientId: "cli", transport: Transport.TOKEN });
const failure = (call: Promise<unknown>) =>
  call.then(
    () => "none",
    (error: unknown) => error,
  );

test("it refreshes, and refreshes again", async () => {
  const { refreshToken, sid } = await user();
  const first = await client.refreshTokenGrant(config, refreshToken);
  const second = await client.refreshTokenGrant(config, first.refresh_token ?? "");
  expect(second.token_type).toBe("bearer");
  expect(second.expiresIn()).toBeGreaterThan(0);
  expect(JSON.parse(Buffer.from(second.access_token.split(".")[1] ?? "", "base64url").toString()).sid).toBe(sid);
});

test("it revokes, and the session is over: invalid_grant", async () => {
  const { refreshToken } = await user();
  await client.tokenRevocation(config, refreshToken);
  await client.tokenRevocation(config, refreshToken);
  expect(await failure(client.refreshTokenGrant(config, refreshToken))).toMatchObject({
    status: 400,
    error: "invalid_grant",
  });
});

test("over the rate limit it gets 429 with Retry-After", async () => {
  const { refreshToken } = await user();
  for (let i = 0; i < 3; i++) await client.refreshTokenGrant(config, refreshToken);
  const error = (await failure(client.refreshTokenGrant(config, refreshToken))) as client.ResponseBodyError;
  const { status, response } = error;
  expect([status, error.error]).toEqual([429, "temporarily_unavailable"]);
  expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
});

test("without the store it gets 503 with Retry-After, never invalid_grant", async () => {
  const { refreshToken } = await user();
  await redis.stop();
  for (const call of [client.refreshTokenGrant(config, refreshToken), client.tokenRevocation(config, refreshToken)]) {
    const error = (await failure(call)) as client.ClientError & { error?: string };
    expect(error.error).not.toBe("invalid_grant");
    const response = error.cause as Response;
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "1"]);
  }
});

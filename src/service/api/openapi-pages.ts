/** Describes the routes of the public API that are not RPCs. Verifiers read them without a credential. */

/** The routes described here are open to everybody, including pages of other origins. */
const OPEN = { tags: ["Verification"], security: [{}] };
const cached = { "Cache-Control": { required: true, schema: { type: "string" }, description: "For how long." } };

const key = {
  type: "object",
  required: ["kty", "kid"],
  properties: { kty: { type: "string" }, kid: { type: "string" } },
};

const KEY_SET = {
  ...OPEN,
  summary: "Returns the keys that verify access tokens",
  operationId: "getKeySet",
  responses: {
    200: {
      description: "A JWK Set (RFC 7517 section 5)",
      headers: cached,
      content: {
        "application/json": {
          schema: {
            type: "object",
            required: ["keys"],
            properties: { keys: { type: "array", items: key } },
          },
        },
      },
    },
  },
};

export const PUBLIC_PAGES = {
  "/.well-known/jwks.json": { get: KEY_SET },
};

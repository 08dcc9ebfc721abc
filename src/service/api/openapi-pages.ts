/** Describes the routes of the public API that are not RPCs. Verifiers read them without a credential. */

const ref = (name: string) => ({ $ref: `#/components/responses/${name}` });

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

const STATUS_LIST = {
  ...OPEN,
  summary: "Returns a Token Status List: which sessions have ended",
  description:
    "Access tokens refer to it by their claim `status` (draft-ietf-oauth-status-list, section 8). Only where STATUS_LIST is on.",
  operationId: "getStatusList",
  parameters: [
    { name: "list", in: "path", required: true, description: "As in the claim `uri`.", schema: { type: "string" } },
    {
      name: "time",
      in: "query",
      description: "Lists of the past are not kept: with this parameter the response is 501.",
      schema: { type: "integer" },
    },
  ],
  responses: {
    200: {
      description: "The list, signed",
      headers: { ...cached, ETag: { required: true, schema: { type: "string" } } },
      content: { "application/statuslist+jwt": { schema: { type: "string" } } },
    },
    304: { description: "It is still the one of `If-None-Match`." },
    404: ref("E404_NOT_FOUND"),
    406: { description: "`Accept` names no type of the list." },
    501: { description: "Lists of the past are not kept." },
    503: ref("E503_UNAVAILABLE"),
  },
};

export const PUBLIC_PAGES = {
  "/.well-known/jwks.json": { get: KEY_SET },
  "/v1/status-lists/{list}": { get: STATUS_LIST },
};

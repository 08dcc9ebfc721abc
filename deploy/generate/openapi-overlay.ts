/** The parts of gen/openapi.json that .proto files cannot express: build-time data for the OpenAPI plugin. */
import { ERROR_BODY, FAILURE_RESPONSES, failure, failures, ref, version } from "./openapi-errors.ts";
import { PUBLIC_OPERATIONS, PUBLIC_SCHEMAS } from "./openapi-oauth.ts";

const setsCookie = (description: string) => ({
  200: { headers: { "Set-Cookie": { description, required: true, schema: { type: "string" } } } },
});

const bearer = [{ bearer: [] }];

const deviceHeader = (description: string) => ({ description, schema: { type: "string" } });
const proof = {
  name: "Secure-Session-Response",
  in: "header",
  ...deviceHeader("The proof: a JWS (`dbsc+jwt`) of the challenge by the device key."),
};

/** The response to a request without a usable proof. It contains the challenge that the next proof must sign. */
const proofRequired = {
  $ref: null, // null removes the reference to the general response that all operations have by default.
  ...failure("E403_FORBIDDEN"),
  headers: { "Secure-Session-Challenge": deviceHeader("The challenge for the next proof.") },
};

const setsDeviceCookie = {
  description: "What the browser keeps of the session.",
  headers: {
    "Set-Cookie": deviceHeader("The device cookies, one header each."),
    "Secure-Session-Challenge": deviceHeader("The challenge for the next renewal."),
  },
};

const key = {
  type: "object",
  required: ["kty", "kid"],
  properties: { kty: { type: "string" }, kid: { type: "string" } },
};

/** This route is open to everybody, including pages of other origins. */
const KEY_SET = {
  tags: ["Verification"],
  security: [{}],
  summary: "Returns the keys that verify access tokens",
  operationId: "getKeySet",
  responses: {
    200: {
      description: "A JWK Set (RFC 7517 section 5)",
      headers: {
        "Cache-Control": { required: true, schema: { type: "string" }, description: "For how long." },
      },
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

export default {
  document: {
    info: {
      title: "Session service",
      version,
      description:
        "Refreshes and ends the authentication sessions of users. The same RPCs are served over Connect, gRPC and " +
        "gRPC-Web on the same port.",
      license: { name: "Apache 2.0", identifier: "Apache-2.0" },
    },
    paths: { "/.well-known/jwks.json": { get: KEY_SET } },
    components: {
      securitySchemes: {
        refreshCookie: {
          type: "apiKey",
          in: "cookie",
          name: "refresh_token",
          description: "The refresh token, as set by the login or the last refresh. The name is configurable.",
        },
        bearer: { type: "http", scheme: "bearer", bearerFormat: "JWT", description: "The access token (RFC 9068)." },
      },
      responses: {
        ...FAILURE_RESPONSES,
        default: {
          description: "Any other failure.",
          content: { "application/json": { schema: ref("schemas", "Error") } },
        },
      },
      schemas: {
        ...PUBLIC_SCHEMAS,
        "google.rpc.Status": null,
        Error: ERROR_BODY,
      },
    },
  },
  operations: {
    "*": {
      security: bearer,
      responses: failures(
        "E400_INVALID_REQUEST",
        "E001_AUTH_FAILURE",
        "E403_FORBIDDEN",
        "E429_RATE_LIMITED",
        "E500_INTERNAL",
        "E503_UNAVAILABLE",
        "E504_DEADLINE_EXCEEDED",
      ),
    },
    "auth.v1.SessionService.Refresh": {
      security: [{ refreshCookie: [] }],
      responses: {
        200: {
          headers: {
            ...setsCookie("The successor of the refresh token.")[200].headers,
            "Secure-Session-Registration": deviceHeader("With DEVICE_BINDING: offers the browser to register a key."),
          },
        },
        ...failures("E413_TOO_LARGE", "E415_UNSUPPORTED_MEDIA_TYPE"),
      },
    },
    "auth.v1.SessionService.Logout": {
      responses: setsCookie("Clears the refresh token."),
    },
    "auth.v1.SessionService.LogoutByCookie": {
      security: [{ refreshCookie: [] }],
      responses: setsCookie("Clears the refresh token."),
    },
    "auth.v1.SessionService.RegisterDevice": {
      security: [{ refreshCookie: [] }],
      parameters: [proof],
      responses: {
        200: setsDeviceCookie,
        403: proofRequired,
        429: null,
        ...failures("E404_NOT_FOUND"),
      },
    },
    "auth.v1.SessionService.RenewDevice": {
      // The cookie is optional: without it, the response is that there is nothing to renew.
      security: [{ refreshCookie: [] }, {}],
      parameters: [
        proof,
        { name: "Sec-Secure-Session-Id", in: "header", ...deviceHeader("The session, as the browser knows it.") },
      ],
      responses: { 200: setsDeviceCookie, 401: null, 403: proofRequired, 429: null },
    },
    "auth.v1.SessionService.RevokeSession": {
      responses: failures("E404_NOT_FOUND"),
    },
    ...PUBLIC_OPERATIONS,
    "auth.v1.SessionService.RevokeOtherSessions": {
      responses: failures("E413_TOO_LARGE", "E415_UNSUPPORTED_MEDIA_TYPE"),
    },
  },
};

/** A buf plugin that writes gen/openapi-admin.json: the unary RPCs of the admin API, each as a POST of JSON to a path of its own. */
import { create, createFileRegistry } from "@bufbuild/protobuf";
import {
  CodeGeneratorResponse_Feature,
  CodeGeneratorResponseSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { runNodeJs } from "@bufbuild/protoplugin";
import { describeRoutes } from "connect-http-routes/descriptors";
import type { SessionAdminService } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { describeServices } from "../../src/protoc-gen-http-openapi/document.ts";
import { jsonOptions } from "../../src/service/api/connect-options.ts";
import { ERROR_BODY, FAILURE_RESPONSES, failures, ref, version } from "./openapi-errors.ts";
import { ADMIN_OPERATIONS } from "./openapi-oauth.ts";

const SERVICE = "auth.admin.v1.SessionAdminService";
const OAUTH = "auth.admin.v1.OAuthAdminService";
const SIGNALS = "auth.admin.v1.SignalsAdminService";
const SHARED_SIGNALS = "auth.admin.v1.SharedSignalsService";

const stream = ref("schemas", "auth.admin.v1.Stream");

const json = (schema: object) => ({ content: { "application/json": { schema } } });

/** `null` removes the response that all operations have by default. */
const NO_CONTENT = { 200: null, 204: { description: "Done. There is no body." } };

/** Annotated routes have the errors of JSON routes, unlike the RPCs of the same document. */
const ROUTE_FAILURES = {
  ...failures(
    "E400_INVALID_REQUEST",
    "E001_AUTH_FAILURE",
    "E403_FORBIDDEN",
    "E404_NOT_FOUND",
    "E429_RATE_LIMITED",
    "E500_INTERNAL",
    "E503_UNAVAILABLE",
    "E504_DEADLINE_EXCEEDED",
  ),
  default: { $ref: null, description: "Any other failure.", ...json(ref("schemas", "HttpError")) },
};

const BODY_FAILURES = failures("E413_TOO_LARGE", "E415_UNSUPPORTED_MEDIA_TYPE");

const operation = (rpc: string, responses: object = {}) => [
  `${SHARED_SIGNALS}.${rpc}`,
  { responses: { ...ROUTE_FAILURES, ...responses } },
];

const SSF_OPERATIONS = Object.fromEntries([
  operation("CreateStream", { 200: null, 201: { description: "The new stream.", ...json(stream) }, ...BODY_FAILURES }),
  operation("ReadStreams", {
    200: {
      description: "The stream, or without an id the list of all streams of the receiver.",
      ...json({ oneOf: [stream, { type: "array", items: stream }] }),
    },
  }),
  operation("UpdateStream", BODY_FAILURES),
  operation("ReplaceStream", BODY_FAILURES),
  operation("DeleteStream", NO_CONTENT),
  operation("GetStreamStatus"),
  operation("UpdateStreamStatus", BODY_FAILURES),
  operation("AddStreamSubject", BODY_FAILURES),
  operation("RemoveStreamSubject", { ...NO_CONTENT, ...BODY_FAILURES }),
  operation("VerifyStream", { ...NO_CONTENT, ...BODY_FAILURES }),
  operation("PollStream", BODY_FAILURES),
]);

const SESSION_ID = "K2Jwm7AuplQf5-UskOhVws0";

const UPDATE = { claims: { role: "editor" }, accessTokens: "ACCESS_TOKEN_POLICY_REFRESH" };

/** The RPCs that are annotated routes, and their failures. */
const ROUTES = {
  UpdateSession: { ...ROUTE_FAILURES, ...BODY_FAILURES, ...failures("E409_CONFLICT") },
  UpdateSubjectSessions: { ...ROUTE_FAILURES, ...BODY_FAILURES },
};

type Methods = typeof SessionAdminService.method;
/** What the document has: an RPC without an example does not compile. */
type UnaryRpc = {
  [rpc in keyof Methods]: Methods[rpc]["methodKind"] extends "unary" ? Capitalize<rpc> : never;
}[keyof Methods];

/** Example requests. An example generated from the schema would be refused, and an empty request may end all sessions. */
const EXAMPLES = {
  CreateSession: { subject: "alice", client: { displayName: "laptop" } },
  GetSession: { sessionId: SESSION_ID },
  ListSessions: { pageSize: 20 },
  ListSessionEvents: { subject: "alice" },
  RevokeSession: { sessionId: SESSION_ID },
  RevokeSubjectSessions: { subject: "alice" },
  RevokeAllSessions: { issuedBefore: "2026-01-01T00:00:00Z" },
  ElevateSession: { sessionId: SESSION_ID, authTime: "2026-01-01T00:00:00Z", amr: ["otp"] },
  UpdateSession: UPDATE,
  UpdateSubjectSessions: UPDATE,
  UnbindDevice: { sessionId: SESSION_ID },
  ForgetSubject: { subject: "alice" },
  ExportSubject: { subject: "alice" },
  IntrospectToken: { token: "an access token or a refresh token" },
} satisfies { readonly [rpc in UnaryRpc]: object };

const error = {
  type: "object",
  required: ["code"],
  description:
    "A Connect error. `details` has an `auth.v1.ErrorDetail` with a stable code; that of `E429_SESSION_LIMIT` also an " +
    "`auth.admin.v1.SessionLimitExceeded`, whose JSON is in `debug`.",
  properties: {
    code: { type: "string", description: "Such as `invalid_argument` or `unavailable`." },
    message: { type: "string", description: "For people; it may change." },
    details: { type: "array", items: { type: "object" } },
  },
};

const overlay = {
  document: {
    info: {
      title: "Session service: admin API",
      version,
      description:
        "For services that log users in and that verify tokens. The same RPCs are served over gRPC and gRPC-Web on this port; " +
        "the stream `WatchRevocations` over these and over Connect, with a client made from `proto/auth/admin/v1`.",
      license: { name: "Apache 2.0", identifier: "Apache-2.0" },
    },
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer", description: "An admin token." } },
      schemas: { "google.rpc.Status": null, Error: error, HttpError: ERROR_BODY },
      responses: {
        ...FAILURE_RESPONSES,
        default: {
          description: "A failure.",
          content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
        },
      },
    },
  },
  operations: {
    "*": { security: [{ bearer: [] }] },
    ...ADMIN_OPERATIONS,
    ...SSF_OPERATIONS,
    ...Object.fromEntries(
      Object.entries(EXAMPLES).map(([rpc, example]) => [
        `${SERVICE}.${rpc}`,
        {
          requestBody: { required: true, content: { "application/json": { example } } },
          ...(rpc in ROUTES && { responses: ROUTES[rpc as keyof typeof ROUTES] }),
        },
      ]),
    ),
  },
};

runNodeJs({
  name: "openapi-admin",
  version: `v${version}`,
  run(request) {
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: request.protoFile }));
    const services = [SERVICE, OAUTH, SIGNALS, SHARED_SIGNALS].map((name) => {
      const service = registry.getService(name);
      if (service === undefined) throw new Error(`${name} is not there`);
      return service;
    });
    // Services with annotations are also served at the annotated paths.
    const { tables } = describeRoutes(services, { autoRoutes: true });
    const unary = tables.map((table) => ({
      ...table,
      routes: table.routes.filter(({ rpc }) => table.service.method[rpc]?.methodKind === "unary"),
    }));
    const document = describeServices(unary, overlay, { handler: { jsonOptions } });
    const content = `${JSON.stringify(document, undefined, 2)}\n`;
    return create(CodeGeneratorResponseSchema, {
      supportedFeatures: BigInt(CodeGeneratorResponse_Feature.PROTO3_OPTIONAL),
      file: [{ name: "openapi-admin.json", content }],
    });
  },
});

/** Creates a session and refreshes it, over gRPC. Use createConnectTransport for the Connect protocol. */
import { readFileSync } from "node:fs";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { SessionAdminService } from "./gen/auth/admin/v1/session_admin_pb.js";
import { SessionService } from "./gen/auth/v1/session_pb.js";

const { SESSION_ADMIN, SESSION_PUBLIC, SESSION_ADMIN_TOKEN_FILE = "" } = process.env;
const connect = (address: string | undefined) =>
  createGrpcTransport({ baseUrl: `http://${address}`, defaultTimeoutMs: 5000 });

const token = readFileSync(SESSION_ADMIN_TOKEN_FILE, "utf8").trim();
const admin = createClient(SessionAdminService, connect(SESSION_ADMIN));
const created = await admin.createSession({ subject: "alice" }, { headers: { authorization: `Bearer ${token}` } });

const sessions = createClient(SessionService, connect(SESSION_PUBLIC));
// A browser sends the cookie by itself. Here the code sends it.
const { data } = await sessions.refresh({}, { headers: { cookie: `refresh_token=${created.refreshToken}` } });
console.log("refreshed", created.session?.subject, (data?.accessToken.length ?? 0) > 0);
await sessions.refresh({}).catch((error: unknown) => console.log(Code[ConnectError.from(error).code]));

/** An RPC service on Connect, gRPC and gRPC-Web for users who are signed in. */
import { readFileSync } from "node:fs";
import { createServer } from "node:http2";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { accessTokenInterceptor, callerClaims, createVerifier, keepRawHeaders } from "@session-service/verifier";
import { GreetService } from "./gen/greet/v1/greet_pb.js";

const { ISSUER = "http://127.0.0.1:8080", AUDIENCE = ISSUER, PORT = "4000" } = process.env;
const { SESSION_ADMIN_URL = "http://127.0.0.1:8081", SESSION_ADMIN_TOKEN_FILE = "data/admin-token" } = process.env;

const verifier = createVerifier({
  adminUrl: SESSION_ADMIN_URL,
  adminToken: () => readFileSync(SESSION_ADMIN_TOKEN_FILE, "utf8").trim(),
  issuer: ISSUER,
  audience: AUDIENCE,
  report: (event) => console.error(event),
});
await verifier.ready;

function routes(router: ConnectRouter): void {
  router.service(GreetService, {
    hello(_request, context: HandlerContext) {
      const claims = context.values.get(callerClaims);
      // `role` is a claim that the login has passed to CreateSession. The session service does not interpret it.
      if (claims?.role !== "editor") throw new ConnectError("editors only", Code.PermissionDenied);
      return { hello: claims.sub };
    },
  });
}

const interceptors = [accessTokenInterceptor(verifier)];
const handler = connectNodeAdapter({ routes, interceptors, contextValues: keepRawHeaders });
// This server speaks HTTP/2 without TLS, for calls between services. Behind a proxy that speaks HTTP/1.1, use `createServer` of node:http.
const server = createServer(handler).listen(Number(PORT), "127.0.0.1", () => console.log(`http://127.0.0.1:${PORT}`));
process.once("SIGTERM", () => {
  server.close();
  void verifier.close();
});

/** The first program of a package's consumer. It prints "works". */
export const FIRST_USE: Readonly<Record<string, string>> = {
  browser: `
    const { createSession } = await import("@session-service/browser");
    await import("@session-service/browser/device");
    await import("@session-service/browser/react");
    if (typeof createSession !== "function") throw new Error("no createSession");`,
  client: `
    import { createFileStore, createTokenSession } from "@session-service/client";
    const store = createFileStore("session.json");
    createTokenSession({ service: "https://auth.example.com", clientId: "cli", store });`,
  "connect-grpc-health": `
    import { Health } from "connect-grpc-health";
    new Health({ services: [], probe: async () => {} });`,
  "connect-grpc-reflection": `
    import { addReflection } from "connect-grpc-reflection";
    import { createConnectRouter } from "@connectrpc/connect";
    addReflection(createConnectRouter());`,
  "connect-http-gateway": `
    import { execFileSync, spawnSync } from "node:child_process";
    await import("connect-http-gateway");
    const help = execFileSync("node_modules/.bin/connect-http-gateway", ["--help"], { encoding: "utf8" });
    if (!help.includes("--upstream")) throw new Error(help);`,
  "connect-http-routes": `
    import { createHttpHandler } from "connect-http-routes";
    await import("connect-http-routes/client");
    await import("connect-http-routes/descriptors");
    createHttpHandler({ routes() {}, tables: [] });`,
  "connect-opentelemetry": `await import("connect-opentelemetry");`,
  ...Object.fromEntries(
    [
      ["protoc-gen-connect-http", "protoc-gen-connect-http"],
      ["protoc-gen-http-openapi", "protoc-gen-http-openapi"],
    ].map(([folder, command]) => [
      folder,
      `
    import { execFileSync, spawnSync } from "node:child_process";
    const version = execFileSync("node_modules/.bin/${command}", ["--version"], { encoding: "utf8" });
    if (!version.startsWith("${command} v")) throw new Error(version);`,
    ]),
  ),
  server: `
    import { createServerSessions } from "@session-service/server";
    if (typeof createServerSessions !== "function") throw new Error("no createServerSessions");`,
  service: `
    import { execFileSync, spawnSync } from "node:child_process";
    const checked = execFileSync("node_modules/.bin/session-service", ["config", "check"], { encoding: "utf8" });
    if (!checked.startsWith("no fault")) throw new Error(checked);`,
  verifier: `
    import { createVerifier } from "@session-service/verifier";
    if (typeof createVerifier !== "function") throw new Error("no createVerifier");`,
};

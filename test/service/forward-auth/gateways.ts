/** The gateways that Debian packages, with the configurations of examples/forward-auth. */
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:http2";
import { join } from "node:path";
import { expect } from "vitest";
import { serverAuthority } from "../../support/certificate.ts";
import { type Program, startProgram, whileRunning } from "../../support/processes.ts";
import { request } from "../../support/raw-http.ts";
import { scratch } from "../../support/service.ts";
import { inTime } from "../../support/until.ts";

/** Returns an example's configuration with other addresses and files. Each text to replace must exist. */
function example(name: string, replacements: Readonly<Record<string, string>>): string {
  let text = readFileSync(join("examples/forward-auth", name), "utf8");
  for (const [from, to] of Object.entries(replacements)) {
    expect(text).toContain(from);
    text = text.replaceAll(from, to);
  }
  return text;
}

export type Changes = Readonly<Record<string, string>>;
type Place = {
  readonly directory: string;
  readonly port: number;
  readonly app: string;
  readonly check: string;
  /** The address of the public API. */
  readonly api: string;
  /** Further texts of the example, each with its replacement. */
  readonly changes?: Changes | undefined;
};

const GATEWAYS: Readonly<Record<string, (place: Place) => Program>> = {
  nginx({ directory, port, app, check, api, changes }) {
    const conf = example("nginx.conf", {
      ...changes,
      "listen 443": `listen 127.0.0.1:${port}`,
      "app.example.com;": "localhost;",
      "127.0.0.1:3000": app,
      "127.0.0.1:8080": api,
      "127.0.0.1:4181": check,
      "/etc/ssl/app.example.com.pem": `${directory}/cert.pem`,
      "/etc/ssl/private/app.example.com.key": `${directory}/key.pem`,
    });
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (name) => `${name}_temp_path ${directory};`,
    );
    const own = `daemon off; pid ${directory}/pid; error_log stderr; worker_processes 1;\nevents {}\n`;
    writeFileSync(join(directory, "nginx.conf"), `${own}http { access_log off; ${temporary.join(" ")}\n${conf} }\n`);
    return startProgram("/usr/sbin/nginx", ["-p", directory, "-c", join(directory, "nginx.conf"), "-e", "stderr"]);
  },
  haproxy({ directory, port, app, check, api, changes }) {
    const lua = join(directory, "session-check.lua");
    writeFileSync(lua, example("session-check.lua", { "127.0.0.1:4181": check }));
    const conf = example("haproxy.cfg", {
      ...changes,
      "bind :443": `bind 127.0.0.1:${port}`,
      "127.0.0.1:3000": app,
      "127.0.0.1:8080": api,
      "/etc/haproxy/session-check.lua": lua,
      "/etc/ssl/private/app.example.com.pem": `${directory}/both.pem`,
    });
    writeFileSync(join(directory, "haproxy.cfg"), conf);
    return startProgram("/usr/sbin/haproxy", ["-db", "-f", join(directory, "haproxy.cfg")]);
  },
  caddy({ directory, port, app, check, api, changes }) {
    const conf = example("Caddyfile", {
      ...changes,
      "app.example.com {": "localhost {",
      "127.0.0.1:3000": app,
      "127.0.0.1:8080": api,
      "127.0.0.1:4181": check,
      "/etc/ssl/app.example.com.pem": `${directory}/cert.pem`,
      "/etc/ssl/private/app.example.com.key": `${directory}/key.pem`,
    });
    const options = `{\n\tadmin off\n\tdefault_bind 127.0.0.1\n\tauto_https disable_redirects\n\thttps_port ${port}\n}\n`;
    writeFileSync(join(directory, "Caddyfile"), options + conf);
    const env = { HOME: directory, XDG_DATA_HOME: directory };
    return startProgram("caddy", ["run", "--config", join(directory, "Caddyfile")], { env });
  },
};

export const GATEWAY_NAMES = Object.keys(GATEWAYS);

const { authority, server: certificate } = serverAuthority(["localhost"]);

type Sends = (path: string, headers?: Readonly<Record<string, string>>, method?: string) => ReturnType<typeof request>;
export type Gateway = {
  readonly send: Sends;
  /**
   * Begins a WebSocket over HTTP/2 (RFC 8441). Resolves with the status of the response; undefined if the gateway does not offer that.
   */
  readonly beginWebSocket: (headers: Readonly<Record<string, string>>) => Promise<number | undefined>;
  readonly stop: () => Promise<void>;
};

/** Starts a gateway on `https://localhost`, and resolves when it responds. */
export async function startGateway(name: string, place: Omit<Place, "directory">): Promise<Gateway> {
  const directory = scratch();
  writeFileSync(join(directory, "cert.pem"), certificate.cert);
  writeFileSync(join(directory, "key.pem"), certificate.key);
  writeFileSync(join(directory, "both.pem"), `${certificate.cert}${certificate.key}`);
  const host = `localhost:${place.port}`;
  const send: Sends = (path, headers = {}, method = "GET") =>
    request(`https://${host}`, { method, path, headers: { host, ...headers }, ca: Buffer.from(authority) });
  const program = (GATEWAYS[name] as (place: Place) => Program)({ ...place, directory });
  await whileRunning(program, () => send("/"));
  const beginWebSocket: Gateway["beginWebSocket"] = async (headers) => {
    const session = connect(`https://${host}`, { ca: authority });
    try {
      const settings = await inTime("settings", once(session, "remoteSettings")).catch(
        (error: NodeJS.ErrnoException) => {
          if (error.code === "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL") return []; // It does not offer HTTP/2 at all.
          throw error;
        },
      );
      if (settings[0]?.enableConnectProtocol !== true) return undefined;
      const protocol = { ":method": "CONNECT", ":protocol": "websocket", ":scheme": "https", ":path": "/socket" };
      const stream = session.request({ ...protocol, "sec-websocket-version": "13", ...headers });
      const [response] = await inTime("a response", once(stream, "response"));
      return response[":status"];
    } finally {
      session.destroy();
    }
  };
  return { send, beginWebSocket, stop: () => program.stop().then(() => undefined) };
}

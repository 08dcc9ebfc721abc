/** Starts nginx from Debian, which terminates TLS for several hosts with the configuration that docs/tasks/browser.md gives. */
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { serverAuthority } from "../support/certificate.ts";
import { scratch } from "../support/service.ts";
import { until } from "../support/until.ts";

export type Nginx = { readonly port: number; readonly authority: string; stop(): Promise<void> };

/** Returns the `location` block of docs/tasks/browser.md for a path of the service, with another address of it. */
function documentedLocation(serviceUrl: string, path: string): string {
  const blocks = [...readFileSync("docs/tasks/browser.md", "utf8").matchAll(/```nginx\n([\s\S]*?)```/g)];
  const block = blocks.map(([, text = ""]) => text).find((text) => text.startsWith(`location ${path}`));
  if (!block?.includes("http://127.0.0.1:8080"))
    throw new Error(`docs/tasks/browser.md has no configuration of ${path}`);
  return block.replace("http://127.0.0.1:8080", serviceUrl);
}

/** @param upstreams the service of each host, and its path there if it has a prefix; all other paths go to `applicationUrl` */
export async function startNginx(
  upstreams: Readonly<Record<string, string>>,
  applicationUrl: string,
  port: number,
): Promise<Nginx> {
  const directory = scratch();
  const { authority, server } = serverAuthority(Object.keys(upstreams).map((name) => name.split("/")[0] ?? ""));
  writeFileSync(join(directory, "cert.pem"), server.cert);
  writeFileSync(join(directory, "key.pem"), server.key);
  const servers = Object.entries(upstreams).map(([name, serviceUrl]) => {
    const [host, prefix = "/v1/auth/"] = name.split(/(?=\/)/);
    return `server {
  listen 127.0.0.1:${port} ssl http2;
  server_name ${host};
  ${documentedLocation(serviceUrl, prefix)}
  location / { proxy_pass ${applicationUrl}; proxy_set_header Host $http_host; }
}`;
  });
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${directory};`);
  writeFileSync(
    join(directory, "nginx.conf"),
    `daemon off; pid ${directory}/pid; error_log stderr; worker_processes 1;
events {}
http {
  access_log off; ${paths.join(" ")}
  ssl_certificate ${directory}/cert.pem; ssl_certificate_key ${directory}/key.pem;
  ${servers.join("\n")}
}
`,
  );
  const child = spawn("/usr/sbin/nginx", ["-p", directory, "-c", join(directory, "nginx.conf"), "-e", "stderr"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const started = until(async () => readFileSync(join(directory, "pid"), "utf8"));
  await Promise.race([started, exited.then(() => Promise.reject(new Error(`nginx: ${log}`)))]);
  return {
    port,
    authority,
    async stop() {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

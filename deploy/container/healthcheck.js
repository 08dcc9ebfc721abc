/**
 * Exits with 0 if the service in this container responds. The image has no curl for this. The certificate is not verified, because it is
 * not valid for 127.0.0.1.
 */
const tls = (process.env.TLS_CERT_FILE ?? "") !== "";
const { get } = await import(tls ? "node:https" : "node:http");
const port = process.env.PORT || 8080;
const host =
  !process.env.HOST || process.env.HOST === "0.0.0.0"
    ? "127.0.0.1"
    : process.env.HOST === "::"
      ? "::1"
      : process.env.HOST;

get({ host, port, path: "/healthz", rejectUnauthorized: false, timeout: 2000 }, ({ statusCode }) => {
  process.exit(statusCode === 200 ? 0 : 1);
})
  .on("timeout", () => process.exit(1))
  .on("error", () => process.exit(1));

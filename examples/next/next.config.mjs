/** @type {import("next").NextConfig} */
export default {
  // These packages open connections of their own, which a bundler would duplicate.
  serverExternalPackages: ["@session-service/server", "@session-service/verifier"],
  // `npm run typecheck` checks the types.
  typescript: { ignoreBuildErrors: true },
};

/** @type {import("next").NextConfig} */
export default {
  // A bundler would include these packages several times, and each copy would open its own connections.
  serverExternalPackages: ["@session-service/server", "@session-service/verifier"],
  // The build does not check types, because `npm run typecheck` does.
  typescript: { ignoreBuildErrors: true },
};

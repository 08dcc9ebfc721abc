import adapter from "@sveltejs/adapter-node";
import { sveltekit } from "@sveltejs/kit/vite";
import { defineConfig } from "vite";

// This disables SvelteKit's own CSRF check, which would have to know the public origin. The hook in src/hooks.server.ts checks the origin
// of requests instead, behind any proxy.
const csrf = { trustedOrigins: ["*"] };

export default defineConfig({ plugins: [sveltekit({ adapter: adapter(), csrf })] });

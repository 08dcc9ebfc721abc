import adapter from "@sveltejs/adapter-node";
import { sveltekit } from "@sveltejs/kit/vite";
import { defineConfig } from "vite";

// The hook of the session checks where requests that change something come from, behind any proxy (src/hooks.server.ts). SvelteKit's
// own check has to know the public origin.
const csrf = { trustedOrigins: ["*"] };

export default defineConfig({ plugins: [sveltekit({ adapter: adapter(), csrf })] });

import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

// In mode "fake" the windows run in a plain browser, with a backend of their own. A build never contains it.
export default defineConfig(({ mode }) => ({
  plugins: [svelte()],
  resolve: {
    alias: { "#backend": file(mode === "fake" ? "src/backend/scenes.ts" : "src/backend/tauri.ts") },
    // Svelte has a build for servers; tests need the one for browsers.
    ...(process.env["VITEST"] ? { conditions: ["browser"] } : {}),
  },
  build: {
    target: "safari16",
    // The policy of the windows allows no inline data but images.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Of the packages whose code is in the windows, with their texts: scripts/licences.
    license: { fileName: "licences.json" },
    rollupOptions: { input: [file("main.html"), file("prompt.html")] },
  },
  server: { host: "127.0.0.1" },
  test: { environment: "happy-dom", include: ["src/**/*.test.ts"] },
}));

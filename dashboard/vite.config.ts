import { defineConfig } from "vite";
import { fakeApi } from "./dev/fake-api.ts";

/** What the API serves the page under: nothing inline, nothing from elsewhere. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export default defineConfig(({ mode }) => ({
  base: "./",
  plugins: mode === "fake" ? [fakeApi()] : [],
  server: { proxy: { "/v1": process.env.RFT_API ?? "http://127.0.0.1:8000" } },
  preview: { headers: { "Content-Security-Policy": CONTENT_SECURITY_POLICY } },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    rollupOptions: { input: ["index.html", "docs.html"] },
  },
}));

import { defineConfig } from "vite";

/** The page that `contrada serve` answers at `/`. The report has its own configuration: vite.report.config.ts. */
export default defineConfig({
  base: "./",
  build: {
    target: "es2023",
    outDir: "build/page",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the Content-Security-Policy allows no data: addresses
    chunkSizeWarningLimit: 1500,
    modulePreload: { polyfill: false },
  },
  worker: { format: "es" },
});

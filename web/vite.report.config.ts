import { defineConfig } from "vite";

/** The script of a report: one ES module that a report carries inline, so it must open by file://. */
export default defineConfig({
  build: {
    target: "es2023",
    outDir: "build/report",
    emptyOutDir: true,
    assetsInlineLimit: Number.POSITIVE_INFINITY,
    cssCodeSplit: false,
    chunkSizeWarningLimit: 3000,
    lib: { entry: "src/report/main.tsx", formats: ["es"], fileName: () => "report.js", cssFileName: "report" },
  },
  define: { "process.env.NODE_ENV": JSON.stringify("production") },
});

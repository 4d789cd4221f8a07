import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { environment: "happy-dom", include: ["test/**/*.test.ts", "test/**/*.test.tsx"], testTimeout: 20_000 },
});

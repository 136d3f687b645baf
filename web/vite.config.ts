import { defineConfig } from "vitest/config";

// One script and one stylesheet; scripts/inline.mjs then puts both into the page.
export default defineConfig({
  base: "./",
  build: {
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rollupOptions: {
      input: "report.html",
      output: { entryFileNames: "page.js", assetFileNames: "page[extname]" },
    },
  },
  // The browser test has a runner of its own (npm run test:browser).
  test: { include: ["test/**/*.test.ts"] },
});

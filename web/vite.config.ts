import { defineConfig } from "vitest/config";

// One script and one stylesheet; scripts/inline.mjs then puts both into the page. Two pages, each built alone, so that none carries what
// only the other needs: the report, and with `--mode publication` the first page of a publication.
export default defineConfig(({ mode }) => ({
  base: "./",
  build: {
    emptyOutDir: mode !== "publication",
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rollupOptions: {
      input: mode === "publication" ? "publication.html" : "report.html",
      output: { entryFileNames: "page.js", assetFileNames: "page[extname]" },
    },
  },
  // The browser test has a runner of its own (npm run test:browser).
  test: { include: ["test/**/*.test.ts"] },
}));

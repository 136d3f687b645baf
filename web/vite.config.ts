import { defineConfig } from "vitest/config";

// One script and one stylesheet; scripts/inline.mjs then puts both into the page. Three pages, each built alone, so that none carries what
// only another needs: the report, with `--mode publication` the first page of a publication, with `--mode history` that of `plimsoll serve`.
const PAGES = new Set(["publication", "history"]);
const pageOf = (mode: string): string => (PAGES.has(mode) ? mode : "report");

export default defineConfig(({ mode }) => ({
  base: "./",
  build: {
    emptyOutDir: !PAGES.has(mode),
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rollupOptions: {
      input: `${pageOf(mode)}.html`,
      output: { entryFileNames: "page.js", assetFileNames: "page[extname]" },
    },
  },
  // The browser test has a runner of its own (npm run test:browser).
  test: { include: ["test/**/*.test.ts"] },
}));

// inline.mjs PAGE: makes dist/PAGE self-contained: the one script and the one stylesheet go into the page itself.
// The page must ask the network for nothing, so anything left that refers to another file is an error.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const dist = join(import.meta.dirname, "..", "dist");
const name = process.argv[2] ?? "report.html";
const path = join(dist, name);
let html = readFileSync(path, "utf8");

const script = readFileSync(join(dist, "page.js"), "utf8").replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
const style = readFileSync(join(dist, "page.css"), "utf8").replaceAll("</style", "<\\/style");

// Replacements as functions: "$&" in minified code must not be taken for a pattern.
html = html.replace(/<link[^>]*rel="stylesheet"[^>]*>/, () => `<style>${style}</style>`);
html = html.replace(/\s*<script[^>]*src="[^"]*page\.js"[^>]*><\/script>/, "");
html = html.replace("</body>", () => `<script type="module">${script}</script>\n</body>`);

const outside = html.replace(/<script[\s\S]*?<\/script>|<style[\s\S]*?<\/style>/g, "").match(/(src|href)="(?!data:|#)[^"]*"/);
if (outside) throw new Error(`the page still refers to another file: ${outside[0]}`);
for (const mark of ["<!--PLIMSOLL_DATA-->", "<!--PLIMSOLL_STATIC-->", "<!--PLIMSOLL_TITLE-->"]) {
  if (html.split(mark).length !== 2) throw new Error(`the page must have ${mark} exactly once`);
}
writeFileSync(path, html);
rmSync(join(dist, "page.js"));
rmSync(join(dist, "page.css"));
console.log(`dist/${name}: ${Math.round(html.length / 1024)} KiB`);

// Every view of every chart, left in the page as SVG and PNG for the program that asked (`#images`): files are drawn by the same code as
// the page itself.
import { h } from "./dom";
import { png, svgText } from "./save";

/** Of one chart: more views than these are chosen on the page. */
const MOST_VIEWS = 12;

const frame = (): Promise<void> => new Promise((done) => setTimeout(done, 50));

function bytes64(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}

async function leave(figure: HTMLElement, name: string): Promise<void> {
  const svg = svgText(figure);
  if (!svg) return;
  document.body.append(h("pre", { class: "image", "data-file": `${name}.svg` }, bytes64(new TextEncoder().encode(svg))));
  const blob = await png(svg);
  document.body.append(h("pre", { class: "image", "data-file": `${name}.png` }, bytes64(new Uint8Array(await blob.arrayBuffer()))));
}

export async function images(): Promise<void> {
  // The first drawings come with the first layout.
  for (let i = 0; i < 40 && document.querySelectorAll(".drawing svg").length < document.querySelectorAll(".drawing").length; i++) await frame();
  for (const figure of document.querySelectorAll<HTMLElement>("figure.chart[data-name]")) {
    const [name, select] = [figure.dataset["name"]!, figure.querySelector("select")];
    const count = Math.min(select?.options.length ?? 1, MOST_VIEWS);
    for (let i = 0; i < count; i++) {
      if (select) {
        select.selectedIndex = i;
        select.dispatchEvent(new Event("change"));
        await frame();
      }
      await leave(figure, count > 1 ? `${name}-${i + 1}` : name);
    }
  }
}

// Tests the page of `shafer compare`, `report`, `demo` or `predict` in a browser.
//
//   shafer compare logits.npy --html /tmp/page.html
//   npm install --prefix /tmp/browser playwright-core
//   NODE_PATH=/tmp/browser/node_modules node crates/shafer-lab/tests/page/check.mjs /tmp/page.html
//
// A compared file needs at least three rows. CHROMIUM is the path of the browser (default /usr/bin/chromium), SHOTS a
// folder for screenshots. Not part of `cargo test`, which must run without a browser.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

// Unlike `import`, `require` respects NODE_PATH.
const { chromium } = createRequire(import.meta.url)("playwright-core");
const url = pathToFileURL(path.resolve(process.argv[2] ?? "page.html")).href;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});

const open = async (width, { javaScriptEnabled = true, colorScheme = "light" } = {}) => {
  const context = await browser.newContext({
    viewport: { width, height: 900 }, javaScriptEnabled, colorScheme,
  });
  const page = await context.newPage();
  page.faults = [];
  page.on("console", (message) => page.faults.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => page.faults.push(`error: ${error}`));
  page.on("request", (request) => {
    const asked = request.url();
    if (asked !== url && !asked.startsWith("data:")) page.faults.push(`request: ${asked}`);
  });
  await page.goto(url);
  return page;
};
const shot = async (page, name) => {
  if (process.env.SHOTS) {
    await page.screenshot({ path: path.join(process.env.SHOTS, `${name}.png`), fullPage: true });
  }
};

// Clipped text and overlapping neighbours.
const misfits = (page) => page.evaluate(() => {
  const found = [];
  if (document.documentElement.scrollWidth > window.innerWidth) found.push("the page is too wide");
  for (const element of document.querySelectorAll("span, figcaption, h1, h2, p, dt, dd, .class div")) {
    if (element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0) {
      found.push(`cut: ${element.textContent}`);
    }
  }
  for (const line of document.querySelectorAll(".mean, .class, .axis, .controls, .legend")) {
    const boxes = [...line.children].map((child) => child.getBoundingClientRect());
    boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
      const apart = a.right <= b.left + 0.5 || b.right <= a.left + 0.5
        || a.bottom <= b.top + 0.5 || b.bottom <= a.top + 0.5;
      if (!apart && a.width && b.width) found.push(`overlap: ${line.textContent}`);
    }));
  }
  return found;
});

// Text with a contrast below 4.5 to 1.
const faint = (page) => page.evaluate(() => {
  const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = numbers(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  const found = new Set();
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !element.checkVisibility() || element.closest("title, script, :disabled")) continue;
    const style = getComputedStyle(element);
    const words = light(numbers(element.closest("svg") ? style.fill : style.color));
    const paper = light(ground(element));
    const contrast = (Math.max(words, paper) + 0.05) / (Math.min(words, paper) + 0.05);
    if (contrast < 4.5) found.add(`${contrast.toFixed(1)}: ${element.textContent.slice(0, 40)}`);
  }
  return [...found];
});

// Every page, light and dark, wide and narrow.
for (const width of [1280, 390]) {
  for (const colorScheme of ["light", "dark"]) {
    const page = await open(width, { colorScheme });
    await shot(page, `page-${width}-${colorScheme}`);
    assert.deepEqual(await misfits(page), [], `at ${width}`);
    assert.deepEqual(await faint(page), [], `${colorScheme} at ${width}`);
    assert.deepEqual(page.faults, []);
  }
}

const compared = async () => {
  for (const width of [1280, 390]) {
    const page = await open(width);
    const column = (n) => page.$$eval(`#numbers tbody td:nth-child(${n})`, (cells) =>
      cells.map((cell) => cell.dataset.value).filter((value) => value !== "").map(Number));
    for (const n of [2, 7, 10, 18]) {
      const title = page.locator(`#numbers thead th:nth-child(${n})`);
      await title.locator("button").click();
      assert.equal(await title.getAttribute("aria-sort"), "ascending");
      const up = await column(n);
      assert.deepEqual(up, [...up].sort((a, b) => a - b));
      await title.locator("button").click();
      assert.equal(await title.getAttribute("aria-sort"), "descending");
      const down = await column(n);
      assert.deepEqual(down, [...down].sort((a, b) => b - a));
    }
    assert.equal(await page.locator("#numbers [aria-sort]").count(), 1);

    const summary = () => page.locator("#summary").textContent();
    assert.match(await summary(), /^Row 0: evidential keeps/);
    assert.ok(await page.locator("#before").isDisabled());
    await page.locator("#after").click();
    assert.match(await summary(), /^Row 1:/);
    await page.locator("h1").click();
    await page.keyboard.press("ArrowRight");
    assert.match(await summary(), /^Row 2:/);
    await page.keyboard.press("ArrowLeft");
    assert.match(await summary(), /^Row 1:/);
    await page.locator("#place").focus();
    await page.keyboard.press("ArrowRight");
    assert.match(await summary(), /^Row 2:/);
    await page.keyboard.press("End");
    assert.ok(await page.locator("#after").isDisabled());

    // Row by number: goes to the nearest row of the sample, and says so if it is another one.
    const rows = await page.evaluate(() => JSON.parse(document.getElementById("data").textContent).rows
      .map((row) => row.row));
    const goTo = async (row) => {
      await page.locator("#goto").fill(String(row));
      await page.locator("#goto").press("Enter");
    };
    await goTo(rows.at(-1));
    assert.match(await summary(), new RegExp(`^Row ${rows.at(-1)}:`));
    assert.doesNotMatch(await page.locator("#facts").textContent(), /not on this page/);
    await goTo(rows.at(-1) + 1000);
    assert.match(await summary(), new RegExp(`^Row ${rows.at(-1)}:`));
    assert.match(await page.locator("#facts").textContent(), /not on this page/);
    // Every row under Find is in the sample.
    const options = await page.$$eval("#find option", (all) => all.map((o) => o.value).filter((v) => v));
    assert.ok(options.length > 0);
    for (const option of options) {
      await page.selectOption("#find", option);
      assert.match(await summary(), new RegExp(`^Row ${option.split(" ")[1]}:`));
      assert.doesNotMatch(await page.locator("#facts").textContent(), /not on this page/);
    }
    // Logarithmic bars have logarithms beside them and are all visible.
    await page.selectOption("#method", { label: "softmax" });
    await page.selectOption("#scale", "log");
    const first = page.locator(".class .numbers div").first();
    assert.match(await first.textContent(), /^ln p -?\d/);
    const widths = await page.$$eval(".class .bars div", (bars) => bars.map((b) => b.offsetWidth));
    assert.ok(Math.min(...widths) >= 1);
    assert.deepEqual(await misfits(page), [], `logarithmic at ${width}`);
    await page.selectOption("#scale", "linear");
    assert.match(await first.textContent(), /^[\d.]/);
    // Histograms have two scales, one of them visible.
    const seen = (kind) => page.locator(`.small .${kind}`).first().isVisible();
    assert.deepEqual([await seen("linear"), await seen("log")], [true, false]);
    await page.locator("#log-rows").check();
    assert.deepEqual([await seen("linear"), await seen("log")], [false, true]);
    assert.deepEqual(await misfits(page), [], `logarithmic histograms at ${width}`);
    // The curves, with a larger marker for the paper's rule.
    const radii = await page.$$eval(".curves circle", (all) => all.map((c) => Number(c.getAttribute("r"))));
    assert.equal(radii.filter((r) => r === Math.max(...radii)).length, 1);
    await page.locator("details summary").click();
    assert.equal(await page.locator("details tbody tr").count(), radii.length);
    assert.deepEqual(await misfits(page), [], `the numbers of the curves at ${width}`);

    // Dropped classes, and only those, are marked.
    await page.selectOption("#method", { label: "sparsemax" });
    assert.match(await summary(), /sparsemax keeps/);
    const kept = Number((await summary()).match(/keeps (\d+)/)[1]);
    const [shown, dropped] = [page.locator(".class"), page.locator(".class.dropped .mark")];
    assert.equal(await dropped.count(), (await shown.count()) - Math.min(kept, await shown.count()));
    await page.selectOption("#method", { label: "softmax" });
    assert.equal(await dropped.count(), 0);
    await page.selectOption("#method", { label: "sparsemax" });
    assert.deepEqual(await misfits(page), [], `at ${width}`);
    await shot(page, `used-${width}`);
    assert.deepEqual(page.faults, []);
  }

  const plain = await open(1280, { javaScriptEnabled: false });
  await shot(plain, "plain");
  assert.ok(await plain.locator("#numbers").isVisible());
  assert.ok(await plain.locator(".small .area").first().isVisible());
  assert.ok(!(await plain.locator("#stepper").isVisible()));
  assert.equal(await plain.locator("th button").count(), 0);
  assert.deepEqual(plain.faults.filter((fault) => !fault.includes("script")), []);
};

// Pages of pedestrians have three figures; the demo has two per image set and one of pedestrians.
const fewest = async (page) => {
  if (generator === "shafer demo") return 7;
  return (await page.locator("h1").innerText()).startsWith("Pedestrians") ? 3 : 5;
};

const reported = async () => {
  for (const width of [1280, 390]) {
    const page = await open(width);
    assert.ok((await page.locator(".figure").count()) >= (await fewest(page)));
    // Text in figures is legible, and figures are not wider than the page.
    const panels = await page.$$eval(".panels svg", (drawings) => drawings.map((drawing) => ({
      words: Math.min(12, ...[...drawing.querySelectorAll("text")]
        .map((text) => text.getAttribute("font-size") * drawing.getScreenCTM().a)),
      right: drawing.getBoundingClientRect().right,
    })));
    for (const { words, right } of panels) {
      assert.ok(words >= 9, `words of ${words} pixels at ${width}`);
      assert.ok(right <= width, `a figure ends at ${right}`);
    }
    for (const summary of await page.locator("summary").all()) await summary.click();
    // The demo shows no configuration.
    if (generator === "shafer report") assert.ok(await page.locator("pre").isVisible());
    assert.deepEqual(await misfits(page), [], `at ${width}`);
    await shot(page, `opened-${width}`);
    assert.deepEqual(page.faults, []);
  }
};

// The page of several frames shows one at a time; that of one frame has no controls.
const predicted = async () => {
  for (const width of [1280, 390]) {
    const page = await open(width);
    const count = await page.locator("section.figure").count();
    const shown = () => page.$$eval("section.figure", (all) => all.findIndex((one) => !one.hidden));
    const visible = () => page.$$eval("section.figure", (all) => all.filter((one) => !one.hidden).length);
    assert.ok(count >= 1);
    assert.equal(await visible(), 1);
    assert.equal(await page.locator("#controls").isVisible(), count > 1);
    if (count > 1) {
      assert.ok(await page.locator("#before").isDisabled());
      await page.locator("#after").click();
      assert.equal(await shown(), 1);
      await page.locator("#place").focus();
      await page.keyboard.press("End");
      assert.deepEqual([await shown(), await visible()], [count - 1, 1]);
      assert.ok(await page.locator("#after").isDisabled());
    }
    assert.deepEqual(await misfits(page), [], `at ${width}`);
    await shot(page, `stepped-${width}`);
    assert.deepEqual(page.faults, []);
  }
};

const generator = await (await open(1280)).locator("meta[name=generator]").getAttribute("content");
await {
  "shafer compare": compared,
  "shafer demo": reported,
  "shafer predict": predicted,
  "shafer report": reported,
}[generator]();
await browser.close();
console.log("the page works");

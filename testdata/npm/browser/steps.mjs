// Opens a page of the bridge in headless Chromium, does step after step on it, and prints
// what it saw as one JSON object.
//
// It reads one JSON object from standard input:
//
//   chromium     path of the browser
//   url          the page
//   width        of the window in pixels (1200)
//   colorScheme  "light" (the default) or "dark"
//   steps        [{wait, text}|{fill, text}|{click}|{press}|{value}|{screenshot}]: wait for an element that
//                is visible and has the text; fill or click one; press a key; note the value of an expression;
//                write a PNG to a path
//   timeout      milliseconds that each step may take (60000)
//
// What it prints is the type Session of internal/web/webtest. It fails (exit status 1, the
// reason on standard error) only when it cannot do what is asked.
import { text } from 'node:stream/consumers';
import { chromium } from 'playwright-core';

import { watch } from './watch.mjs';

const ask = JSON.parse(await text(process.stdin));
const origin = new URL(ask.url).origin;

const report = {
  values: [], // of the steps that ask for one
  faint: [], // texts whose contrast is below 4.5 to 1, at the end
  requests: [], // {method, url, status}, in the order of their start; status 0: no answer
  foreign: [], // addresses of requests that went, or tried to go, to another origin
  faults: [], // console errors, exceptions, failed requests, breaches of the page's policy
};

const browser = await chromium.launch({
  executablePath: ask.chromium,
  args: [`--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE ${new URL(ask.url).hostname}`],
});
try {
  const page = await browser.newPage({ colorScheme: ask.colorScheme ?? 'light', viewport: { width: ask.width ?? 1200, height: 800 } });
  page.setDefaultTimeout(ask.timeout ?? 60_000);
  await watch(page, origin, report);
  await page.goto(ask.url);
  for (const step of ask.steps) {
    try {
      await take(page, step);
    } catch (e) {
      console.error(JSON.stringify({ step, ...report, page: await page.locator('body').innerText() }, null, 1));
      throw e;
    }
  }
  report.faint = await page.evaluate(faint);
} finally {
  await browser.close();
}
console.log(JSON.stringify(report));

async function take(page, step) {
  if (step.wait) await page.locator(step.wait, { hasText: step.text ?? '' }).first().waitFor();
  if (step.fill) await page.locator(step.fill).fill(step.text ?? '');
  if (step.click) await page.locator(step.click).first().click();
  if (step.press) await page.keyboard.press(step.press);
  if (step.value) report.values.push(await page.evaluate(step.value));
  if (step.screenshot) await page.screenshot({ path: step.screenshot, fullPage: true });
}

// faint returns the texts on the page that are hard to read on their ground (WCAG 2.2, 1.4.3).
function faint() {
  const rgb = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const light = (color) => {
    const [r, g, b] = rgb(color).map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      if ((rgb(color)[3] ?? 1) === 1) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  const found = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
    if (!own || !e.checkVisibility() || e.closest('svg, script, style, noscript')) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found.push(`${e.textContent.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return found;
}
